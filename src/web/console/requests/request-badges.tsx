import { type PaymentRequest, PaymentRequest_Status as Status } from '@waybill/client'
import { stateTexts } from '../../look/texts.ts'
import { isAboveZero } from '../parts/decimals.ts'
import { Badge, type Tone } from '../parts/shown-values.tsx'

/** The name of a status, as the API has it. */
export type StatusName = Exclude<keyof typeof Status, 'STATUS_UNSPECIFIED'>

const tones: Readonly<Record<StatusName, Tone>> = {
  OPEN: 'busy',
  PARTIALLY_PAID: 'warn',
  PENDING: 'busy',
  PAID: 'good',
  REFUNDED: 'quiet',
  EXPIRED: 'bad',
  CANCELLED: 'quiet',
}

export function statusNameOf({ status }: Pick<PaymentRequest, 'status'>): StatusName {
  return Status[status] as StatusName
}

/** Whether the request still takes payments. */
export function isPayable({ status }: Pick<PaymentRequest, 'status'>): boolean {
  return status === Status.OPEN || status === Status.PARTIALLY_PAID
}

export function RequestBadges({ request }: { request: Pick<PaymentRequest, 'status' | 'overpaidAmount'> }) {
  const status = statusNameOf(request)
  return (
    <span className="badges">
      <Badge tone={tones[status]}>{stateTexts.request[status]}</Badge>
      {isAboveZero(request.overpaidAmount) && <Badge tone="warn">{stateTexts.overpaid}</Badge>}
    </span>
  )
}
