import type { PaymentRequest } from '@waybill/client'
import { isAboveZero } from '../../shared/decimals.ts'
import { type RequestState, stateOf } from '../../shared/request-state.ts'
import { sentence } from '../../shared/sentence.ts'
import { requestTexts, stateTexts } from '../../shared/texts.ts'
import { Badge, type Tone } from '../parts/shown-values.tsx'

const tones: Readonly<Record<RequestState, Tone>> = {
  OPEN: 'busy',
  PARTIALLY_PAID: 'warn',
  PENDING: 'busy',
  PAID: 'good',
  REFUNDED: 'quiet',
  EXPIRED: 'bad',
  CANCELLED: 'quiet',
}

export function RequestBadges({ request }: { request: Pick<PaymentRequest, 'status' | 'overpaidAmount'> }) {
  const state = stateOf(request)
  return (
    <span className="row">
      <Badge tone={tones[state]}>{stateTexts.request[state]}</Badge>
      {isAboveZero(request.overpaidAmount) && <Badge tone="warn">{stateTexts.overpaid}</Badge>}
    </span>
  )
}

/** Why no wallet can pay the request, where that is so. */
export function Warnings({ request: { warnings } }: { request: Pick<PaymentRequest, 'warnings'> }) {
  if (warnings.length === 0) return undefined
  return (
    <div className="notice warn">
      <h2>{requestTexts.one.warnings}</h2>
      {warnings.map(({ reason, message }) => (
        <p key={reason + message}>{sentence(message)}</p>
      ))}
    </div>
  )
}
