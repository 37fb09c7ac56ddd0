import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type PaymentRequest, WaybillCallError } from '@waybill/client'
import { type HTMLAttributes, useEffect, useId, useRef, useState } from 'react'
import { viewerZone } from '../../look/format-time.ts'
import { requestTexts } from '../../look/texts.ts'
import { ErrorNotice } from '../parts/notices.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { invoiceCurrencies, useCompletion } from './known-currencies.ts'
import {
  localMinuteIn,
  noTerms,
  sayViolations,
  type TermName,
  type TypedTerms,
  termsOf,
} from './request-terms-input.ts'
import { SuggestField } from './suggest-field.tsx'

const { create: texts } = requestTexts

/** The terms of a new request. What is wrong stands at its field, in the words of the service. */
export function RequestForm({ onCreated }: { onCreated: (request: PaymentRequest) => void }) {
  const [typed, setTyped] = useState<TypedTerms>(noTerms)
  const { create, isPending, error } = useCreate(onCreated)
  const form = useRef<HTMLFormElement>(null)
  const violations = error instanceof WaybillCallError ? error.fieldViolations : []
  const wrong = sayViolations(violations, texts.required)
  useEffect(() => {
    if (error !== null) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [error])
  const type = (name: TermName) => (value: string) => setTyped((before) => ({ ...before, [name]: value }))
  return (
    <form
      ref={form}
      className="stack request-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        create(typed)
      }}
    >
      {error !== null && violations.length === 0 && <ErrorNotice error={error} />}
      {violations.length > 0 && (
        <p className="notice bad" role="alert">
          {texts.other}
        </p>
      )}
      <Terms typed={typed} wrong={wrong} type={type} />
      <Optional typed={typed} wrong={wrong} type={type} />
      <div className="row">
        <button type="submit" className="button main" aria-disabled={isPending}>
          {isPending ? texts.busy : texts.submit}
        </button>
      </div>
    </form>
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
  readonly typed: TypedTerms
  readonly wrong: Readonly<Partial<Record<TermName, string>>>
  readonly type: (name: TermName) => (value: string) => void
}

function Terms({ typed, wrong, type }: PartProps) {
  const { paymentCurrencies, payees } = useCompletion()
  const { amount, invoiceCurrency, paymentCurrency, payee } = texts.fields
  return (
    <section className="card stack" aria-labelledby="what">
      <h2 id="what">{texts.what}</h2>
      <div className="request-pair">
        <PlainField
          {...amount}
          value={typed.amount}
          onType={type('amount')}
          wrong={wrong.amount}
          isRequired
          inputMode="decimal"
        />
        <SuggestField
          {...invoiceCurrency}
          value={typed.invoiceCurrency}
          onType={type('invoiceCurrency')}
          suggestions={invoiceCurrencies(typed.paymentCurrency.trim())}
          wrong={wrong.invoiceCurrency}
        />
      </div>
      <SuggestField
        {...paymentCurrency}
        value={typed.paymentCurrency}
        onType={type('paymentCurrency')}
        suggestions={paymentCurrencies.map((value) => ({ value }))}
        wrong={wrong.paymentCurrency}
        isRequired
      />
      <SuggestField
        {...payee}
        value={typed.payee}
        onType={type('payee')}
        suggestions={payees.map((value) => ({ value }))}
        wrong={wrong.payee}
        isRequired
        isMono
      />
    </section>
  )
}

function Optional({ typed, wrong, type }: PartProps) {
  const { reference, refundAddress, expiresAt } = texts.fields
  return (
    <section className="card stack" aria-labelledby="more">
      <h2 id="more">{texts.more}</h2>
      <PlainField {...reference} value={typed.reference} onType={type('reference')} wrong={wrong.reference} />
      <div>
        <PlainField
          label={expiresAt.label}
          help={expiresAt.help(viewerZone())}
          value={typed.expiresAt}
          onType={type('expiresAt')}
          wrong={wrong.expiresAt}
          kind="datetime-local"
        />
        <Soon onChoose={type('expiresAt')} />
      </div>
      <PlainField
        {...refundAddress}
        value={typed.refundAddress}
        onType={type('refundAddress')}
        wrong={wrong.refundAddress}
        isMono
      />
    </section>
  )
}

function Soon({ onChoose }: { onChoose: (value: string) => void }) {
  const { label, hours: say, never } = texts.soon
  return (
    <div className="row request-soon" role="group" aria-label={label}>
      {[1, 24, 7 * 24, 30 * 24].map((hours) => (
        <button
          key={hours}
          type="button"
          className="button plain"
          onClick={() => onChoose(localMinuteIn(hours, new Date()))}
        >
          {say(hours)}
        </button>
      ))}
      <button type="button" className="button plain" onClick={() => onChoose('')}>
        {never}
      </button>
    </div>
  )
}

interface PlainFieldProps {
  readonly label: string
  readonly help: string
  readonly value: string
  readonly onType: (value: string) => void
  readonly wrong: string | undefined
  readonly kind?: 'text' | 'datetime-local'
  readonly inputMode?: HTMLAttributes<HTMLInputElement>['inputMode']
  readonly isRequired?: boolean
  readonly isMono?: boolean
}

function PlainField(props: PlainFieldProps) {
  const { label, help, value, onType, wrong, kind = 'text', inputMode, isRequired = false, isMono = false } = props
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className={isMono ? 'input mono' : 'input'}
        type={kind}
        inputMode={inputMode}
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
        required={isRequired}
        value={value}
        aria-invalid={wrong !== undefined}
        aria-describedby={`${id}-wrong ${id}-help`}
        onChange={(event) => onType(event.target.value)}
      />
      <p id={`${id}-wrong`} className="wrong" hidden={wrong === undefined}>
        {wrong}
      </p>
      <p id={`${id}-help`} className="quiet small">
        {help}
      </p>
    </div>
  )
}
