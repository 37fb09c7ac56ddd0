import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { PaymentCalldata } from '../../gen/payments/v1/payment_calldata_pb.js'
import { WaybillCallError } from '../call-error.ts'
import type { Waybill } from '../waybill.ts'
import {
  type AskedMark,
  findAsked,
  IN_OTHER_TAB,
  type IsTakenOver,
  isOfYesterday,
  markIn,
  whileAlone,
} from './asked-mark.ts'
import { canBatch, sendBatch, waitForBatch } from './batch.ts'
import { sendOneByOne, waitForSent } from './one-by-one.ts'
import { isApprovalStep, type PayOutcome, type PayProgress, toPlain } from './outcome.ts'
import { nameOf, type PaymentMemory, type PaymentStorage, pageStorage, rememberIn } from './payment-memory.ts'
import { ANSWER_WITHIN_MS, askOf, type WalletProvider } from './provider.ts'
import { type AddChainParameters, readyWallet } from './ready-wallet.ts'
import type { WaitTerms } from './receipts.ts'

/** What is paid, by which route, with which wallet. */
export interface PayOptions {
  readonly waybill: Pick<Waybill, 'getPaymentCalldata'>
  readonly paymentReference: string
  /** A route of GetPaymentRoutes, whose amount the payer was shown, or its id. Default: the direct route. */
  readonly route?: string | { readonly id: string; readonly sourceAmount?: string } | undefined
  /** An EIP-1193 provider, a client of viem, or a provider of ethers. */
  readonly provider: WalletProvider
  /** The paying address, which the wallet has opened to the page (`eth_requestAccounts`). */
  readonly wallet: string
  /** Ends the wait, also for an answer of the wallet. What it was asked before may still be sent by the payer. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: PayProgress) => void) | undefined
  /** The route's chain, for a wallet that does not know it. */
  readonly addChain?: AddChainParameters | undefined
  /** How much of the request to pay, in its invoice currency; once it is mined, another call pays anew. Default: what is outstanding. */
  readonly amount?: string | undefined
  readonly feePercentage?: string | undefined
  readonly feeAddress?: string | undefined
  /** Percent that a swap may take more than quoted. Default: 0.5. */
  readonly slippage?: string | undefined
  /**
   * The most that may leave the wallet, gas not counted. Default: the `sourceAmount` of `route` and `slippage` percent of it; for the id of a
   * route, what the first quote says.
   */
  readonly maxSourceAmount?: string | undefined
  /**
   * Whether the payer has said that the wallet sent nothing and shows no question any more, that a payment which was mined has come back, or that a
   * rest is to be paid. Without it, a request whose payment a wallet was
   * asked for before, and has not answered, ends as ALREADY_ASKED. A tab that still pays it then asks for nothing more. With it, a payment that
   * was sent before is waited for only while the wallet knows it.
   */
  readonly askAgain?: boolean | undefined
  /** Keeps what was asked and sent over a reload of the page, until it has ended. Default: `localStorage` where there is one. */
  readonly storage?: PaymentStorage | undefined
  /** How long the payer may take to answer a question of the wallet. After it the call ends with the reason NO_ANSWER. Default: 300,000. */
  readonly answerWithinMs?: number | undefined
  /** Time between two reads of the chain. Default: 1,000. */
  readonly pollMs?: number | undefined
  /** How long the wallet's node may not know a transaction that was sent until it counts as dropped. Default: 180,000. */
  readonly dropAfterMs?: number | undefined
}

/** Quotes that may expire before the payer answers, until pay gives up. */
const MAX_QUOTES = 5
const DROP_AFTER_MS = 180_000

/** Payments of this page that are under way, by reference: a second click must not pay a second time. */
const underWay = new Set<string>()

