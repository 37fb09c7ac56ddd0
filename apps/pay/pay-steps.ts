import type { PaymentCalldata, PayProgress } from '@waybill/client/checkout'
import { formatAmount } from '../shared/format-amount.ts'
import { shortAddress } from '../shared/sentence.ts'
import { payTexts } from '../shared/texts.ts'

/** One line of what happens while a payment is made. */
export interface PayStep {
  readonly id: string
  readonly says: string
  readonly state: 'NOW' | 'DONE'
}

/** The steps so far, after one more event: what came before is done. */
export function addProgress(steps: readonly PayStep[], event: PayProgress): readonly PayStep[] {
  const next = stepOf(event)
  if (next === undefined) return steps
  const before = steps.filter(({ id }) => id !== next.id).map((step) => ({ ...step, state: 'DONE' as const }))
  return [...before, next]
}

/** Addresses within a sentence, shortened. */
function shorten(sentence: string): string {
  return sentence.replaceAll(/0x[0-9a-fA-F]{40}/g, (address) => shortAddress(address))
}

/** A swap may take more than its quote: the payer sees the limit. */
function sayQuote({ maxSourceAmount, route }: PaymentCalldata): string {
  return maxSourceAmount === route?.sourceAmount || route === undefined
    ? payTexts.steps.quoted
    : payTexts.steps.atMost(`${formatAmount(maxSourceAmount)} ${route.token}`)
}

function stepOf(event: PayProgress): PayStep | undefined {
  const { steps } = payTexts
  const now = (id: string, says: string): PayStep => ({ id, says, state: 'NOW' })
  switch (event.type) {
    case 'WAITING_FOR_EARLIER':
      return now('earlier', steps.earlier)
    case 'QUOTED':
      return now('quote', sayQuote(event.quote))
    case 'SWITCHING_CHAIN':
      return now('chain', steps.chain)
    case 'ASKING':
      return now(`ask-${event.step}`, steps.asking(event.step, event.steps, shorten(event.message)))
    case 'ASKING_BATCH':
      return now('batch', steps.batch(event.steps))
    case 'FALLING_BACK':
      return now('fall-back', steps.fallBack)
    case 'SENT':
      return now(`sent-${event.step}`, steps.sent(event.step))
    case 'BATCH_SENT':
      return now('batch-sent', steps.sent(1))
    case 'STEP_MINED':
      return { id: `sent-${event.step}`, says: steps.mined(event.step), state: 'DONE' }
    case 'QUOTE_EXPIRED':
      return now('quote', steps.expired)
  }
}
