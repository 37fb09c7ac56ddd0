/** @jsxImportSource preact */
import { type Checkout, type PayOutcome, pay, type Route } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { payTexts } from '../look/texts.ts'
import type { Connected } from './connect-screen.tsx'
import { addProgress, type PayStep } from './pay-steps.ts'
import { sayOutcome } from './say-outcome.ts'
import { Screen } from './screen-parts.tsx'

interface PayingProps {
  readonly checkout: Checkout
  readonly paymentReference: string
  readonly connected: Connected
  readonly route: Route
  readonly onBack: () => void
  /** Called with the transactions of the payment. */
  readonly onSent: (hashes: readonly string[]) => void
}

type End = { readonly outcome: PayOutcome } | { readonly error: Error }

/** Sends the payment, shows each step, and says how it ended. The request's own state then takes over. */
export function PayingScreen({ checkout, paymentReference, connected, route, onBack, onSent }: PayingProps) {
  const [steps, setSteps] = useState<readonly PayStep[]>([])
  const [end, setEnd] = useState<End>()
  useEffect(() => {
    pay({
      waybill: checkout,
      paymentReference,
      route,
      wallet: connected.address,
      provider: connected.provider,
      onProgress: (event) => setSteps((before) => addProgress(before, event)),
    }).then(
      (outcome) => {
        setEnd({ outcome })
        if ('transactionHashes' in outcome) onSent(outcome.transactionHashes)
      },
      (error: Error) => setEnd({ error }),
    )
  }, [checkout, paymentReference, connected, route])
  const { title, says, tone, mayRetry } = end === undefined ? { ...WAITING } : wordsOf(end)
  return (
    <Screen title={title} tone={tone}>
      <ol class="steps" aria-live="polite">
        {steps.map(({ id, says: line, state }) => (
          <li key={id} class={end === undefined && state === 'NOW' ? 'now' : 'done'}>
            {line}
          </li>
        ))}
      </ol>
      {end === undefined ? <progress aria-label={payTexts.steps.title} /> : <p role="status">{says}</p>}
      {mayRetry && (
        <button type="button" class="button main" onClick={onBack}>
          {payTexts.outcomes.back}
        </button>
      )}
    </Screen>
  )
}

const WAITING = { title: payTexts.steps.title, says: '', tone: '', mayRetry: false }

function wordsOf(end: End) {
  if ('outcome' in end) return sayOutcome(end.outcome)
  const { title, says } = payTexts.outcomes.FAILED
  return { title, says: `${says} ${end.error.message}`, tone: 'bad', mayRetry: true }
}
