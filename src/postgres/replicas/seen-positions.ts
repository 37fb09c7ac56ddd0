import type { WalPosition } from './wal-position.ts'

/** Up to where in the log each account has seen the database through this process, or says that it has. */
export interface SeenPositions {
  readonly of: (accountId: number) => WalPosition
  readonly note: (accountId: number, position: WalPosition) => void
}

/** @param mostAccounts - beyond that the account noted longest ago counts as having seen the newest that any forgotten one has */
export function createSeenPositions(mostAccounts = 10_000): SeenPositions {
  const positions = new Map<number, WalPosition>()
  let ofForgotten: WalPosition = 0n

  const of = (accountId: number) => positions.get(accountId) ?? ofForgotten

  function note(accountId: number, position: WalPosition): void {
    const newest = largest(of(accountId), position)
    positions.delete(accountId)
    positions.set(accountId, newest)
    for (const [oldest, seen] of positions) {
      if (positions.size <= mostAccounts) break
      ofForgotten = largest(ofForgotten, seen)
      positions.delete(oldest)
    }
  }

  return { of, note }
}

function largest(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
