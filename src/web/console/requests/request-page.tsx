import { useQuery } from '@tanstack/react-query'
import { type PaymentRequest, WaybillCallError } from '@waybill/client'
import type { ReactNode } from 'react'
import { formatAmount } from '../../look/format-amount.ts'
import { requestTexts } from '../../look/texts.ts'
import { isAboveZero } from '../parts/decimals.ts'
import { Link } from '../parts/link.tsx'
import { Empty, ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Amount, Copyable, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from './amounts-bar.tsx'
import { CancelDialog } from './cancel-dialog.tsx'
import { lastRequests } from './last-requests.ts'
import { PayLink } from './pay-link.tsx'
import { isPayable, RequestBadges, statusNameOf } from './request-badges.tsx'
import { RequestPayments } from './request-payments.tsx'
import { Warnings } from './request-warnings.tsx'
import { useWatchedRequest } from './use-watched-request.ts'

const { one: texts } = requestTexts

export function RequestPage({ paymentReference }: { paymentReference: string }) {
  const waybill = useWaybill()
  const first = useQuery({
    queryKey: ['request', paymentReference],
    queryFn: ({ signal }) => waybill.getPaymentRequest({ paymentReference }, { signal }),
    // What the watch says is newer than another answer would be.
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { isCut } = useWatchedRequest(paymentReference, first.isSuccess)
  const { data: request, error, refetch } = first
  const isUnknown = error instanceof WaybillCallError && error.code === 'not_found'
  const name = request?.reference ?? paymentReference
  return (
    <Page
      title={request === undefined ? texts.title : `${texts.title} ${name}`}
      heading={request === undefined ? texts.title : <Heading request={request} />}
      back={{ to: lastRequests(), title: texts.back }}
      actions={request !== undefined && <Actions request={request} />}
    >
      {request === undefined && error === null && <Waiting lines={16} />}
      {isUnknown && <NotFound paymentReference={paymentReference} />}
      {error !== null && !isUnknown && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {request !== undefined && <RequestView request={request} isCut={isCut} />}
    </Page>
  )
}

function NotFound({ paymentReference }: { paymentReference: string }) {
  return (
    <Empty title={texts.notFound.title}>
      <p className="mono">{paymentReference}</p>
      <p>{texts.notFound.says}</p>
      <Link to="/requests" className="button">
        {texts.back}
      </Link>
    </Empty>
  )
}

function Heading({ request }: { request: PaymentRequest }) {
  const { amount, invoiceCurrency } = request
  return (
    <span className="payment-head">
      <span className="number payment-amount">
        {formatAmount(amount)} <span className="currency">{invoiceCurrency}</span>
      </span>
      <RequestBadges request={request} />
    </span>
  )
}

/** What helps to be paid, while something is to be paid. */
function Actions({ request }: { request: PaymentRequest }) {
  if (!isPayable(request)) return undefined
  return (
    <>
      <Link to={`/why?request=${request.paymentReference}`} className="button">
        {texts.why}
      </Link>
      <CancelDialog request={request} />
    </>
  )
}

function RequestView({ request, isCut }: { request: PaymentRequest; isCut: boolean }) {
  return (
    <div className="stack">
      <p className="payment-lead row">
        {request.reference !== undefined && <strong>{request.reference}</strong>}
        <span>{isAboveZero(request.overpaidAmount) ? texts.overpaid : texts.states[statusNameOf(request)]}</span>
      </p>
      <Warnings request={request} />
      <section className="card" aria-label={texts.money}>
        <AmountsBar request={request} />
        <p className={`request-live small quiet ${isCut ? 'warn' : 'good'}`} role="status">
          {isCut ? texts.reconnecting : texts.live}
        </p>
      </section>
      <div className="request-grid stack">
        <div className="stack">
          <RequestPayments request={request} />
          <Terms request={request} />
        </div>
        <PayLink request={request} />
      </div>
    </div>
  )
}

function Terms({ request }: { request: PaymentRequest }) {
  const { fields, noReference, noRefundAddress, never } = texts
  return (
    <section className="card" aria-labelledby="terms">
      <h2 id="terms">{texts.terms}</h2>
      <dl className="facts request-facts">
        <Fact name={fields.reference}>
          {request.reference === undefined ? (
            <Quiet>{noReference}</Quiet>
          ) : (
            <Copyable value={request.reference} whole />
          )}
        </Fact>
        <Fact name={fields.amount}>
          <Amount value={request.amount} currency={request.invoiceCurrency} whole />
        </Fact>
        <Fact name={fields.paidIn}>{request.paymentCurrency}</Fact>
        <Fact name={fields.payee}>
          <Copyable value={request.payee} whole />
        </Fact>
        <Fact name={fields.refundAddress}>
          {request.refundAddress === undefined ? (
            <Quiet>{noRefundAddress}</Quiet>
          ) : (
            <Copyable value={request.refundAddress} whole />
          )}
        </Fact>
        <Fact name={fields.created}>
          <Time at={request.createdAt} />
        </Fact>
        <Fact name={fields.expires}>
          {request.expiresAt === undefined ? <Quiet>{never}</Quiet> : <Time at={request.expiresAt} />}
        </Fact>
        {request.cancelledAt !== undefined && (
          <Fact name={fields.cancelled}>
            <Time at={request.cancelledAt} />
          </Fact>
        )}
        <Fact name={fields.requestId}>
          <Copyable value={request.requestId} whole />
        </Fact>
        <Fact name={fields.salt}>
          <Copyable value={request.salt} whole />
        </Fact>
      </dl>
    </section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Quiet({ children }: { children: ReactNode }) {
  return <span className="quiet">{children}</span>
}
