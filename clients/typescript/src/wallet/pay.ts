import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { PaymentCalldata } from '../../gen/payments/v1/payment_calldata_pb.js'
import { WaybillCallError } from '../call-error.ts'
import type { Waybill } from '../waybill.ts'
import { canBatch, sendBatch, waitForBatch } from './batch.ts'
import { sendOneByOne, waitForSent } from './one-by-one.ts'
import { isApprovalStep, type PayOutcome, type PayProgress, toPlain } from './outcome.ts'
import { type PaymentMemory, type PaymentStorage, pageStorage, rememberIn } from './payment-memory.ts'
import { askOf, type WalletProvider } from './provider.ts'
import { lifetimeOf } from './quote-lifetime.ts'
import { type AddChainParameters, readyWallet } from './ready-wallet.ts'
import type { WaitTerms } from './receipts.ts'
import { limitOf } from './shown-limit.ts'

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
  /** Ends the wait. What the wallet was asked before it may still be sent by the payer. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: PayProgress) => void) | undefined
  /** The route's chain, for a wallet that does not know it. */
  readonly addChain?: AddChainParameters | undefined
  /** How much of the request to pay, in its invoice currency. Default: what is outstanding. */
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
  /** Keeps what was sent over a reload of the page, until it has ended. Default: `localStorage` where there is one. */
  readonly storage?: PaymentStorage | undefined
  /** Time between two looks at the chain. Default: 1,000. */
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
 * same request and wallet, also after a reload of the page, waits for what was sent. The wait ends with UNKNOWN when another transaction has
 * used the nonce of the payment, or when the wallet's node has not known the payment for `dropAfterMs`.
 *
 * @returns how it ended
 * @throws WaybillCallError when the service gives no transactions (REQUEST_COVERED, ROUTE_UNAVAILABLE), or the reason of the signal before
 * the payment was sent
 */
export async function pay(options: PayOptions): Promise<PayOutcome> {
  const key = options.paymentReference.toLowerCase().replace(/^0x/, '')
  if (underWay.has(key)) throw new Error(`a payment of ${options.paymentReference} is already under way on this page`)
  underWay.add(key)
  try {
    return await payOnce(options)
  } finally {
    underWay.delete(key)
  }
}

async function payOnce(options: PayOptions): Promise<PayOutcome> {
  const { paymentReference, wallet, storage = pageStorage() } = options
  const memory = rememberIn(storage, paymentReference, wallet)
  const end = (await waitForEarlier(options, memory)) ?? (await payAnew(options, memory))
  // what may still come is remembered
  if (end.outcome !== 'SENT' && end.outcome !== 'UNKNOWN') memory.forget()
  return end
}

/** @returns how a payment of an earlier call ended; undefined where there was none, or it did not pay */
async function waitForEarlier(options: PayOptions, memory: PaymentMemory): Promise<PayOutcome | undefined> {
  const sent = memory.recall()
  if (sent === undefined) return undefined
  const { addChain, onProgress = () => {} } = options
  onProgress({ type: 'WAITING_FOR_EARLIER', ...sent })
  const terms = waitTermsOf(options)
  const stop = await readyWallet({ ...terms, chainId: sent.chainId, addChain, onProgress })
  if (stop !== undefined) return { outcome: 'SENT', transactionHashes: 'batchId' in sent ? [] : [sent.transactionHash] }
  const end =
    'batchId' in sent ? await waitForBatch(terms, sent.batchId) : await waitForSent(terms, sent.transactionHash)
  if (end.outcome === 'MINED' && 'isPart' in sent) return interrupted(sent.transactionHash)
  const hasNotPaid = end.outcome === 'REVERTED' || end.outcome === 'FAILED'
  // The service refuses another quote where the transaction that took its place has paid.
  return hasNotPaid || (end.outcome === 'UNKNOWN' && end.reason === 'REPLACED') ? undefined : end
}

function interrupted(transactionHash: string): PayOutcome {
  const message = `${transactionHash} is mined, and the payment after it was not sent: choose a route again`
  return { outcome: 'FAILED', reason: 'INTERRUPTED', code: undefined, message }
}

function waitTermsOf({ provider, wallet, signal, pollMs = 1_000, dropAfterMs = DROP_AFTER_MS }: PayOptions): WaitTerms {
  return { ask: askOf(provider), wallet, signal, pollMs, dropAfterMs }
}

async function payAnew(options: PayOptions, memory: PaymentMemory): Promise<PayOutcome> {
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
    const end = await takeQuote(options, quote, { mayBatch, onFallBack, memory })
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
  const wishes = { route: id, amount, feePercentage, feeAddress, slippage, maxSourceAmount }
  const given = Object.fromEntries(Object.entries(wishes).filter(([, value]) => value !== undefined))
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
type Batching = { readonly mayBatch: boolean; readonly onFallBack: () => void; readonly memory: PaymentMemory }

async function takeQuote(
  options: PayOptions,
  { calldata, isExpired }: Quote,
  { mayBatch, onFallBack, memory }: Batching,
) {
  const { wallet, signal, onProgress = () => {}, addChain } = options
  onProgress({ type: 'QUOTED', quote: calldata })
  const waiting = waitTermsOf(options)
  const { ask } = waiting
  const { steps } = calldata
  const transactions = calldata.transactions.map(toPlain)
  const chainId = transactions[0]?.chainId ?? ''
  const stop = await readyWallet({ ask, wallet, chainId, addChain, onProgress })
  if (stop !== undefined) return stop
  signal?.throwIfAborted()
  const terms = { ...waiting, transactions, steps, onProgress, isExpired, memory }
  let nonce: bigint | undefined
  // Some wallets fail at a batch of one.
  if (mayBatch && transactions.length > 1 && (await canBatch(ask, wallet, chainId))) {
    if (isExpired()) return { outcome: 'QUOTE_EXPIRED' } as const
    signal?.throwIfAborted()
    const end = await sendBatch(terms)
    if (end.outcome !== 'FALL_BACK') return end
    onFallBack()
    nonce = end.nonce
    onProgress({ type: 'FALLING_BACK', code: end.code })
  }
  return sendOneByOne({ ...terms, nonce })
}
