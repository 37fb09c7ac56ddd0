/** Endpoints are divided among processes by groups of accounts. Each group has a lease. */
export const GROUPS = 16

/** Who holds which group, as read from the leases in force. */
export interface Holding {
  readonly group: number
  readonly owner: string
}

/**
 * Decides which groups a process keeps and which free ones it takes, so that all processes hold about as many.
 *
 * @param alive - the processes that send, this one included
 */
export function shareGroups(
  owner: string,
  holdings: readonly Holding[],
  alive: number,
): { readonly kept: readonly number[]; readonly taken: readonly number[]; readonly released: readonly number[] } {
  const share = Math.ceil(GROUPS / Math.max(1, alive))
  const own = holdings.filter((each) => each.owner === owner).map(({ group }) => group)
  const held = new Set(holdings.map(({ group }) => group))
  const free = Array.from({ length: GROUPS }, (_, group) => group).filter((group) => !held.has(group))
  const kept = own.slice(0, share)
  return { kept, taken: free.slice(0, share - kept.length), released: own.slice(share) }
}
