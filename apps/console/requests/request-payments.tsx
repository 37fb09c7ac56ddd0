import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { Payment, PaymentRequest } from '@waybill/client'
import { requestTexts } from '../../shared/texts.ts'
import { Card, Table } from '../parts/blocks.tsx'
import { Link } from '../parts/link.tsx'
import { ErrorNotice, Waiting } from '../parts/notices.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, Copyable, MaybeAmount, Time } from '../parts/shown-values.tsx'
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
    <Card id="payments" title={texts.payments}>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {error === null && data === undefined && <Waiting lines={2} />}
      {data !== undefined && <Found payments={data.payments} hasMore={data.pagination?.hasMore === true} />}
    </Card>
  )
}

function Found({ payments, hasMore }: { payments: readonly Payment[]; hasMore: boolean }) {
  const { noPayments, morePayments, payments: title, paymentColumns } = texts
  if (payments.length === 0) return <p className="quiet">{noPayments}</p>
  const rows = payments.map((payment) => [
    <Link to={`/payments/${payment.id}`}>
      <Time at={payment.timestamp} />
    </Link>,
    <PaymentBadge status={payment.status} superseded={payment.superseded} />,
    <Amount value={payment.amount} currency={payment.currency} />,
    <MaybeAmount value={payment.invoiceAmount} currency={payment.invoiceCurrency} />,
    <Copyable value={payment.payer} />,
  ])
  return (
    <>
      <Table label={title} columns={paymentColumns} rows={rows} numbers={[2, 3]} />
      {hasMore && <p className="small quiet">{morePayments}</p>}
    </>
  )
}
