/** Deletes the entries of a map that were set first, until no more than `maxSize` are left. */
export function dropOldest(map: Map<unknown, unknown>, maxSize: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= maxSize) return
    map.delete(oldest)
  }
}
