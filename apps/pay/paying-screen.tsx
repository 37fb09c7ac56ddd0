/** @jsxImportSource preact */
import type { Route } from '@waybill/client/checkout'
import type { AskedBefore } from '@waybill/client/wallet'
import { formatAmount } from '../shared/format-amount.ts'
import { payTexts } from './language.ts'
import { type OutcomeWords, sayAsked, sayOutcome } from './say-outcome.ts'
import { Button, Screen, Transaction, useSilence } from './screen-parts.tsx'
import type { MadePayment } from './use-payment.ts'

interface PayingProps {
  readonly payment: MadePayment
  /** Whether something is left to pay although this payment is on the chain. */
  readonly isMoreLeft: boolean
  readonly onBack: () => void
  /** Waits once more for what was sent. */
  readonly onCheck: () => void
  readonly onAgain: (route: Route) => void
  /** The payer says that the wallet has sent nothing and shows no question. */
  readonly onAskAgain: () => void
  /** The payer waits no longer for the wallet. */
  readonly onStop: () => void
}

/** Each step of a payment, and how it ended. The request's own state then takes over. */
export function PayingScreen({ payment, isMoreLeft, onBack, onCheck, onAgain, onAskAgain, onStop }: PayingProps) {
  const { steps, end, hashes, explorer, isAsking } = payment
  const { title, says, tone, mayRetry, again } = end === undefined ? waiting() : sayOutcome(end, payment.route?.chain)
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
      {hash !== undefined && (
        <p class="small quiet">
          {payTexts.transaction} <Transaction hash={hash} explorer={explorer} />
        </p>
      )}
      {fresh !== undefined && (
        <Button
          text={payTexts.payNow(`${formatAmount(fresh.sourceAmount)} ${fresh.token}`)}
          kind="main pay-button"
          onClick={() => onAgain(fresh)}
        />
      )}
      {(mayRetry || isMoreLeft) && (
        <Button
          text={isMoreLeft ? payTexts.states.PARTIALLY_PAID : payTexts.backToWays}
          kind={fresh === undefined ? 'main' : ''}
          onClick={onBack}
        />
      )}
      {end?.outcome === 'SENT' && <Button text={payTexts.steps.check} onClick={onCheck} />}
      {again !== undefined && !isMoreLeft && <Button text={again} onClick={onAskAgain} />}
    </Screen>
  )
}

/** A question that a wallet may still show, of before a reload or of another tab: the page asks no other unless the payer says so. */
export function AskedScreen({ asked, onAskAgain }: { asked: AskedBefore; onAskAgain: () => void }) {
  const { title, says, tone, again = '' } = sayAsked(asked)
  return (
    <Screen title={title} tone={tone}>
      <p role="status">{says}</p>
      <Button text={again} onClick={onAskAgain} />
    </Screen>
  )
}

const waiting = (): OutcomeWords => ({ title: payTexts.steps.title, says: '', tone: '', mayRetry: false })
