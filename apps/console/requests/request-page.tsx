import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Payment, PaymentRequest } from '@waybill/client'
import { useEffect, useState } from 'react'
import { isAboveZero } from '../../shared/decimals.ts'
import { isPayable, stateOf } from '../../shared/request-state.ts'
import { consoleTexts, requestTexts, stateTexts } from '../../shared/texts.ts'
import { watched } from '../parts/away.tsx'
import { Card, Facts, Table } from '../parts/blocks.tsx'
import { Button } from '../parts/fields.tsx'
import { useVisible } from '../parts/hooks.ts'
import { Link, LinkButton } from '../parts/link.tsx'
import { lastPlace, placeOf } from '../parts/location.ts'
import { Answer, Empty, ErrorNotice, isNotFound } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, AmountHeading, Copyable, Time } from '../parts/shown-values.tsx'
import { useAction, useWaybill } from '../parts/signed-in.tsx'
import { AmountsBar } from './amounts-bar.tsx'
import { PayLink } from './pay-link.tsx'
import { RequestBadges, Warnings } from './request-badges.tsx'

const { one: texts, list, create } = requestTexts

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
  const { data: request } = first
  const name = request?.reference ?? paymentReference
  return (
    <Page
      title={request === undefined ? texts.title : `${texts.title} ${name}`}
      heading={request === undefined ? texts.title : heading(request)}
      back={{ to: lastPlace('requests'), title: list.title }}
      actions={request !== undefined && <Actions request={request} />}
    >
      {isNotFound(first.error) ? (
        <NotFound paymentReference={paymentReference} />
      ) : (
        <Answer query={first} lines={16}>
          {(found) => <RequestView request={found} isCut={isCut} />}
        </Answer>
      )}
    </Page>
  )
}

function NotFound({ paymentReference }: { paymentReference: string }) {
  return (
    <Empty title={texts.notFound.title}>
      <p className="mono">{paymentReference}</p>
      <p>{texts.notFound.says}</p>
      <LinkButton to="/requests" text={list.title} />
    </Empty>
  )
}

const heading = (request: PaymentRequest) => (
  <AmountHeading value={request.amount} currency={request.invoiceCurrency}>
    <RequestBadges request={request} />
  </AmountHeading>
)

/** What helps to be paid, while something is to be paid. */
function Actions({ request: { paymentReference, status } }: { request: PaymentRequest }) {
  const queries = useQueryClient()
  const cancel = useAction(
    ['requests'],
    (waybill) => waybill.cancelPaymentRequest({ paymentReference }),
    (cancelled) => queries.setQueryData(['request', paymentReference], cancelled),
  )
  if (!isPayable(stateOf({ status }))) return undefined
  return (
    <>
      {cancel.error !== null && <ErrorNotice error={cancel.error} />}
      <LinkButton to={placeOf('/why', { request: paymentReference })} text={consoleTexts.nav.why} />
      <Button
        text={texts.cancel}
        disabled={cancel.isPending}
        onClick={() => confirm(texts.cancelSure) && cancel.mutate()}
      />
    </>
  )
}

function RequestView({ request, isCut }: { request: PaymentRequest; isCut: boolean }) {
  return (
    <div className="stack">
      <p className="payment-lead row gap-3">
        {request.reference !== undefined && <strong>{request.reference}</strong>}
        <span>{isAboveZero(request.overpaidAmount) ? texts.overpaid : texts.states[stateOf(request)]}</span>
      </p>
      <Warnings request={request} />
      <section className="card" aria-label={texts.money}>
        <AmountsBar request={request} />
        <p className={`live small quiet ${isCut ? 'warn' : 'good'}`} role="status">
          {isCut ? texts.reconnecting : texts.live}
        </p>
      </section>
      <div className="split row">
        <div className="most stack">
          <RequestPayments request={request} />
          <Terms request={request} />
        </div>
        <PayLink request={request} />
      </div>
    </div>
  )
}

function Terms({ request }: { request: PaymentRequest }) {
  const { fields, noReference, noRefundAddress } = texts
  const typed = create.fields
  const { reference, title, returnUrl, refundAddress, allowedPayers, expiresAt, cancelledAt } = request
  const quiet = (text: string) => <span className="quiet">{text}</span>
  return (
    <Card id="terms" title={texts.terms}>
      <Facts
        facts={[
          [typed.reference.label, reference === undefined ? quiet(noReference) : <Copyable value={reference} whole />],
          title === undefined ? undefined : [typed.title.label, title],
          [typed.amount.label, <Amount value={request.amount} currency={request.invoiceCurrency} whole />],
          [typed.paymentCurrency.label, request.paymentCurrency],
          [typed.payee.label, <Copyable value={request.payee} whole />],
          [
            typed.refundAddress.label,
            refundAddress === undefined ? quiet(noRefundAddress) : <Copyable value={refundAddress} whole />,
          ],
          allowedPayers.length === 0
            ? undefined
            : [typed.allowedPayers.label, allowedPayers.map((payer) => <Copyable key={payer} value={payer} whole />)],
          returnUrl === undefined ? undefined : [typed.returnUrl.label, <Copyable value={returnUrl} whole />],
          ...Object.entries(request.metadata).map(([key, value]) => [key, <Copyable value={value} whole />] as const),
          [fields.created, <Time at={request.createdAt} />],
          [typed.expiresAt.label, expiresAt === undefined ? quiet(list.never) : <Time at={expiresAt} />],
          cancelledAt && [stateTexts.request.CANCELLED, <Time at={cancelledAt} />],
          [fields.requestId, <Copyable value={request.requestId} whole />],
          [fields.salt, <Copyable value={request.salt} whole />],
        ]}
      />
    </Card>
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
    // No other watch would help: the answer says why.
    watch().catch(() => {
      if (left.signal.aborted) return
      setCut(true)
      void queries.invalidateQueries({ queryKey: ['request', paymentReference] })
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
  return (
    <Card id="payments" title={texts.payments}>
      <Answer query={query} lines={2}>
        {({ payments, pagination }) => <Found payments={payments} hasMore={pagination?.hasMore === true} />}
      </Answer>
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
    <Amount value={payment.invoiceAmount} currency={payment.invoiceCurrency} />,
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
