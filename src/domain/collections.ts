/** Cuts a list into parts of at most `size`. */
export function* chunksOf<T>(list: readonly T[], size: number): Generator<T[]> {
  for (let from = 0; from < list.length; from += size) yield list.slice(from, from + size)
}

/** Deletes the entries of a map that were set first, until no more than `maxSize` are left. */
export function dropOldest(map: Map<unknown, unknown>, maxSize: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= maxSize) return
    map.delete(oldest)
  }
}

/** Remembers what is made of keys. Once there are too many, all are forgotten. */
export function rememberByKey<R extends unknown[], T>(maxKeys: number, make: (key: string, ...rest: R) => T) {
  const made = new Map<string, T>()
  return (key: string, ...rest: R): T => {
    const known = made.get(key)
    if (known !== undefined) return known
    const value = make(key, ...rest)
    if (made.size >= maxKeys) made.clear()
    made.set(key, value)
    return value
  }
}

/** Makes the function that gives the number by which a value of a list is stored: its place, from 1. */
export function numberIn<T>(list: readonly T[]) {
  return (value: T) => list.indexOf(value) + 1
}

/** Makes the function that gives the value of a stored number. @param what - for the RangeError of a number that none has: `payment type has` */
export function valueIn<T>(list: readonly T[], what: string) {
  return (number: number): T => {
    const value = list[number - 1]
    if (value === undefined) throw new RangeError(`no ${what} the number ${number}`)
    return value
  }
}

/** Maps a value that may be absent. */
export function given<T, R>(value: T | undefined, map: (value: T) => R): R | undefined {
  return value === undefined ? undefined : map(value)
}

/** Sorts a list of a filter and drops repeats. */
export function canonicalList<T>(values: Iterable<T>): T[] {
  const byText = new Map([...values].map((value) => [JSON.stringify(value), value]))
  return [...byText.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}
