import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Payment, PaymentRequest } from '@waybill/client'
import { requestTexts } from '../../look/texts.ts'
import { Link } from '../parts/link.tsx'
import { ErrorNotice, Waiting } from '../parts/notices.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, Copyable, Time, Unknown } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'

const { one: texts } = requestTexts
const MOST = 100

/** The payments that count for a request. They are asked for again whenever the request changes. */
export function RequestPayments({ request }: { request: PaymentRequest }) {
  const waybill = useWaybill()
  const { paymentReference, status, paidAmount, pendingAmount, overpaidAmount } = request
  const { data, error, refetch } = useQuery({
    queryKey: ['request', paymentReference, 'payments', status, paidAmount, pendingAmount, overpaidAmount],
    queryFn: ({ signal }) => waybill.searchPayments({ paymentReference: [paymentReference], limit: MOST }, { signal }),
    placeholderData: keepPreviousData,
  })
  return (
    <section className="card" aria-labelledby="payments">
      <h2 id="payments">{texts.payments}</h2>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {error === null && data === undefined && <Waiting lines={2} />}
      {data !== undefined && <Found payments={data.payments} hasMore={data.pagination?.hasMore === true} />}
    </section>
  )
}

function Found({ payments, hasMore }: { payments: readonly Payment[]; hasMore: boolean }) {
  const { noPayments, morePayments, payments: title, paymentColumns: columns } = texts
  if (payments.length === 0) return <p className="quiet">{noPayments}</p>
  return (
    <>
      <div className="table-scroll" role="group" tabIndex={0} aria-label={title}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{columns.time}</th>
              <th scope="col">{columns.state}</th>
              <th scope="col" className="right">
                {columns.amount}
              </th>
              <th scope="col" className="right">
                {columns.counts}
              </th>
              <th scope="col">{columns.payer}</th>
            </tr>
          </thead>
          <tbody>
            {payments.map((payment) => (
              <Row key={payment.id} payment={payment} />
            ))}
          </tbody>
        </table>
      </div>
      {hasMore && <p className="small quiet">{morePayments}</p>}
    </>
  )
}

function Row({ payment }: { payment: Payment }) {
  const { id, amount, currency, invoiceAmount, invoiceCurrency } = payment
  return (
    <tr>
      <td>
        <Link to={`/payments/${id}`}>
          <Time at={payment.timestamp} />
        </Link>
      </td>
      <td>
        <PaymentBadge status={payment.status} superseded={payment.superseded} />
      </td>
      <td className="right">
        <Amount value={amount} currency={currency} />
      </td>
      <td className="right">
        {invoiceAmount === undefined || invoiceCurrency === undefined ? (
          <Unknown />
        ) : (
          <Amount value={invoiceAmount} currency={invoiceCurrency} />
        )}
      </td>
      <td>
        <Copyable value={payment.payer} />
      </td>
    </tr>
  )
}
