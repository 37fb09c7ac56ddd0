import { dropOldest } from './drop-oldest.ts'

/**
 * Caches look-ups for a short time; concurrent look-ups of one name share one load. Misses are not cached: a flood of invented
 * keys takes no memory, and a new key works at once.
 *
 * @param options.lifetimeMs - how long an entry is valid, and so how long a revoked key may still be accepted
 * @param options.maxEntries - beyond it the oldest entries are dropped
 * @param options.now - milliseconds of a monotonic clock
 */
export function createShortCache<T>(options: {
  readonly lifetimeMs: number
  readonly maxEntries: number
  readonly now: () => number
}) {
  const entries = new Map<string, { readonly value: T; readonly validUntil: number }>()
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
    entries.set(name, { value, validUntil: options.now() + options.lifetimeMs })
    dropOldest(entries, options.maxEntries)
  }

  return {
    has: (name: string) => (entries.get(name)?.validUntil ?? Number.NEGATIVE_INFINITY) > options.now(),
    set: remember,
    delete(name: string): void {
      entries.delete(name)
    },
    get(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
      const entry = entries.get(name)
      if (entry !== undefined && entry.validUntil > options.now()) return Promise.resolve(entry.value)
      entries.delete(name)
      const underWay = loading.get(name)
      if (underWay !== undefined) return underWay
      const started = loadAndRemember(name, load)
      loading.set(name, started)
      return started
    },
  }
}
