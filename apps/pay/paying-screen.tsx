/** @jsxImportSource preact */
import type { Route } from '@waybill/client/checkout'
import type { ComponentChildren } from 'preact'
import { formatAmount } from '../shared/format-amount.ts'
import { payTexts } from './language.ts'
import { type OutcomeWords, sayOutcome } from './say-outcome.ts'
import { Button, Screen, SentTransaction, useSilence } from './screen-parts.tsx'
import type { MadePayment } from './use-payment.ts'

interface PayingProps {
  readonly payment: MadePayment
  /** Whether the request's sums hold this payment. */
  readonly isCounted: boolean
  /** The chain on which the payee is paid. */
  readonly network: string
  /** Something is left to pay although this payment counts. */
  readonly onPayRest: () => void
  readonly onBack: () => void
  /** Waits once more for what was sent. */
  readonly onCheck: () => void
  readonly onAgain: (route: Route) => void
  /** The payer says that the wallet has sent nothing and shows no question, or that it has come back. */
  readonly onAskAgain: () => void
  /** The payer waits no longer for the wallet. */
  readonly onStop: () => void
}

/** After this time a payment that was sent and does not count may have failed behind a bridge, or by a reorg. */
const OVERDUE_MS = 60_000

/** Each step of a payment, and how it ended. The request's own state then takes over. */
export function PayingScreen(props: PayingProps) {
  const { payment, isCounted, network, onPayRest, onBack, onCheck, onAgain, onAskAgain, onStop } = props
  const { steps, end, hashes, quote, route, isAsking } = payment
  const { title, says, tone, mayRetry, again } = end === undefined ? waiting() : sayOutcome(end, { route, network })
  const hasPaid = end?.outcome === 'MINED' || end?.outcome === 'SENT'
  const isOverdue = useSilence(hasPaid && !isCounted ? end.outcome : undefined, OVERDUE_MS)
  const isMoreLeft = hasPaid && isCounted
  const isSilent = useSilence(isAsking && end === undefined ? steps.at(-1)?.id : undefined)
  const fresh = end?.outcome === 'QUOTE_CHANGED' ? end.newQuote : undefined
  const hash = hashes.at(-1)
  return (
    <Screen title={title} tone={tone}>
      <ol class="steps stack gap-2" aria-live="polite">
        {steps.map(({ id, says: line, state }) => (
          <li key={id} class={state === 'DONE' || tone === 'busy' ? 'done' : end === undefined ? 'now' : 'stopped'}>
            {line}
          </li>
        ))}
      </ol>
      {end === undefined ? <progress aria-label={payTexts.steps.title} /> : <p role="status">{says}</p>}
      {isSilent && (
        <div class="notice warn stack gap-2" role="status">
          <p>{payTexts.steps.silent}</p>
          <Button text={payTexts.steps.stop} onClick={onStop} />
        </div>
      )}
      {isOverdue && (
        <div class="notice warn stack gap-2" role="status">
          <p>{payTexts.underWay.next}</p>
          <Button text={payTexts.underWay.again} onClick={onAskAgain} />
        </div>
      )}
      <SentTransaction hash={hash} explorer={quote?.explorer?.transaction} />
      {fresh !== undefined && (
        <Button
          text={payTexts.payNow(`${formatAmount(fresh.sourceAmount)} ${fresh.token}`)}
          kind="main pay-button"
          onClick={() => onAgain(fresh)}
        />
      )}
      {isMoreLeft && <Button text={payTexts.states.PARTIALLY_PAID} kind="main" onClick={onPayRest} />}
      {mayRetry && <Button text={payTexts.backToWays} kind={fresh === undefined ? 'main' : ''} onClick={onBack} />}
      {end?.outcome === 'SENT' && <Button text={payTexts.steps.check} onClick={onCheck} />}
      {again !== undefined && <Button text={again} onClick={onAskAgain} />}
    </Screen>
  )
}

interface AskedProps {
  readonly words: OutcomeWords
  readonly children?: ComponentChildren
  readonly onAskAgain: () => void
}

/** What a wallet was asked for or has paid, before a reload or in another tab: the page asks for no more unless the payer says so. */
export function AskedScreen({ words: { title, says, tone, again = '' }, children, onAskAgain }: AskedProps) {
  return (
    <Screen title={title} tone={tone}>
      <p role="status">{says}</p>
      {children}
      <Button text={again} onClick={onAskAgain} />
    </Screen>
  )
}

const waiting = (): OutcomeWords => ({ title: payTexts.steps.title, says: '', tone: '', mayRetry: false })
