import type { Account } from '../../domain/account.ts'
import { openCursor, sealCursor } from '../../domain/sealed-cursor.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { ReadPools } from './read-pools.ts'

/** Tells callers what they have seen, so that they can tell another process. */
export interface SeenTokens {
  /** @throws INVALID_FIELD for a token that was not made here for this account */
  readonly take: (account: Account, token: string) => void
  /** A token of all that the account has seen, what `method` has answered included. */
  readonly tell: (account: Account, method: string) => Promise<string>
}

/** @param pooled - methods whose reads the pools have noted themselves; others read from the primary */
export function createSeenTokens(pools: ReadPools, secret: Uint8Array, pooled: ReadonlySet<string>): SeenTokens {
  const [primary] = pools.pools
  const sealOf = ({ id }: Account) => ({ secret, scope: `${id}/seen` })
  return {
    take(account, token) {
      const seen = openCursor(sealOf(account), token)
      if (typeof seen !== 'string') {
        const detail = 'it is damaged, or was not made here for this account: send what an answer had, or nothing'
        throw waybillError('INVALID_FIELD', { field: 'x-waybill-seen', detail })
      }
      pools.noteSeen(account.id, BigInt(seen))
    },
    async tell(account, method) {
      if (!pooled.has(method) && primary !== undefined) {
        pools.noteSeen(account.id, await pools.positionOf(primary))
      }
      return sealCursor(sealOf(account), String(pools.seenBy(account.id)))
    },
  }
}
