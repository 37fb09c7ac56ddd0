import type { PaymentRequest } from '@waybill/client'
import { requestTexts } from '../../look/texts.ts'

/** Why no wallet can pay the request, where that is so. */
export function Warnings({ request: { warnings } }: { request: Pick<PaymentRequest, 'warnings'> }) {
  if (warnings.length === 0) return undefined
  return (
    <div className="notice warn">
      <h2>{requestTexts.one.warnings}</h2>
      {warnings.map(({ reason, message }) => (
        <p key={reason + message}>{capitalise(message)}.</p>
      ))}
    </div>
  )
}

function capitalise(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
