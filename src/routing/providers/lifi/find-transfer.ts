import type { Logger } from '../../../domain/logger.ts'
import type { LifiClient } from './lifi-client.ts'
import { type Delivery, readLifiStatus, type Transfer } from './lifi-status.ts'

/**
 * What became of a question.
 * - `UNKNOWN`: nothing to be relied on, for now
 * - `NEVER`: it is pointless to ask again
 * - `NOT_ASKED`: quota or failures forbid it, for so long
 */
export type TransferAnswer =
  | { readonly kind: 'FOUND'; readonly transfer: Transfer }
  | { readonly kind: 'UNKNOWN' | 'NEVER' }
  | { readonly kind: 'NOT_ASKED'; readonly forMs: number }

/** Asks where a bridge's delivery came from. Never rejects. */
export type FindTransfer = (delivery: Delivery, signal: AbortSignal) => Promise<TransferAnswer>

export function createFindTransfer(client: LifiClient, logger: Logger): FindTransfer {
  return async (delivery, signal) => {
    const answer = await client.status(delivery.txHash, { signal })
    if (!answer.ok) {
      return answer.isAsked ? { kind: 'UNKNOWN' } : { kind: 'NOT_ASKED', forMs: answer.forMs }
    }
    const reading = readLifiStatus(answer.body, delivery)
    switch (reading.kind) {
      case 'FOUND':
        return reading
      case 'UNKNOWN':
        return { kind: 'UNKNOWN' }
      case 'UNUSABLE':
        return { kind: 'NEVER' }
      case 'CONTRADICTION':
        logger.warn(
          { provider: client.name, ...delivery, detail: reading.detail },
          'what a bridge says of a delivery is not believed',
        )
        return { kind: 'UNKNOWN' }
    }
  }
}
