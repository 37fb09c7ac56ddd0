import { useQuery } from '@tanstack/react-query'
import type { PaymentRequest } from '@waybill/client'
import { isPayable, stateOf } from '../../shared/request-state.ts'
import { requestTexts } from '../../shared/texts.ts'
import { Card, Facts } from '../parts/blocks.tsx'
import { isAboveZero } from '../parts/decimals.ts'
import { lastPlace } from '../parts/last-place.ts'
import { LinkButton } from '../parts/link.tsx'
import { Empty, ErrorNotice, isNotFound, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Amount, AmountHeading, Copyable, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from './amounts-bar.tsx'
import { CancelDialog } from './cancel-dialog.tsx'
import { PayLink } from './pay-link.tsx'
import { RequestBadges } from './request-badges.tsx'
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
  const isUnknown = isNotFound(error)
  const name = request?.reference ?? paymentReference
  return (
    <Page
      title={request === undefined ? texts.title : `${texts.title} ${name}`}
      heading={request === undefined ? texts.title : heading(request)}
      back={{ to: lastPlace('requests'), title: texts.back }}
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
      <LinkButton to="/requests" text={texts.back} />
    </Empty>
  )
}

const heading = (request: PaymentRequest) => (
  <AmountHeading value={request.amount} currency={request.invoiceCurrency}>
    <RequestBadges request={request} />
  </AmountHeading>
)

/** What helps to be paid, while something is to be paid. */
function Actions({ request }: { request: PaymentRequest }) {
  if (!isPayable(stateOf(request))) return undefined
  return (
    <>
      <LinkButton to={`/why?request=${request.paymentReference}`} text={texts.why} />
      <CancelDialog request={request} />
    </>
  )
}

function RequestView({ request, isCut }: { request: PaymentRequest; isCut: boolean }) {
  return (
    <div className="stack">
      <p className="payment-lead row">
        {request.reference !== undefined && <strong>{request.reference}</strong>}
        <span>{isAboveZero(request.overpaidAmount) ? texts.overpaid : texts.states[stateOf(request)]}</span>
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
  const { reference, refundAddress, expiresAt, cancelledAt } = request
  const quiet = (text: string) => <span className="quiet">{text}</span>
  return (
    <Card id="terms" title={texts.terms}>
      <Facts
        facts={[
          [fields.reference, reference === undefined ? quiet(noReference) : <Copyable value={reference} whole />],
          [fields.amount, <Amount value={request.amount} currency={request.invoiceCurrency} whole />],
          [fields.paidIn, request.paymentCurrency],
          [fields.payee, <Copyable value={request.payee} whole />],
          [
            fields.refundAddress,
            refundAddress === undefined ? quiet(noRefundAddress) : <Copyable value={refundAddress} whole />,
          ],
          [fields.created, <Time at={request.createdAt} />],
          [fields.expires, expiresAt === undefined ? quiet(never) : <Time at={expiresAt} />],
          cancelledAt && [fields.cancelled, <Time at={cancelledAt} />],
          [fields.requestId, <Copyable value={request.requestId} whole />],
          [fields.salt, <Copyable value={request.salt} whole />],
        ]}
      />
    </Card>
  )
}
