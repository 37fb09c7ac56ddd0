/** Finds one thing by its name, a hash in base64. */
export type LookUp<T> = (name: string) => Promise<T | undefined>

/**
 * Turns a look-up of many into one of each that asks for all that wait at once: never more than one question is under way, so
 * that a flood of made-up keys takes one connection of the database and no more.
 *
 * @param options.findMany - finds what there is of the names, in any order
 * @param options.nameOf - the name of what was found
 * @param options.mostAtOnce - names in a question
 */
export function batchLookUps<T>(options: {
  readonly findMany: (names: readonly string[]) => Promise<readonly T[]>
  readonly nameOf: (found: T) => string
  readonly mostAtOnce: number
}): LookUp<T> {
  const { findMany, nameOf, mostAtOnce } = options
  const waiting = new Map<string, PromiseWithResolvers<T | undefined>>()
  let isAsking = false

  async function askUntilNobodyWaits(): Promise<void> {
    isAsking = true
    while (waiting.size > 0) {
      const asked = take(waiting, mostAtOnce)
      await answer(asked)
    }
    isAsking = false
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
    if (!isAsking) void askUntilNobodyWaits()
    return entry.promise
  }
}

/** Takes the first entries out of a map. */
function take<K, V>(map: Map<K, V>, most: number): ReadonlyMap<K, V> {
  const taken = new Map<K, V>()
  for (const [key, value] of map) {
    if (taken.size === most) break
    taken.set(key, value)
    map.delete(key)
  }
  return taken
}
