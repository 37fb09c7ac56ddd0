import type { PaymentRequest } from '@waybill/client'
import { type RequestState, stateOf } from '../../shared/request-state.ts'
import { stateTexts } from '../../shared/texts.ts'
import { isAboveZero } from '../parts/decimals.ts'
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
