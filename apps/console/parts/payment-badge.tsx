import { type Payment, Payment_Status as Status } from '@waybill/client'
import { stateTexts } from '../../shared/texts.ts'
import { Badge, type Tone } from './shown-values.tsx'

const tones: Readonly<Record<keyof typeof stateTexts.payment, Tone>> = {
  PENDING: 'busy',
  PARTIAL: 'warn',
  CONFIRMED: 'good',
  REFUNDED: 'quiet',
  FAILED: 'bad',
}

/** The state of a payment, in its words. One that counts nowhere has that as its state. */
export function PaymentBadge({ status, superseded = false }: Pick<Payment, 'status' | 'superseded'>) {
  if (superseded) return <Badge tone="quiet">{stateTexts.superseded}</Badge>
  const name = Status[status] as keyof typeof stateTexts.payment
  return <Badge tone={tones[name]}>{stateTexts.payment[name]}</Badge>
}
