import type { Logger } from '../../../domain/logger.ts'
import type { LifiClient } from './lifi-client.ts'
import { type Delivery, readLifiStatus, type Transfer } from './lifi-status.ts'

/**
 * The outcome of a question for a transfer.
 * - `UNKNOWN`: no reliable answer yet
 * - `NEVER`: no answer will be usable, so it is not asked again
 * - `NOT_ASKED`: the quota or the breaker forbids it, for this long
 */
type TransferAnswer =
  | { readonly kind: 'FOUND'; readonly transfer: Transfer }
  | { readonly kind: 'UNKNOWN' | 'NEVER' }
  | { readonly kind: 'NOT_ASKED'; readonly forMs: number }

/** Finds the source of a bridge's delivery. Never rejects. */
export type FindTransfer = (delivery: Delivery, signal: AbortSignal) => Promise<TransferAnswer>

export function createFindTransfer(client: LifiClient, logger: Logger): FindTransfer {
  return async (delivery, signal) => {
    const answer = await client.status(delivery.txHash, { signal })
    if (!answer.ok) {
      return answer.isAsked ? { kind: 'UNKNOWN' } : { kind: 'NOT_ASKED', forMs: answer.forMs }
    }
    const reading = readLifiStatus(answer.body, delivery)
    if (reading.kind !== 'CONTRADICTION') return reading
    const about = { provider: client.name, ...delivery, detail: reading.detail }
    logger.warn(about, 'the status of a bridge transfer contradicts its delivery')
    return { kind: 'UNKNOWN' }
  }
}
