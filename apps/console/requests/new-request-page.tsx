import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type PaymentRequest, WaybillCallError } from '@waybill/client'
import { useEffect, useRef, useState } from 'react'
import { requestTexts } from '../../shared/texts.ts'
import { aside } from '../parts/away.tsx'
import { Button, Form, type SuggestedValue, TextField, textsOf } from '../parts/fields.tsx'
import { LinkButton } from '../parts/link.tsx'
import { lastPlace } from '../parts/location.ts'
import { ErrorNotice } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { PayLink } from './pay-link.tsx'
import { Warnings } from './request-badges.tsx'
import { sayViolations, type TermName, type TypedTerms, termNames, termsOf } from './typed-terms.ts'

const { create: texts, list } = requestTexts

export function NewRequestPage() {
  const [created, setCreated] = useState<PaymentRequest>()
  return (
    <Page title={list.create} back={{ to: lastPlace('requests'), title: list.title }}>
      {created === undefined ? (
        <RequestForm onCreated={setCreated} />
      ) : (
        <Created request={created} onAnother={() => setCreated(undefined)} />
      )}
    </Page>
  )
}

/** What to do with a request that has just been stored. */
function Created({ request, onAnother }: { request: PaymentRequest; onAnother: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <div className="stack narrow">
      <div className="notice good">
        <h2 ref={heading} tabIndex={-1}>
          {texts.done}
        </h2>
        <p>{request.warnings.length === 0 ? texts.doneLine : texts.doneInVain}</p>
      </div>
      <Warnings request={request} />
      <PayLink request={request} />
      <div className="row">
        <LinkButton to={`/requests/${request.paymentReference}`} text={texts.openIt} kind="main" />
        <Button text={texts.another} onClick={onAnother} />
      </div>
    </div>
  )
}

/** The terms of a new request. What is wrong stands at its field, in the words of the service. */
function RequestForm({ onCreated }: { onCreated: (request: PaymentRequest) => void }) {
  const { mutate, isPending, error, variables } = useCreate(onCreated)
  const { paymentCurrencies, payees } = useCompletion()
  const form = useRef<HTMLFormElement>(null)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const wrong = sayViolations(violations, variables?.amount ?? '')
  useEffect(() => {
    if (error !== null) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [error])
  const field = (name: TermName) => ({ ...texts.fields[name], name, wrong: wrong[name] })
  const send = (typed: FormData) => !isPending && mutate(textsOf(typed, termNames))
  return (
    <Form ref={form} className="stack narrow request-form" onSend={send}>
      {error !== null && violations.length === 0 && <ErrorNotice error={error} />}
      <section className="card stack" aria-labelledby="what">
        <h2 id="what">{texts.what}</h2>
        <div className="request-pair">
          <TextField {...field('amount')} required inputMode="decimal" />
          <TextField {...field('invoiceCurrency')} suggestions={fiatCurrencies()} />
        </div>
        <TextField {...field('paymentCurrency')} suggestions={paymentCurrencies} required />
        <TextField {...field('payee')} suggestions={payees} required isMono />
      </section>
      <section className="card stack" aria-labelledby="more">
        <h2 id="more">{texts.more}</h2>
        <TextField {...field('reference')} />
        <TextField {...field('title')} />
        <TextField {...field('expiresAt')} type="datetime-local" />
        <TextField {...field('refundAddress')} isMono />
        <TextField {...field('allowedPayers')} isMono />
        <TextField {...field('returnUrl')} inputMode="url" />
      </section>
      <div className="row">
        <Button text={isPending ? texts.busy : texts.submit} kind="main" type="submit" aria-disabled={isPending} />
      </div>
    </Form>
  )
}

/** Creates a request once, however often the button is pressed: equal terms go out under one key until the service has answered. */
function useCreate(onCreated: (request: PaymentRequest) => void) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  const sent = useRef<{ readonly terms: string; readonly key: string }>(undefined)
  return useMutation({
    mutationFn: (typed: TypedTerms) => {
      const terms = termsOf(typed)
      const text = JSON.stringify(terms)
      if (sent.current?.terms !== text) sent.current = { terms: text, key: randomKey() }
      return waybill.createPaymentRequest(terms, { headers: { 'idempotency-key': sent.current.key } })
    },
    onSuccess: (request) => {
      sent.current = undefined
      void queries.invalidateQueries({ queryKey: ['requests'] })
      onCreated(request)
    },
  })
}

/** `crypto.randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Currencies in which many shops write invoices. Others can be typed. */
const FIAT = 'USD EUR GBP CHF JPY CAD AUD NZD SGD HKD CNY INR KRW BRL MXN ZAR SEK NOK DKK PLN CZK'.split(' ')
/** Where an account has none of its own yet. */
const USUAL_TOKENS = ['USDC', 'USDT', 'DAI']

/** What the fields are completed with: payment currencies and payees that the account has used, and usual tokens of the chains that are served. */
function useCompletion() {
  const waybill = useWaybill()
  const { data } = useQuery({
    queryKey: ['completion'],
    meta: aside,
    queryFn: async ({ signal }) => {
      // Each needs a scope of its own; without it there is less to complete with.
      const [listed, served] = await Promise.all([
        waybill.listPaymentRequests({ limit: 100 }, { signal }).catch(() => undefined),
        waybill.listChains({}, { signal }).catch(() => undefined),
      ])
      const requests = listed?.requests ?? []
      const usual = (served?.chains ?? []).flatMap(({ network }) =>
        USUAL_TOKENS.map((symbol) => `${symbol}-${network}`),
      )
      return {
        paymentCurrencies: suggestionsOf([
          ...requests.map(({ paymentCurrency }) => paymentCurrency).toSorted(),
          ...usual,
        ]),
        payees: suggestionsOf(requests.map(({ payee }) => payee)),
      }
    },
    staleTime: 60_000,
  })
  return data ?? { paymentCurrencies: [], payees: [] }
}

const suggestionsOf = (values: readonly string[]): SuggestedValue[] => [...new Set(values)].map((value) => ({ value }))

/** By their names in the viewer's language. */
function fiatCurrencies(): readonly SuggestedValue[] {
  const names = new Intl.DisplayNames(undefined, { type: 'currency' })
  return FIAT.map((code) => ({ value: code, says: names.of(code) ?? code }))
}
