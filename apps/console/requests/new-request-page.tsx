import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { PaymentSummary_GroupBy as GroupBy, type PaymentRequest, type Waybill, WaybillCallError } from '@waybill/client'
import { useEffect, useRef, useState } from 'react'
import { viewerZone } from '../../shared/format-time.ts'
import { requestTexts } from '../../shared/texts.ts'
import { aside } from '../parts/away.tsx'
import { Button, Form, type SuggestedValue, TextField, type TextFieldProps } from '../parts/fields.tsx'
import { LinkButton } from '../parts/link.tsx'
import { lastPlace } from '../parts/location.ts'
import { ErrorNotice } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { PayLink } from './pay-link.tsx'
import { Warnings } from './request-badges.tsx'
import { localMinuteIn, noTerms, sayViolations, type TermName, type TypedTerms, termsOf } from './typed-terms.ts'

const { create: texts } = requestTexts

export function NewRequestPage() {
  const [created, setCreated] = useState<PaymentRequest>()
  return (
    <Page title={texts.title} back={{ to: lastPlace('requests'), title: texts.back }}>
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
  const [typed, setTyped] = useState<TypedTerms>(noTerms)
  const { create, isPending, error } = useCreate(onCreated)
  const form = useRef<HTMLFormElement>(null)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const wrong = sayViolations(violations, typed.amount)
  useEffect(() => {
    if (error !== null) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [error])
  const field = (name: TermName) => ({
    value: typed[name],
    onType: (value: string) => setTyped((before) => ({ ...before, [name]: value })),
    wrong: wrong[name],
    isSaidElsewhere: true,
  })
  return (
    <Form ref={form} className="stack narrow request-form" noValidate onSend={() => create(typed)}>
      {error !== null && violations.length === 0 && <ErrorNotice error={error} />}
      {violations.length > 0 && (
        <p className="notice bad" role="alert">
          {texts.other(Object.keys(wrong).length)}
        </p>
      )}
      <Terms field={field} />
      <Optional field={field} />
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
  const { mutate, isPending, error } = useMutation({
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
  const create = (typed: TypedTerms) => {
    if (!isPending) mutate(typed)
  }
  return { create, isPending, error }
}

/** `crypto.randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

interface PartProps {
  readonly field: (name: TermName) => Pick<TextFieldProps, 'value' | 'onType' | 'wrong' | 'isSaidElsewhere'>
}

function Terms({ field }: PartProps) {
  const { paymentCurrencies, payees } = useCompletion()
  const { amount, invoiceCurrency, paymentCurrency, payee } = texts.fields
  const paidIn = field('paymentCurrency')
  return (
    <section className="card stack" aria-labelledby="what">
      <h2 id="what">{texts.what}</h2>
      <div className="request-pair">
        <TextField {...amount} {...field('amount')} required inputMode="decimal" />
        <TextField
          {...invoiceCurrency}
          {...field('invoiceCurrency')}
          suggestions={invoiceCurrencies(paidIn.value.trim())}
        />
      </div>
      <TextField
        {...paymentCurrency}
        {...paidIn}
        suggestions={paymentCurrencies.map((value) => ({ value }))}
        required
      />
      <TextField {...payee} {...field('payee')} suggestions={payees.map((value) => ({ value }))} required isMono />
    </section>
  )
}

function Optional({ field }: PartProps) {
  const { reference, title, returnUrl, refundAddress, allowedPayers, expiresAt } = texts.fields
  return (
    <section className="card stack" aria-labelledby="more">
      <h2 id="more">{texts.more}</h2>
      <TextField {...reference} {...field('reference')} />
      <TextField {...title} {...field('title')} />
      <div>
        <TextField
          label={expiresAt.label}
          help={expiresAt.help(viewerZone())}
          {...field('expiresAt')}
          type="datetime-local"
        />
        <Soon onChoose={field('expiresAt').onType} />
      </div>
      <TextField {...refundAddress} {...field('refundAddress')} isMono />
      <TextField {...allowedPayers} {...field('allowedPayers')} isMono />
      <TextField {...returnUrl} {...field('returnUrl')} inputMode="url" />
    </section>
  )
}

function Soon({ onChoose }: { onChoose: (value: string) => void }) {
  const { label, hours: say, never } = texts.soon
  return (
    <div className="row request-soon" role="group" aria-label={label}>
      {[1, 24, 7 * 24, 30 * 24].map((hours) => (
        <Button key={hours} text={say(hours)} kind="plain" onClick={() => onChoose(localMinuteIn(hours, new Date()))} />
      ))}
      <Button text={never} kind="plain" onClick={() => onChoose('')} />
    </div>
  )
}

/** Currencies in which many shops write invoices. Others can be typed. */
const FIAT = 'USD EUR GBP CHF JPY CAD AUD NZD SGD HKD CNY INR KRW BRL MXN ZAR SEK NOK DKK PLN CZK'.split(' ')
/** Where an account has none of its own yet. */
const USUAL_TOKENS = ['USDC', 'USDT', 'DAI']

/** What the fields of a new request are completed with. */
interface Completion {
  /** `USDC-BASE`, those of the account's own requests and payments first. */
  readonly paymentCurrencies: readonly string[]
  readonly payees: readonly string[]
}

/** Payment currencies and payees that the account has used, and usual tokens of the chains that are served. */
function useCompletion(): Completion {
  const waybill = useWaybill()
  const { data } = useQuery({
    queryKey: ['completion'],
    meta: aside,
    queryFn: ({ signal }) => readCompletion(waybill, signal),
    staleTime: 60_000,
  })
  return data ?? { paymentCurrencies: [], payees: [] }
}

async function readCompletion(waybill: Waybill, signal: AbortSignal): Promise<Completion> {
  // Each needs a scope of its own; without it there is less to complete with.
  const [listed, paid, chains] = await Promise.all([
    waybill.listPaymentRequests({ limit: 100 }, { signal }).catch(() => undefined),
    waybill.summarizePayments({ groupBy: [GroupBy.CURRENCY] }, { signal }).catch(() => undefined),
    waybill.listChains({}, { signal }).catch(() => undefined),
  ])
  const requests = listed?.requests ?? []
  const used = [
    ...requests.map(({ paymentCurrency }) => paymentCurrency),
    ...(paid?.groups ?? []).flatMap(({ currency = [] }) => currency),
  ]
  const usual = (chains?.chains ?? []).flatMap(({ network }) => USUAL_TOKENS.map((symbol) => `${symbol}-${network}`))
  return {
    paymentCurrencies: [...new Set([...used.toSorted(), ...usual])],
    payees: [...new Set(requests.map(({ payee }) => payee))],
  }
}

/** The payment currency, then fiat by its name in the viewer's language. */
function invoiceCurrencies(paymentCurrency: string): readonly SuggestedValue[] {
  const names = new Intl.DisplayNames(undefined, { type: 'currency' })
  const fiat = FIAT.map((code) => ({ value: code, says: names.of(code) ?? code }))
  return paymentCurrency === '' ? fiat : [{ value: paymentCurrency, says: '' }, ...fiat]
}