/**
 * Pays a request by a route with a wallet: asks for the transactions, brings the wallet to their chain, has each signed, and waits until it
 * is mined. Where the wallet can, approvals and payment are one step.
 *
 * It never pays twice: a payment is asked of the wallet once, and what the wallet says of it afterwards ends the call. A later call for the
 * same request and wallet, also after a reload of the page, waits for what was sent; for a day after that is mined it ends at once with MINED, since
 * a bridge may deliver later. The wait ends with UNKNOWN when another transaction has
 * used the nonce of the payment, or when the wallet's node has not known the payment for `dropAfterMs`; a call after that waits only while the
 * node knows it. While the wallet has not said whether it sent the payment, another call in this browser, also in another tab or after a reload,
 * ends with ALREADY_ASKED.
 *
 * @returns how it ended
 * @throws WaybillCallError when the service gives no transactions (REQUEST_COVERED, ROUTE_UNAVAILABLE), or the reason of the signal before
 * the payment was sent
 */
export async function pay(options: PayOptions): Promise<PayOutcome> {
  return onlyOnce(options, async (memory) => (await waitForEarlier(options, memory)) ?? payAlone(options, memory))
}

/** What `resumePay` needs of the options of `pay`. */
export type ResumeOptions = Omit<PayOptions, 'waybill' | 'route' | 'askAgain'>

/**
 * Waits for a payment that an earlier call has sent, perhaps before a reload of the page. It asks the wallet for no payment.
 *
 * @returns how it ended; undefined where nothing was sent, or what was sent did not pay
 */
export async function resumePay(options: ResumeOptions): Promise<PayOutcome | undefined> {
  return onlyOnce(options, (memory) => waitForEarlier(options, memory))
}

async function onlyOnce<T extends PayOutcome | undefined>(
  { paymentReference, wallet, amount, storage = pageStorage() }: ResumeOptions,
  work: (memory: PaymentMemory) => Promise<T>,
): Promise<T> {
  const key = nameOf(paymentReference)
  if (underWay.has(key)) throw new Error(`a payment of ${paymentReference} is already under way on this page`)
  underWay.add(key)
  try {
    const memory = rememberIn(storage, paymentReference, wallet)
    const end = await work(memory)
    const sent = memory.recall()
    if (end === undefined || sent === undefined) return end
    // What may still come is remembered. A payment that is mined may count much later, as behind a bridge; after a part the rest is paid.
    if (end.outcome === 'MINED' && amount === undefined)
      memory.keep({ minedAtMs: Date.now(), ...sent, transactionHashes: end.transactionHashes })
    else if (end.outcome === 'UNKNOWN') memory.keep({ ...sent, isLost: true })
    else if (!MAY_STILL_COME.has(end.outcome)) memory.forget()
    return end
  } finally {
    underWay.delete(key)
  }
}

const MAY_STILL_COME: ReadonlySet<PayOutcome['outcome']> = new Set(['SENT', 'ALREADY_ASKED'])

async function waitForEarlier(
  { askAgain = false, ...options }: ResumeOptions & Pick<PayOptions, 'askAgain'>,
  memory: PaymentMemory,
): Promise<PayOutcome | undefined> {
  const sent = memory.recall()
  if (sent === undefined) return undefined
  const { addChain, onProgress = () => {}, amount } = options
  if (sent.minedAtMs !== undefined) {
    const { transactionHashes = [] } = sent
    if (!askAgain && amount === undefined && !isOfYesterday(sent.minedAtMs))
      return { outcome: 'MINED', transactionHashes }
    memory.forget()
    return undefined
  }
  onProgress({ type: 'WAITING_FOR_EARLIER', ...sent })
  // Nobody waits twice for what the wallet's node does not know.
  const isKnownOnly = askAgain || sent.isLost === true
  const terms = waitTermsOf(isKnownOnly ? { ...options, dropAfterMs: 0 } : options)
  // It was sent, also where the wallet does not go to its chain or the signal ends the wait for that.
  const isReady = await readyWallet({ ...terms, chainId: sent.chainId, addChain, onProgress }).then(
    (stop) => stop === undefined,
    () => false,
  )
  if (!isReady) return { outcome: 'SENT', transactionHashes: 'batchId' in sent ? [] : [sent.transactionHash] }
  const end =
    'batchId' in sent
      ? await waitForBatch(terms, sent.batchId, isKnownOnly ? 1 : undefined)
      : await waitForSent(terms, sent.transactionHash)
  if (end.outcome === 'MINED' && 'isPart' in sent) return interrupted(sent.transactionHash)
  const hasNotPaid = end.outcome === 'REVERTED' || end.outcome === 'FAILED'
  // The service refuses another quote where the transaction that took its place has paid. What the payer gives up is looked for once.
  const isGivenUp = end.outcome === 'UNKNOWN' && (askAgain || end.reason === 'REPLACED')
  return hasNotPaid || isGivenUp ? undefined : end
}

