import { type PaymentRequest, PaymentRequest_Status as Status } from '@waybill/client/checkout'
import { toDate } from '../look/format-time.ts'

/** A request as a payer needs to know it. */
export type RequestState =
  | 'OPEN'
  | 'PARTIALLY_PAID'
  | 'PENDING'
  | 'PAID'
  | 'OVERPAID'
  | 'REFUNDED'
  | 'EXPIRED'
  | 'CANCELLED'

/** What was paid counts first: a request that is paid is never called expired. */
export function stateOf(request: PaymentRequest, now: Date): RequestState {
  const { status, cancelledAt, expiresAt, overpaidAmount } = request
  if (status === Status.PAID) return /[1-9]/.test(overpaidAmount) ? 'OVERPAID' : 'PAID'
  if (status === Status.REFUNDED) return 'REFUNDED'
  if (status === Status.PENDING) return 'PENDING'
  if (cancelledAt !== undefined) return 'CANCELLED'
  if (expiresAt !== undefined && toDate(expiresAt) <= now) return 'EXPIRED'
  return status === Status.PARTIALLY_PAID ? 'PARTIALLY_PAID' : 'OPEN'
}

export const isPayable = (state: RequestState) => state === 'OPEN' || state === 'PARTIALLY_PAID'
