import type { PaymentRequest } from '@waybill/client'
import { addDecimals, isAboveZero, shareOf, subtractDecimals } from '../../shared/decimals.ts'
import { formatAmount } from '../../shared/format-amount.ts'
import { requestTexts } from '../../shared/texts.ts'
import { Amount } from '../parts/shown-values.tsx'

const tones = { paid: 'good', pending: 'busy striped', outstanding: '', overpaid: 'warn' }

/** What of a request is paid, on its way, left and too much: a bar, and the numbers below it. */
export function AmountsBar({ request }: { request: PaymentRequest }) {
  const { parts } = requestTexts
  const { invoiceCurrency } = request
  const shown = partsOf(request).filter(
    ({ name, amount }) => name === 'paid' || name === 'outstanding' || isAboveZero(amount),
  )
  const whole = addDecimals(shown.map(({ amount }) => amount))
  return (
    <div className="amounts stack gap-2">
      <div className="parts" aria-hidden="true">
        {shown
          .filter(({ amount }) => isAboveZero(amount))
          .map(({ name, amount }) => (
            <span key={name} className={`swatch ${tones[name]}`} style={{ flexGrow: shareOf(amount, whole) }} />
          ))}
      </div>
      <dl className="row gap-wide">
        {shown.map(({ name, amount }) => (
          <div key={name} title={`${formatAmount(amount)} ${invoiceCurrency}`}>
            <dt className="small">
              <span className={`swatch ${tones[name]}`} />
              {parts[name]}
            </dt>
            <dd>
              <Amount value={amount} currency={invoiceCurrency} whole />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  )
}

type Amounts = Pick<PaymentRequest, 'paidAmount' | 'pendingAmount' | 'outstandingAmount' | 'overpaidAmount'>

/** A part of the money of a request; the parts do not overlap. */
interface AmountPart {
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