function interrupted(transactionHash: string): PayOutcome {
  const message = `${transactionHash} is mined, and the payment after it was not sent: choose a route again`
  return { outcome: 'FAILED', reason: 'INTERRUPTED', code: undefined, message }
}

function waitTermsOf(options: ResumeOptions): WaitTerms {
  const { provider, wallet, signal, pollMs = 1_000, dropAfterMs = DROP_AFTER_MS } = options
  const patience = { signal, answerWithinMs: options.answerWithinMs ?? ANSWER_WITHIN_MS }
  return { ask: askOf(provider, patience), wallet, pollMs, dropAfterMs, ...patience }
}

/** Pays unless the wallet was asked before, or another tab pays. */
async function payAlone(options: PayOptions, memory: PaymentMemory): Promise<PayOutcome> {
  const { paymentReference, storage = pageStorage(), askAgain: takeOver = false } = options
  const mark = markIn(storage, paymentReference)
  const end = await whileAlone({ paymentReference, takeOver }, async (isTakenOver) => {
    if (takeOver) mark.clear()
    const asked = findAsked(paymentReference, storage)
    if (asked !== undefined) return { outcome: 'ALREADY_ASKED', ...asked } as const
    return payAnew(options, { memory, mark, isTakenOver })
  })
  return end ?? { ...IN_OTHER_TAB, ...findAsked(paymentReference, storage), isOtherTab: true }
}

type Guards = { readonly memory: PaymentMemory; readonly mark: AskedMark; readonly isTakenOver: IsTakenOver }

async function payAnew(options: PayOptions, guards: Guards): Promise<PayOutcome> {
  let maxSourceAmount = options.maxSourceAmount ?? limitOfShown(options)
  let isApprovalReplaced = false
  let mayBatch = true
  for (let quotes = 1; quotes <= MAX_QUOTES; quotes++) {
    options.signal?.throwIfAborted()
    let quote: Quote
    try {
      quote = await askForQuote(options, maxSourceAmount)
    } catch (error) {
      if (!(error instanceof WaybillCallError && error.reason === 'QUOTE_CHANGED')) throw error
      return { outcome: 'QUOTE_CHANGED', newQuote: error.newQuote }
    }
    maxSourceAmount ??= quote.calldata.maxSourceAmount
    // Who cancels an approval in the wallet does not want it.
    if (isApprovalReplaced && quote.calldata.steps.some(isApprovalStep)) return { outcome: 'REFUSED' }
    const onFallBack = () => {
      mayBatch = false
    }
    const end = await takeQuote(options, quote, { mayBatch, onFallBack, ...guards })
    if (end.outcome !== 'QUOTE_EXPIRED') return end
    isApprovalReplaced = 'isApprovalReplaced' in end
    options.onProgress?.({ type: 'QUOTE_EXPIRED' })
  }
  return { outcome: 'EXPIRED' }
}

function limitOfShown({ route, slippage }: PayOptions): string | undefined {
  return typeof route === 'object' && route.sourceAmount !== undefined
    ? limitOf(route.sourceAmount, slippage)
    : undefined
}

interface Quote {
  readonly calldata: PaymentCalldata
  readonly isExpired: () => boolean
}

async function askForQuote(options: PayOptions, maxSourceAmount: string | undefined): Promise<Quote> {
  const { waybill, paymentReference, wallet, route, signal, amount, feePercentage, feeAddress, slippage } = options
  const id = typeof route === 'object' ? route.id : route
  const preferences = { route: id, amount, feePercentage, feeAddress, slippage, maxSourceAmount }
  const given = Object.fromEntries(Object.entries(preferences).filter(([, value]) => value !== undefined))
  let date: string | null = null
  const onHeader = (headers: Headers) => {
    date = headers.get('date')
  }
  const calldata = await waybill.getPaymentCalldata({ paymentReference, wallet, ...given }, { signal, onHeader })
  const { expiresAt } = calldata
  const expiresAtMs = expiresAt === undefined ? 0 : timestampMs(expiresAt)
  const endsAt = performance.now() + lifetimeOf({ expiresAtMs, date, nowMs: Date.now() })
  return { calldata, isExpired: () => performance.now() >= endsAt }
}

