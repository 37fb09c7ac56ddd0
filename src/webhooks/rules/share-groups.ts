/** Endpoints are divided among processes by groups of accounts. Each group has a lease. */
export const GROUPS = 16

/** Who holds which group, as read from the leases in force. */
export interface Holding {
  readonly group: number
  readonly owner: string
}

/**
 * Decides which groups a process holds, so that all processes hold about as many.
 *
 * @param alive - the processes that send, this one included
 * @returns `wanted`: those that it has and keeps, and free ones
 */
export function shareGroups(owner: string, holdings: readonly Holding[], alive: number) {
  const share = Math.ceil(GROUPS / alive)
  const own = holdings.filter((each) => each.owner === owner).map(({ group }) => group)
  const held = new Set(holdings.map(({ group }) => group))
  const free = Array.from({ length: GROUPS }, (_, group) => group).filter((group) => !held.has(group))
  return { wanted: [...own, ...free].slice(0, share), released: own.slice(share) }
}
