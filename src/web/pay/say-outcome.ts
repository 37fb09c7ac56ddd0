import type { PayOutcome } from '@waybill/client/checkout'
import { payTexts } from '../look/texts.ts'

/** What a payer is told of how his payment ended. */
export interface OutcomeWords {
  readonly title: string
  readonly says: string
  readonly tone: 'good' | 'warn' | 'bad' | 'busy'
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
      return { ...texts.REFUSED, tone: 'busy', mayRetry: true }
    case 'REVERTED':
      return { ...texts.REVERTED, tone: 'bad', mayRetry: true }
    case 'EXPIRED':
      return { ...texts.EXPIRED, tone: 'warn', mayRetry: true }
    case 'QUOTE_CHANGED':
      return { ...texts.QUOTE_CHANGED, tone: 'warn', mayRetry: true }
    case 'FAILED':
      return { title: texts.FAILED.title, says: `${texts.FAILED.says} ${end.message}`, tone: 'bad', mayRetry: true }
  }
}
