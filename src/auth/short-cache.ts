/**
 * Remembers for a short while what was looked up, and lets calls that ask for the same thing at once share one look-up.
 * What is not found is not remembered, so that a flood of made-up keys takes no memory and a new key works at once.
 */
export interface ShortCache<T> {
  get(name: string, load: () => Promise<T | undefined>): Promise<T | undefined>
  has(name: string): boolean
  set(name: string, value: T): void
  delete(name: string): void
}

/**
 * Makes a cache.
 *
 * @param options.lifetimeMs - how long an entry is good: the longest that a revoked key still works
 * @param options.mostEntries - the oldest give way beyond that
 * @param options.now - milliseconds on a clock that never goes back
 */
export function createShortCache<T>(options: {
  readonly lifetimeMs: number
  readonly mostEntries: number
  readonly now: () => number
}): ShortCache<T> {
  const entries = new Map<string, { readonly value: T; readonly goodUntil: number }>()
  const loading = new Map<string, Promise<T | undefined>>()

  async function loadAndRemember(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      const value = await load()
      if (value !== undefined) remember(name, value)
      return value
    } finally {
      loading.delete(name)
    }
  }

  function remember(name: string, value: T) {
    entries.delete(name)
    entries.set(name, { value, goodUntil: options.now() + options.lifetimeMs })
    for (const oldest of entries.keys()) {
      if (entries.size <= options.mostEntries) break
      entries.delete(oldest)
    }
  }

  return {
    has: (name) => (entries.get(name)?.goodUntil ?? Number.NEGATIVE_INFINITY) > options.now(),
    set: remember,
    delete(name) {
      entries.delete(name)
    },
    get(name, load) {
      const entry = entries.get(name)
      if (entry !== undefined && entry.goodUntil > options.now()) return Promise.resolve(entry.value)
      entries.delete(name)
      const underWay = loading.get(name)
      if (underWay !== undefined) return underWay
      const started = loadAndRemember(name, load)
      loading.set(name, started)
      return started
    },
  }
}
