import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type Payment, type PaymentRequest, WaybillCallError } from '@waybill/client'
import { useEffect, useRef, useState } from 'react'
import { isPayable, stateOf } from '../../shared/request-state.ts'
import { requestTexts } from '../../shared/texts.ts'
import { watched } from '../parts/away.tsx'
import { Card, Facts, Table } from '../parts/blocks.tsx'
import { isAboveZero } from '../parts/decimals.ts'
import { Button } from '../parts/fields.tsx'
import { useVisible } from '../parts/hooks.ts'
import { Link, LinkButton } from '../parts/link.tsx'
import { lastPlace } from '../parts/location.ts'
import { Empty, ErrorNotice, failureOf, isNotFound, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, AmountHeading, Copyable, MaybeAmount, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from './amounts-bar.tsx'
import { PayLink } from './pay-link.tsx'
import { RequestBadges, Warnings } from './request-badges.tsx'

const { one: texts } = requestTexts

export function RequestPage({ paymentReference }: { paymentReference: string }) {
  const waybill = useWaybill()
  const first = useQuery({
    queryKey: ['request', paymentReference],
    queryFn: ({ signal }) => waybill.getPaymentRequest({ paymentReference }, { signal }),
    // What the watch says is newer than another answer would be.
    staleTime: Number.POSITIVE_INFINITY,
    meta: watched,
  })
  const { isCut } = useWatchedRequest(paymentReference, first.isSuccess)
  const { data: request, error, refetch } = first
  const isUnknown = isNotFound(error)
  const failure = failureOf(first)
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
      {failure !== undefined && !isUnknown && <ErrorNotice error={failure} onRetry={() => void refetch()} />}
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
  const { reference, title, returnUrl, refundAddress, allowedPayers, expiresAt, cancelledAt } = request
  const quiet = (text: string) => <span className="quiet">{text}</span>
  return (
    <Card id="terms" title={texts.terms}>
      <Facts
        facts={[
          [fields.reference, reference === undefined ? quiet(noReference) : <Copyable value={reference} whole />],
          title === undefined ? undefined : [fields.title, title],
          [fields.amount, <Amount value={request.amount} currency={request.invoiceCurrency} whole />],
          [fields.paidIn, request.paymentCurrency],
          [fields.payee, <Copyable value={request.payee} whole />],
          [
            fields.refundAddress,
            refundAddress === undefined ? quiet(noRefundAddress) : <Copyable value={refundAddress} whole />,
          ],
          allowedPayers.length === 0
            ? undefined
            : [fields.allowedPayers, allowedPayers.map((payer) => <Copyable key={payer} value={payer} whole />)],
          returnUrl === undefined ? undefined : [fields.returnUrl, <Copyable value={returnUrl} whole />],
          ...Object.entries(request.metadata).map(([key, value]) => [key, <Copyable value={value} whole />] as const),
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

const { cancel: cancelTexts } = requestTexts

/** A button that asks first. The dialog is the browser's own: it holds the focus, closes on Escape and gives the focus back. */
function CancelDialog({ request: { paymentReference } }: { request: PaymentRequest }) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const dialog = useRef<HTMLDialogElement>(null)
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: () => waybill.cancelPaymentRequest({ paymentReference }),
    onSuccess: async (cancelled) => {
      dialog.current?.close()
      queries.setQueryData(['request', paymentReference], cancelled)
      await queries.invalidateQueries({ queryKey: ['requests'] })
    },
  })
  const open = () => {
    reset()
    dialog.current?.showModal()
  }
  return (
    <>
      <Button text={cancelTexts.open} onClick={open} />
      <dialog ref={dialog} aria-labelledby="cancel-title">
        <div className="stack">
          <h2 id="cancel-title">{cancelTexts.title}</h2>
          <ul className="bullets">
            {cancelTexts.says.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {error !== null && <ErrorNotice error={error} />}
          <div className="row dialog-actions">
            <Button text={cancelTexts.keep} autoFocus onClick={() => dialog.current?.close()} />
            <Button
              text={isPending ? cancelTexts.busy : cancelTexts.confirm}
              kind="danger"
              disabled={isPending}
              onClick={() => mutate()}
            />
          </div>
        </div>
      </dialog>
    </>
  )
}

/**
 * Keeps a request current while the page can be seen. The watch begins anew when somebody comes back, with the state of that moment, so nothing
 * waits for a connection that was cut meanwhile.
 *
 * @param isThere - the request exists
 * @returns whether the connection is being opened again
 */
function useWatchedRequest(paymentReference: string, isThere: boolean): { readonly isCut: boolean } {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const isVisible = useVisible()
  const [isCut, setCut] = useState(false)
  useEffect(() => {
    if (!isThere || !isVisible) return
    const left = new AbortController()
    const watch = async () => {
      const options = { signal: left.signal, onReconnect: () => setCut(true) }
      for await (const request of waybill.watchPaymentRequest(paymentReference, options)) {
        setCut(false)
        queries.setQueryData(['request', paymentReference], request)
      }
    }
    watch().catch((error: unknown) => {
      if (!left.signal.aborted && error instanceof WaybillCallError) setCut(true)
    })
    return () => left.abort()
  }, [waybill, queries, paymentReference, isThere, isVisible])
  return { isCut }
}

const MOST = 100

/** The payments that count for a request. They are asked for again whenever the request changes. */
function RequestPayments({ request }: { request: PaymentRequest }) {
  const waybill = useWaybill()
  const { paymentReference, status, paidAmount, pendingAmount, overpaidAmount } = request
  const query = useQuery({
    queryKey: ['request', paymentReference, 'payments', status, paidAmount, pendingAmount, overpaidAmount],
    queryFn: ({ signal }) => waybill.searchPayments({ paymentReference: [paymentReference], limit: MOST }, { signal }),
    placeholderData: keepPreviousData,
  })
  const { data, error, refetch } = query
  const failure = failureOf(query)
  return (
    <Card id="payments" title={texts.payments}>
      {failure !== undefined && <ErrorNotice error={failure} onRetry={() => void refetch()} />}
      {error === null && data === undefined && <Waiting lines={2} />}
      {data !== undefined && <Found payments={data.payments} hasMore={data.pagination?.hasMore === true} />}
    </Card>
  )
}

function Found({ payments, hasMore }: { payments: readonly Payment[]; hasMore: boolean }) {
  const { noPayments, morePayments, payments: title, paymentColumns } = texts
  if (payments.length === 0) return <p className="quiet">{noPayments}</p>
  const rows = payments.map((payment) => [
    <Link to={`/payments/${payment.id}`} className="row-link">
      <Time at={payment.timestamp} />
    </Link>,
    <PaymentBadge status={payment.status} superseded={payment.superseded} />,
    <Amount value={payment.amount} currency={payment.currency} />,
    <MaybeAmount value={payment.invoiceAmount} currency={payment.invoiceCurrency} />,
    <Copyable value={payment.payer} />,
  ])
  return (
    <>
      <Table
        label={title}
        columns={paymentColumns}
        rows={rows}
        links={payments.map(({ id }) => `/payments/${id}`)}
        numbers={[2, 3]}
      />
      {hasMore && <p className="small quiet">{morePayments}</p>}
    </>
  )
}
