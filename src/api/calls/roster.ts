/** Who is in a roster. Its neighbours came just before and just after, of those who are still there. A class for the reason of alarms. */
class Place<T> {
  readonly member: T
  before: Place<T> | undefined
  after: Place<T> | undefined = undefined

  constructor(member: T, before: Place<T> | undefined) {
    this.member = member
    this.before = before
  }
}

/**
 * What is there now of things that come and go with every call, in the order in which they came. A Set would make its table anew every few
 * calls, and in old space once a table has outlived two collections: a tenth of the cost of a small call. And what is first in it is found past
 * all that have left.
 */
export function createRoster<T>() {
  let first: Place<T> | undefined
  let last: Place<T> | undefined
  let size = 0
  return {
    /** @returns leaves again; calls after the first do nothing */
    join(member: T): () => void {
      const place = new Place(member, last)
      if (last === undefined) first = place
      else last.after = place
      last = place
      size += 1
      let isThere = true
      return () => {
        if (!isThere) return
        isThere = false
        size -= 1
        const { before, after } = place
        if (before === undefined) first = after
        else before.after = after
        if (after === undefined) last = before
        else after.before = before
        // What has left must not keep alive what came later.
        place.before = place.after = undefined
      }
    },
    size: () => size,
    first: () => first?.member,
    members(): readonly T[] {
      const members: T[] = []
      for (let place = first; place !== undefined; place = place.after) members.push(place.member)
      return members
    },
  }
}
