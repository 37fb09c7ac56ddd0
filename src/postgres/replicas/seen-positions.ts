import type { WalPosition } from './wal-position.ts'

/** The newest WAL position that each account has seen: through this process, or by the tokens and cursors that it sent. */
export interface SeenPositions {
  readonly of: (accountId: number) => WalPosition
  readonly note: (accountId: number, position: WalPosition) => void
}

/** Accounts remembered; evicted ones inherit the newest position of any evicted account, so that none is shown an older state. */
const MAX_ACCOUNTS = 10_000

export function createSeenPositions(): SeenPositions {
  const positions = new Map<number, WalPosition>()
  let ofEvicted: WalPosition = 0n

  const of = (accountId: number) => positions.get(accountId) ?? ofEvicted

  function note(accountId: number, position: WalPosition): void {
    const newest = largest(of(accountId), position)
    positions.delete(accountId)
    positions.set(accountId, newest)
    for (const [oldest, seen] of positions) {
      if (positions.size <= MAX_ACCOUNTS) break
      ofEvicted = largest(ofEvicted, seen)
      positions.delete(oldest)
    }
  }

  return { of, note }
}

function largest(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
