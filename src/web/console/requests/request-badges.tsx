import { type PaymentRequest, PaymentRequest_Status as Status } from '@waybill/client'
import { toDate } from '../../look/format-time.ts'
import { stateTexts } from '../../look/texts.ts'
import { isAboveZero } from '../parts/decimals.ts'
import { Badge, type Tone } from '../parts/shown-values.tsx'

/** What a request is to those who wait for its money: its status, and what the status does not say. */
export type RequestState = keyof typeof stateTexts.request

const tones: Readonly<Record<RequestState, Tone>> = {
  OPEN: 'busy',
  PARTIALLY_PAID: 'warn',
  PENDING: 'busy',
  PAID: 'good',
  OVERPAID: 'warn',
  REFUNDED: 'quiet',
  EXPIRED: 'bad',
  CANCELLED: 'quiet',
}

/** What the states are read from. */
export type StatedRequest = Pick<PaymentRequest, 'status' | 'overpaidAmount' | 'cancelledAt' | 'expiresAt'>

/**
 * The states of a request, the most important first: `['EXPIRED', 'PARTIALLY_PAID']`.
 *
 * Expiry is told only where something is still to be paid: it changes nothing for a request that is covered.
 */
export function statesOf(request: StatedRequest, now: Date): readonly [RequestState, ...RequestState[]] {
  const isShort = request.status === Status.OPEN || request.status === Status.PARTIALLY_PAID
  const paid: readonly RequestState[] = request.status === Status.OPEN ? [] : [paidState(request)]
  if (request.cancelledAt !== undefined) return isShort ? ['CANCELLED', ...paid] : [paidState(request), 'CANCELLED']
  if (isShort && request.expiresAt !== undefined && toDate(request.expiresAt) <= now) return ['EXPIRED', ...paid]
  return [paidState(request)]
}

function paidState({ status, overpaidAmount }: StatedRequest): RequestState {
  const name = Status[status] as Exclude<keyof typeof Status, 'STATUS_UNSPECIFIED'>
  return name === 'PAID' && isAboveZero(overpaidAmount) ? 'OVERPAID' : name
}

export function RequestBadges({ request }: { request: StatedRequest }) {
  return (
    <span className="badges">
      {statesOf(request, new Date()).map((state) => (
        <Badge key={state} tone={tones[state]}>
          {stateTexts.request[state]}
        </Badge>
      ))}
    </span>
  )
}
