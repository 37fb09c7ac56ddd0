import type { Account } from '../../domain/account.ts'
import { openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { ReadPools } from './read-pools.ts'

/** Tokens of the position that an account has seen. A caller passes them on, so that another process answers no older state. */
export interface SeenTokens {
  /** Notes the position of a token. @throws INVALID_FIELD for a damaged token or one of another account */
  readonly take: (account: Account, token: string) => void
  /** The token of what the account has seen, including the answer of `method` that is about to go out. */
  readonly tell: (account: Account, method: string) => Promise<string>
}

/** @param pooled - methods that read through the pools, which note positions themselves; all others read from the primary */
export function createSeenTokens(pools: ReadPools, secret: Uint8Array, pooled: ReadonlySet<string>): SeenTokens {
  const [primary] = pools.pools
  const sealOf = ({ id }: Account) => ({ secret, scope: `${id}/seen` })
  return {
    take(account, token) {
      const seen = openCursor(sealOf(account), token)
      if (typeof seen !== 'string') {
        const detail =
          'it is damaged, or was made for another account or by another service: send the value of an earlier answer, or leave it out'
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
