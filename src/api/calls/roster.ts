/**
 * What is there now of things that come and go with every call, in no order. A Set would make its table anew every few calls, and in old
 * space once a table has outlived two collections: a tenth of the cost of a small call.
 */
export function createRoster<T>() {
  const places: (T | undefined)[] = []
  const free: number[] = []
  return {
    /** @returns leaves again; calls after the first do nothing */
    join(member: T): () => void {
      const at = free.pop() ?? places.length
      places[at] = member
      let isThere = true
      return () => {
        if (!isThere) return
        isThere = false
        places[at] = undefined
        free.push(at)
      }
    },
    size: () => places.length - free.length,
    members: (): readonly T[] => places.filter((member) => member !== undefined),
  }
}