/** A wallet that has once refused a batch is not asked for another. */
type Batching = Guards & { readonly mayBatch: boolean; readonly onFallBack: () => void }

async function takeQuote(
  options: PayOptions,
  { calldata, isExpired }: Quote,
  { mayBatch, onFallBack, ...guards }: Batching,
) {
  const { provider, wallet, signal, onProgress = () => {}, addChain } = options
  onProgress({ type: 'QUOTED', quote: calldata })
  const waiting = waitTermsOf(options)
  const { ask } = waiting
  const { steps } = calldata
  const transactions = calldata.transactions.map(toPlain)
  const chainId = transactions[0]?.chainId ?? ''
  const stop = await readyWallet({ ...waiting, chainId, addChain, onProgress })
  if (stop !== undefined) return stop
  signal?.throwIfAborted()
  const terms = { ...waiting, ...guards, provider, transactions, steps, onProgress, isExpired }
  let nonce: bigint | undefined
  // Some wallets fail at a batch of one.
  if (mayBatch && transactions.length > 1 && (await canBatch(ask, wallet, chainId))) {
    if (isExpired()) return { outcome: 'QUOTE_EXPIRED' } as const
    signal?.throwIfAborted()
    if (guards.isTakenOver()) return IN_OTHER_TAB
    const end = await sendBatch(terms)
    if (end.outcome !== 'FALL_BACK') return end
    onFallBack()
    nonce = end.nonce
    onProgress({ type: 'FALLING_BACK', code: end.code })
  }
  return sendOneByOne({ ...terms, nonce })
}

/** For how long the service lets a quote be taken at most. */
const LONGEST_MS = 30_000
/** For how long a quote is taken where no clock says anything sensible. */
const ASSUMED_MS = 25_000
/** `Date` has whole seconds. */
const DATE_ROUNDING_MS = 1_000

interface QuoteTimes {
  readonly expiresAtMs: number
  /** The header `Date` of the answer, where the page may read it. */
  readonly date: string | null
  /** The time of this machine when the answer came. */
  readonly nowMs: number
}

/**
 * For how long a quote may be taken from its arrival on. The service's own clock counts where the answer tells it, since that of the payer's
 * machine may be wrong; a lifetime that no quote has means that a clock is wrong.
 */
export function lifetimeOf({ expiresAtMs, date, nowMs }: QuoteTimes): number {
  const sentAtMs = Date.parse(date ?? '')
  const leftMs = expiresAtMs - (Number.isNaN(sentAtMs) ? nowMs : sentAtMs + DATE_ROUNDING_MS)
  return leftMs > 0 && leftMs <= LONGEST_MS ? leftMs : ASSUMED_MS
}

const DECIMAL = /^(\d+)(?:\.(\d*))?$/
const DEFAULT_SLIPPAGE = '0.5'

interface Decimal {
  readonly units: bigint
  readonly places: number
}

function parseDecimal(text: string): Decimal | undefined {
  const [, whole, part = ''] = DECIMAL.exec(text) ?? []
  return whole === undefined ? undefined : { units: BigInt(whole + part), places: part.length }
}

/**
 * The most that may leave a wallet after the payer was shown an amount: that amount and `slippage` percent of it, rounded down to the places
 * of the amount, since the token may have no more.
 *
 * @returns undefined where one of both is no decimal number: the service says what is wrong with it
 */
export function limitOf(shownAmount: string, slippage = DEFAULT_SLIPPAGE): string | undefined {
  const [shown, percent] = [parseDecimal(shownAmount), parseDecimal(slippage)]
  if (shown === undefined || percent === undefined) return undefined
  const whole = 100n * 10n ** BigInt(percent.places)
  const units = (shown.units * (whole + percent.units)) / whole
  if (shown.places === 0) return String(units)
  const digits = String(units).padStart(shown.places + 1, '0')
  return `${digits.slice(0, -shown.places)}.${digits.slice(-shown.places)}`
}
