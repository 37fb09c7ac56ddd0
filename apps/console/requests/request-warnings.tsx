import type { PaymentRequest } from '@waybill/client'
import { sentence } from '../../shared/sentence.ts'
import { requestTexts } from '../../shared/texts.ts'

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
