import { useQuery } from '@tanstack/react-query'
import type { Payment } from '@waybill/client'
import { formatAmount } from '../../shared/format-amount.ts'
import { paymentTexts } from '../../shared/texts.ts'
import { lastPlace } from '../parts/last-place.ts'
import { Empty, ErrorNotice, isNotFound, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { AmountHeading, Usd } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { useReturn } from '../parts/visibility.ts'
import { Identifiers, MoneyDetails, Who } from './payment-details.tsx'
import { type StatusName, statusNameOf } from './payment-life.ts'
import { PaymentRequestCard } from './payment-request-card.tsx'
import { Timeline } from './payment-timeline.tsx'
import { Where } from './payment-where.tsx'

/** How often a payment is asked for while it can be seen. One that is not final changes with each block. */
const POLL_MS: Readonly<Partial<Record<StatusName, number>>> = { PENDING: 2_000, PARTIAL: 10_000 }

export function PaymentPage({ id }: { id: string }) {
  const { data: payment, error, refetch } = useLivePayment(id)
  const { title, back } = paymentTexts
  const isGone = isNotFound(error)
  const amount = payment === undefined ? undefined : `${formatAmount(payment.amount)} ${payment.currency}`
  return (
    <Page
      title={amount === undefined ? title : `${title} ${amount}`}
      heading={payment === undefined ? title : heading(payment)}
      back={{ to: lastPlace('payments'), title: back }}
    >
      {payment === undefined && error === null && <Waiting lines={16} />}
      {payment === undefined && isGone && <NotFound id={id} />}
      {payment === undefined && error !== null && !isGone && (
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      )}
      {payment !== undefined && <PaymentView payment={payment} isGone={isGone} isStale={error !== null && !isGone} />}
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
  useReturn(() => void query.refetch())
  return query
}

function NotFound({ id }: { id: string }) {
  const { title, says, look } = paymentTexts.notFound
  return (
    <Empty title={title}>
      <p className="mono">{id}</p>
      <p className="payment-says">{says}</p>
      <p>{look}</p>
    </Empty>
  )
}

/** Confirmed without a request that could say for what. */
function isAlone({ completed, paymentReference }: Payment): boolean {
  return completed && paymentReference === undefined
}

interface ViewProps {
  readonly payment: Payment
  /** It was there a moment ago and is no more. */
  readonly isGone: boolean
  readonly isStale: boolean
}

function PaymentView({ payment, isGone, isStale }: ViewProps) {
  const { gone, stale, states, inUsd } = paymentTexts
  const name = statusNameOf(payment.status)
  return (
    <div className="stack">
      {isGone && (
        <div className="notice bad" role="alert">
          <h2>{gone.title}</h2>
          <p>{gone.says}</p>
        </div>
      )}
      {isStale && (
        <p className="notice warn" role="status">
          {stale}
        </p>
      )}
      <p className="payment-lead row">
        {payment.reference !== undefined && <strong>{payment.reference}</strong>}
        {payment.amountInUsd !== undefined && (
          <span>
            <Usd value={payment.amountInUsd} /> <span className="quiet">{inUsd}</span>
          </span>
        )}
        <span>{states[payment.superseded ? 'superseded' : isAlone(payment) ? 'alone' : name]}</span>
      </p>
      <div className="payment-grid stack">
        <div className="stack">
          <Timeline payment={payment} isGone={isGone} />
          <PaymentRequestCard payment={payment} />
        </div>
        <div className="stack">
          <Where payment={payment} />
          <Who payment={payment} />
          <MoneyDetails payment={payment} />
          <Identifiers payment={payment} />
        </div>
      </div>
    </div>
  )
}
