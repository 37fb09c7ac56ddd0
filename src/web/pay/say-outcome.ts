import { type PayOutcome, WaybillCallError } from '@waybill/client/checkout'
import { formatAmount } from '../look/format-amount.ts'
import { payTexts } from '../look/texts.ts'

/** What a payer is told of how his payment ended. */
export interface OutcomeWords {
  readonly title: string
  readonly says: string
  readonly tone: '' | 'good' | 'warn' | 'bad' | 'busy'
  /** Whether he may try again: nothing was paid. */
  readonly mayRetry: boolean
}

export function sayOutcome(end: PayOutcome): OutcomeWords {
  const texts = payTexts.outcomes
  switch (end.outcome) {
    case 'MINED':
      return { ...texts.MINED, tone: 'busy', mayRetry: false }
    case 'SENT':
      return { ...texts.SENT, tone: 'busy', mayRetry: false }
    case 'UNKNOWN':
      return { ...(end.reason === 'REPLACED' ? texts.REPLACED : texts.UNKNOWN), tone: 'warn', mayRetry: false }
    case 'REFUSED':
      return { ...texts.REFUSED, tone: '', mayRetry: true }
    case 'REVERTED':
      return { ...texts.REVERTED, tone: 'bad', mayRetry: true }
    case 'EXPIRED':
      return { ...texts.EXPIRED, tone: 'warn', mayRetry: true }
    case 'QUOTE_CHANGED': {
      const { title, says } = texts.QUOTE_CHANGED
      const { newQuote: fresh } = end
      const now = fresh === undefined ? undefined : `${formatAmount(fresh.sourceAmount)} ${fresh.token}`
      return { title, says: says(now), tone: 'warn', mayRetry: true }
    }
    case 'FAILED': {
      const { title, says, wallet } = texts[end.reason]
      return { title, says: wallet ? `${says} ${texts.walletSays(end.message)}` : says, tone: 'bad', mayRetry: true }
    }
  }
}

/** What a payer is told when the service gave no transactions: nothing was asked of the wallet. */
export function sayError(error: Error): OutcomeWords {
  const { COVERED, NO_ANSWER } = payTexts.outcomes
  if (!(error instanceof WaybillCallError)) return { ...NO_ANSWER, tone: 'bad', mayRetry: true }
  if (error.reason === 'REQUEST_COVERED') return { ...COVERED, tone: 'warn', mayRetry: false }
  // The service's own words say what is wrong and what to do.
  const says = error.reason === '' ? NO_ANSWER.says : error.message
  return { title: NO_ANSWER.title, says, tone: 'bad', mayRetry: true }
}
