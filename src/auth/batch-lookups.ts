/** Finds one record by its name, such as a hash in base64. */
export type Lookup<T> = (name: string) => Promise<T | undefined>

/**
 * Turns a lookup of many names into one of a single name. Names that wait are looked up together, and never more than one query
 * runs at a time: a flood of invented keys uses one database connection and no more.
 *
 * @param options.findMany - finds the records that exist, in any order
 * @param options.nameOf - the name of a record
 * @param options.maxBatch - names in one query
 */
export function batchLookups<T>(options: {
  readonly findMany: (names: readonly string[]) => Promise<readonly T[]>
  readonly nameOf: (found: T) => string
  readonly maxBatch: number
}): Lookup<T> {
  const { findMany, nameOf, maxBatch } = options
  const waiting = new Map<string, PromiseWithResolvers<T | undefined>>()
  let isRunning = false

  async function runUntilNoneWaits(): Promise<void> {
    isRunning = true
    while (waiting.size > 0) {
      await answer(take(waiting, maxBatch))
    }
    isRunning = false
  }

  async function answer(asked: ReadonlyMap<string, PromiseWithResolvers<T | undefined>>): Promise<void> {
    try {
      const found = new Map((await findMany([...asked.keys()])).map((each) => [nameOf(each), each]))
      for (const [name, { resolve }] of asked) resolve(found.get(name))
    } catch (error) {
      for (const { reject } of asked.values()) reject(error)
    }
  }

  return (name) => {
    const joined = waiting.get(name)
    if (joined !== undefined) return joined.promise
    const entry = Promise.withResolvers<T | undefined>()
    waiting.set(name, entry)
    if (!isRunning) void runUntilNoneWaits()
    return entry.promise
  }
}

/** Removes the first entries of a map and returns them. */
function take<K, V>(map: Map<K, V>, count: number): ReadonlyMap<K, V> {
  const taken = new Map<K, V>()
  for (const [key, value] of map) {
    if (taken.size === count) break
    taken.set(key, value)
    map.delete(key)
  }
  return taken
}
