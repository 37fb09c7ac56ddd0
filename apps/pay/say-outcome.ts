import { type Route, WaybillCallError } from '@waybill/client/checkout'
import type { AskedBefore, PayOutcome } from '@waybill/client/wallet'
import { chainName } from '../shared/chain-name.ts'
import { formatAmount } from '../shared/format-amount.ts'
import { formatSpan, formatTime } from '../shared/format-time.ts'
import { sentence, shortAddress } from '../shared/sentence.ts'
import { payTexts } from './language.ts'
import type { PayTexts } from './texts/en.ts'

/**
 * How a payment ended; NOT_PREPARED: the service gave no transactions, and nothing was asked of the wallet. AMOUNT_CHANGED: others have paid
 * meanwhile; `isAsking`: the wallet may still show a question.
 */
export type PaymentEnd =
  | PayOutcome
  | { readonly outcome: 'NOT_PREPARED'; readonly error: Error }
  | { readonly outcome: 'AMOUNT_CHANGED'; readonly isAsking: boolean }

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

/** For a payer who has paid, as far as this browser knows, while the service has not seen it. */
export function sayUnderWay({ sentAt, wallet }: { sentAt: number; wallet: string }): OutcomeWords {
  const { title, says, next, again } = payTexts.underWay
  const what = `${says(formatTime(new Date(sentAt)), inSentence(wallet))} ${next}`
  return { title, says: what, tone: 'warn', mayRetry: false, again }
}

/** The route of a payment, and the chain on which the payee is paid. */
interface Way {
  readonly route?: Pick<Route, 'chain' | 'estimatedDurationSeconds'> | undefined
  readonly network?: string
}

export function sayOutcome(end: PaymentEnd, { route, network }: Way = {}): OutcomeWords {
  const { outcomes: titles, advice, newPrice, refuseNow, chooseAgain } = payTexts
  switch (end.outcome) {
    case 'MINED':
    case 'SENT': {
      const isBridged = end.outcome === 'MINED' && route !== undefined && route.chain !== network
      const says = isBridged
        ? payTexts.bridged(formatSpan(route.estimatedDurationSeconds, undefined, 'long'))
        : advice[end.outcome]
      return { title: titles[end.outcome], says, tone: 'busy', mayRetry: false }
    }
    case 'UNKNOWN': {
      const kind = end.reason === 'REPLACED' ? 'REPLACED' : 'UNKNOWN'
      return { title: titles[kind], says: advice[kind], tone: 'warn', mayRetry: false, again: payTexts.asked.again }
    }
    case 'ALREADY_ASKED':
      return sayAsked(end)
    case 'QUOTE_CHANGED': {
      const { newQuote: fresh } = end
      return notPaid(end.outcome, fresh && newPrice(`${formatAmount(fresh.sourceAmount)} ${fresh.token}`))
    }
    case 'FAILED':
      return sayFailure(end, route?.chain ?? '')
    case 'NOT_PREPARED':
      return sayError(end.error)
    case 'AMOUNT_CHANGED':
      return notPaid(end.outcome, end.isAsking ? `${refuseNow} ${chooseAgain}` : undefined)
    case 'REFUSED':
    case 'REVERTED':
    case 'EXPIRED':
      return notPaid(end.outcome)
  }
}

function sayFailure(end: Extract<PayOutcome, { outcome: 'FAILED' }>, chain: string): OutcomeWords {
  const walletSays = payTexts.walletSays(end.message)
  if (end.code === BUSY) return notPaid('WALLET_BUSY')
  if (end.reason === 'WRONG_CHAIN') return notPaid(end.reason, `${payTexts.wrongChain(chainName(chain))} ${walletSays}`)
  return end.reason === 'WALLET_ERROR' ? notPaid(end.reason, walletSays) : notPaid(end.reason)
}

/** @param says - in place of the advice */
function notPaid(kind: keyof PayTexts['outcomes'], says?: string): OutcomeWords {
  const { outcomes: titles, advice, nothingPaid, chooseAgain } = payTexts
  const more = says ?? (advice as Partial<Record<string, string>>)[kind] ?? chooseAgain
  return { title: titles[kind], says: `${nothingPaid} ${more}`, tone: kind === 'REFUSED' ? '' : 'warn', mayRetry: true }
}

/** What a payer learns when the service gave no transactions: nothing was asked of the wallet. */
export function sayError(error: Error): OutcomeWords {
  const { outcomes: titles, advice, later } = payTexts
  if (!(error instanceof WaybillCallError)) return notPaid('NOT_PREPARED', later)
  if (error.reason === 'REQUEST_COVERED') {
    return { title: titles.COVERED, says: advice.COVERED, tone: 'warn', mayRetry: true }
  }
  // The service's own words say what is wrong and what to do.
  const isSaid = error.reason !== 'NONE' && error.reason !== 'NETWORK'
  return notPaid('NOT_PREPARED', isSaid ? sentence(error.message) : later)
}
