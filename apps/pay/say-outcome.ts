import { WaybillCallError } from '@waybill/client/checkout'
import type { AskedBefore, PayOutcome } from '@waybill/client/wallet'
import { chainName } from '../shared/chain-name.ts'
import { formatAmount } from '../shared/format-amount.ts'
import { formatTime } from '../shared/format-time.ts'
import { shortAddress } from '../shared/sentence.ts'
import { payTexts } from './language.ts'

/** What a payer learns of how the payment ended. */
export interface OutcomeWords {
  readonly title: string
  readonly says: string
  readonly tone: '' | 'good' | 'warn' | 'bad' | 'busy'
  /** Whether they may try again: nothing was paid. */
  readonly mayRetry: boolean
  /** What a payer says who has looked into the wallet, before it is asked again. */
  readonly again?: string
}

/** EIP-1474: another question is open in the wallet. */
export const BUSY = -32002
/** EIP-3326: the wallet has no such chain. */
const UNKNOWN_CHAIN = 4902

/** An address, shortened, that no line breaks in two. */
export const inSentence = (address: string) => shortAddress(address).replace('…', '\u2060…\u2060')

/** For a payer whose wallet may still show a question from before a reload, or from another tab. */
export function sayAsked({ wallet, askedAt, isOtherTab }: AskedBefore): OutcomeWords {
  const { title, says, otherTab, next, again } = payTexts.asked
  const what = [
    ...(isOtherTab ? [otherTab] : []),
    ...(wallet === undefined || askedAt === undefined ? [] : [says(formatTime(askedAt), inSentence(wallet))]),
    next,
  ]
  return { title, says: what.join(' '), tone: 'warn', mayRetry: false, again }
}

/** @param chain - where the payment was to be sent from */
export function sayOutcome(end: PayOutcome, chain = ''): OutcomeWords {
  const texts = payTexts.outcomes
  switch (end.outcome) {
    case 'MINED':
      return { ...texts.MINED, tone: 'busy', mayRetry: false }
    case 'SENT':
      return { ...texts.SENT, tone: 'busy', mayRetry: false }
    case 'UNKNOWN': {
      const { again, ...words } = texts.UNKNOWN
      return { ...words, ...(end.reason === 'REPLACED' && texts.REPLACED), tone: 'warn', mayRetry: false, again }
    }
    case 'ALREADY_ASKED':
      return sayAsked(end)
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
      if (end.reason === 'WRONG_CHAIN' && end.code === UNKNOWN_CHAIN) {
        const { title, says } = texts.UNKNOWN_CHAIN
        return { title, says: says(chainName(chain)), tone: 'bad', mayRetry: true }
      }
      const reason = end.code === BUSY ? 'WALLET_BUSY' : end.reason
      const { title, says } = texts[reason]
      const hasMore = reason === 'WALLET_ERROR' || reason === 'WRONG_CHAIN'
      return { title, says: hasMore ? `${says} ${texts.walletSays(end.message)}` : says, tone: 'bad', mayRetry: true }
    }
  }
}

/** What a payer learns when the service gave no transactions: nothing was asked of the wallet. */
export function sayError(error: Error): OutcomeWords {
  const { COVERED, NOT_PREPARED } = payTexts.outcomes
  if (!(error instanceof WaybillCallError)) return { ...NOT_PREPARED, tone: 'bad', mayRetry: true }
  if (error.reason === 'REQUEST_COVERED') return { ...COVERED, tone: 'warn', mayRetry: true }
  // The service's own words say what is wrong and what to do.
  const isSaid = error.reason !== 'NONE' && error.reason !== 'NETWORK'
  const says = isSaid ? error.message : NOT_PREPARED.says
  return { title: NOT_PREPARED.title, says, tone: 'bad', mayRetry: true }
}
