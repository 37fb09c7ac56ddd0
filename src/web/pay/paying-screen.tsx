/** @jsxImportSource preact */
import type { Route } from '@waybill/client/checkout'
import { formatAmount } from '../look/format-amount.ts'
import { payTexts } from '../look/texts.ts'
import { type OutcomeWords, sayError, sayOutcome } from './say-outcome.ts'
import { Screen, Transaction } from './screen-parts.tsx'
import type { MadePayment, PaymentEnd } from './use-payment.ts'

interface PayingProps {
  readonly payment: MadePayment
  /** Whether something is left to pay although this payment is on the chain. */
  readonly isMoreLeft: boolean
  readonly onBack: () => void
  readonly onAgain: (route: Route) => void
}

/** Each step of a payment, and how it ended. The request's own state then takes over. */
export function PayingScreen({ payment, isMoreLeft, onBack, onAgain }: PayingProps) {
  const { steps, end, hashes, explorer } = payment
  const { title, says, tone, mayRetry } = end === undefined ? WAITING : wordsOf(end)
  const fresh = end === undefined ? undefined : newQuoteOf(end)
  const hash = hashes.at(-1)
  return (
    <Screen title={title} tone={tone}>
      <ol class="steps" aria-live="polite">
        {steps.map(({ id, says: line, state }) => (
          <li key={id} class={state === 'DONE' || tone === 'busy' ? 'done' : end === undefined ? 'now' : 'stopped'}>
            {line}
          </li>
        ))}
      </ol>
      {end === undefined ? <progress aria-label={payTexts.steps.title} /> : <p role="status">{says}</p>}
      {hash !== undefined && <Transaction hash={hash} explorer={explorer} />}
      {fresh !== undefined && (
        <button type="button" class="button main pay-button" onClick={() => onAgain(fresh)}>
          {payTexts.routes.pay(`${formatAmount(fresh.sourceAmount)} ${fresh.token}`)}
        </button>
      )}
      {(mayRetry || isMoreLeft) && (
        <button type="button" class={fresh === undefined ? 'button main' : 'button'} onClick={onBack}>
          {isMoreLeft ? payTexts.outcomes.more : payTexts.outcomes.back}
        </button>
      )}
    </Screen>
  )
}

const WAITING = { title: payTexts.steps.title, says: '', tone: '', mayRetry: false }

const wordsOf = (end: PaymentEnd): OutcomeWords => ('outcome' in end ? sayOutcome(end.outcome) : sayError(end.error))

function newQuoteOf(end: PaymentEnd): Route | undefined {
  return 'outcome' in end && end.outcome.outcome === 'QUOTE_CHANGED' ? end.outcome.newQuote : undefined
}
