import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Payment, Payment_Mark, type PaymentRequest } from '@waybill/client'
import { useEffect } from 'react'
import { isAboveZero } from '../../shared/decimals.ts'
import { formatAmount } from '../../shared/format-amount.ts'
import { paymentsTexts, paymentTexts } from '../../shared/texts.ts'
import { Card, type Fact, Facts } from '../parts/blocks.tsx'
import { useVisible } from '../parts/hooks.ts'
import { Link, LinkButton } from '../parts/link.tsx'
import { lastPlace } from '../parts/location.ts'
import { Answer, Empty, isNotFound, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, AmountHeading, Copyable, Time, Unknown, Usd } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from '../requests/amounts-bar.tsx'
import { RequestBadges } from '../requests/request-badges.tsx'
import { Identifiers, MoneyDetails, Who } from './payment-details.tsx'
import { type StatusName, statusNameOf } from './payment-life.ts'
import { Timeline } from './payment-timeline.tsx'

/** How often a payment is asked for while it can be seen. One that is not final changes with each block. */
const POLL_MS: Readonly<Partial<Record<StatusName, number>>> = { PENDING: 2_000, PARTIAL: 10_000 }

export function PaymentPage({ id }: { id: string }) {
  const query = useLivePayment(id)
  const { data: payment, error } = query
  const { title } = paymentTexts
  const isGone = isNotFound(error)
  const amount = payment === undefined ? undefined : `${formatAmount(payment.amount)} ${payment.currency}`
  return (
    <Page
      title={amount === undefined ? title : `${title} ${amount}`}
      heading={payment === undefined ? title : heading(payment)}
      back={{ to: lastPlace('payments'), title: paymentsTexts.title }}
    >
      {isGone && payment === undefined && <NotFound id={id} />}
      {isGone && payment !== undefined && <PaymentView payment={payment} isGone />}
      {!isGone && (
        <Answer query={query} lines={16}>
          {(found) => <PaymentView payment={found} isGone={false} />}
        </Answer>
      )}
    </Page>
  )
}

const heading = ({ amount, currency, status, superseded }: Payment) => (
  <AmountHeading value={amount} currency={currency}>
    <PaymentBadge status={status} superseded={superseded} />
  </AmountHeading>
)

/** A payment, kept current while it can be seen; at once when somebody comes back to it. */
function useLivePayment(id: string) {
  const waybill = useWaybill()
  const query = useQuery({
    queryKey: ['payment', id],
    queryFn: ({ signal }) => waybill.getPayment({ id }, { signal }),
    staleTime: 0,
    refetchOnWindowFocus: false,
    refetchInterval: ({ state: { data, error } }) =>
      data === undefined || isNotFound(error) ? false : (POLL_MS[statusNameOf(data.status)] ?? false),
  })
  // A call that hung while nobody looked would hold back the one that tells: this begins another.
  const { refetch } = query
  const isVisible = useVisible()
  useEffect(() => {
    if (isVisible) void refetch()
  }, [isVisible, refetch])
  return query
}

function NotFound({ id }: { id: string }) {
  const { title, says, hint } = paymentTexts.notFound
  return (
    <Empty title={title}>
      <p className="mono">{id}</p>
      <p className="narrow">{says}</p>
      <p>{hint}</p>
    </Empty>
  )
}

/** Confirmed without a request that could say for what. */
function isAlone({ completed, paymentReference }: Payment): boolean {
  return completed && paymentReference === undefined
}

const sayMark: Readonly<Record<Payment_Mark, (chain: string) => string>> = {
  [Payment_Mark.MARK_UNSPECIFIED]: () => '',
  [Payment_Mark.PAYER_NOT_ALLOWED]: () => paymentTexts.marks.notAllowed,
  [Payment_Mark.PAYER_SCREENED]: paymentTexts.marks.screened,
  [Payment_Mark.SCREENING_UNKNOWN]: paymentTexts.marks.unscreened,
}

interface ViewProps {
  readonly payment: Payment
  /** It was there a moment ago and is no more. */
  readonly isGone: boolean
}

function PaymentView({ payment, isGone }: ViewProps) {
  const { gone, states, inUsd } = paymentTexts
  const name = statusNameOf(payment.status)
  return (
    <div className="stack">
      {isGone && (
        <div className="notice bad" role="alert">
          <h2>{gone.title}</h2>
          <p>{gone.says}</p>
        </div>
      )}
      {payment.marks.map((mark) => (
        <p key={mark} className="notice warn">
          {sayMark[mark](payment.network)}
        </p>
      ))}
      <p className="payment-lead row gap-3">
        {payment.reference !== undefined && <strong>{payment.reference}</strong>}
        {payment.amountInUsd !== undefined && (
          <span>
            <Usd value={payment.amountInUsd} /> <span className="quiet">{inUsd}</span>
          </span>
        )}
        <span>{states[payment.superseded ? 'superseded' : isAlone(payment) ? 'alone' : name]}</span>
      </p>
      <div className="split row">
        <div className="stack">
          <Timeline payment={payment} isGone={isGone} />
          <PaymentRequestCard payment={payment} />
        </div>
        <div className="most stack">
          <Where payment={payment} />
          <Who payment={payment} />
          <MoneyDetails payment={payment} />
          <Identifiers payment={payment} />
        </div>
      </div>
    </div>
  )
}

/** The request that a payment belongs to, and what it still needs. */
function PaymentRequestCard({ payment }: { payment: Payment }) {
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

/** Where the money moved: one chain, or two side by side where a bridge carried it. */
function Where({ payment }: { payment: Payment }) {
  const { title, source, destination, chain } = paymentTexts.where
  const isBridged = payment.sourceNetwork !== undefined && payment.sourceNetwork !== payment.network
  const unknownSource: Fact = payment.sourceNetwork === undefined ? [source, <Unknown />] : undefined
  return (
    <Card id="where" title={title}>
      {isBridged ? (
        <div className="columns">
          <Side title={source} facts={sourceFacts(payment)} />
          <Side title={destination} facts={destinationFacts(payment)} />
        </div>
      ) : (
        <Facts label={chain} facts={[...destinationFacts(payment), unknownSource]} />
      )}
    </Card>
  )
}

function Side({ title, facts }: { title: string; facts: readonly Fact[] }) {
  return (
    <div className="stack gap-2">
      <h3>{title}</h3>
      <Facts facts={facts} />
    </div>
  )
}

function sourceFacts({ sourceNetwork, sourceTxHash, payer, links }: Payment): readonly Fact[] {
  const texts = paymentTexts.where
  return [
    [texts.network, sourceNetwork ?? <Unknown />],
    [texts.transaction, <Copyable value={sourceTxHash} link={links?.sourceTransaction} />],
    [texts.payer, <Copyable value={payer} link={links?.payer} />],
  ]
}

function destinationFacts(payment: Payment): readonly Fact[] {
  const texts = paymentTexts.where
  const { network, chainId, txHash, links, blockNumber, eventIndex, timestamp } = payment
  const where = (
    <>
      {network} {chainId !== undefined && <span className="quiet">{chainId}</span>}
    </>
  )
  return [
    [texts.network, where],
    [texts.transaction, <Copyable value={txHash} link={links?.transaction} />],
    [texts.block, blockNumber?.toString() ?? <Unknown />],
    [texts.time, <Time at={timestamp} />],
    [texts.event, eventIndex ?? <Unknown />],
  ]
}
