import type { PaymentRequest } from '@waybill/client'
import { addDecimals, isAboveZero, subtractDecimals } from '../parts/decimals.ts'

type Amounts = Pick<PaymentRequest, 'paidAmount' | 'pendingAmount' | 'outstandingAmount' | 'overpaidAmount'>

/** A part of the money of a request; the parts do not overlap. */
export interface AmountPart {
  readonly name: 'paid' | 'pending' | 'outstanding' | 'overpaid'
  readonly amount: string
}

/**
 * The amounts of a request as parts that can be laid side by side. The service counts what is too much in the paid and pending amounts too:
 * it is taken from what is pending first, which came last.
 */
export function partsOf(request: Amounts): readonly AmountPart[] {
  const { paidAmount, pendingAmount, outstandingAmount, overpaidAmount } = request
  const pending = subtractDecimals(pendingAmount, overpaidAmount)
  const isAllPending = !pending.startsWith('-')
  const paid = isAllPending ? paidAmount : addDecimals([paidAmount, pending])
  return [
    { name: 'paid', amount: isAboveZero(paid) ? paid : '0' },
    { name: 'pending', amount: isAllPending ? pending : '0' },
    { name: 'outstanding', amount: outstandingAmount },
    { name: 'overpaid', amount: overpaidAmount },
  ]
}
