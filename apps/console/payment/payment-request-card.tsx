import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Payment, PaymentRequest } from '@waybill/client'
import { paymentTexts } from '../../shared/texts.ts'
import { Card } from '../parts/blocks.tsx'
import { isAboveZero } from '../parts/decimals.ts'
import { Link, LinkButton } from '../parts/link.tsx'
import { Waiting } from '../parts/notices.tsx'
import { Amount, Copyable } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from '../requests/amounts-bar.tsx'
import { RequestBadges } from '../requests/request-badges.tsx'

/** The request that a payment belongs to, and what it still needs. */
export function PaymentRequestCard({ payment }: { payment: Payment }) {
  const { title, none } = paymentTexts.request
  return (
    <Card id="request" title={title}>
      {payment.paymentReference === undefined ? (
        <p className="quiet">{none}</p>
      ) : (
        <OwnRequest payment={payment} paymentReference={payment.paymentReference} />
      )}
    </Card>
  )
}

function OwnRequest({ payment, paymentReference }: { payment: Payment; paymentReference: string }) {
  const waybill = useWaybill()
  const { notReadable } = paymentTexts.request
  const { data, error } = useQuery({
    // Whatever changes the payment may have changed the request.
    queryKey: ['request', paymentReference, 'of', payment.id, payment.status, payment.refundedAmount],
    queryFn: ({ signal }) => waybill.getPaymentRequest({ paymentReference }, { signal }),
    placeholderData: keepPreviousData,
  })
  if (error !== null)
    return (
      <div className="stack">
        <Copyable value={paymentReference} whole />
        <p className="quiet">
          {notReadable} {error.message}
        </p>
      </div>
    )
  if (data === undefined) return <Waiting lines={4} />
  return <Found request={data} />
}

function Found({ request }: { request: PaymentRequest }) {
  const { open, needs, needsNothing } = paymentTexts.request
  const { reference, paymentReference, outstandingAmount, invoiceCurrency } = request
  return (
    <div className="stack">
      <p className="row">
        <Link to={`/requests/${paymentReference}`}>{reference ?? paymentReference}</Link>
        <RequestBadges request={request} />
      </p>
      <AmountsBar request={request} />
      {isAboveZero(outstandingAmount) ? (
        <p>
          {needs} <Amount value={outstandingAmount} currency={invoiceCurrency} whole />
        </p>
      ) : (
        <p>{needsNothing}</p>
      )}
      <LinkButton to={`/requests/${paymentReference}`} text={open} />
    </div>
  )
}
