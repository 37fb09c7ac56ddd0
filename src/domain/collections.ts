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
