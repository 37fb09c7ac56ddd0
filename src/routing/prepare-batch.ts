import { writeSafeFile } from '../contracts/safe-file.ts'
import type { Account } from '../domain/account.ts'
import { formatAddress } from '../domain/address.ts'
import { given } from '../domain/collections.ts'
import { formatAmount } from '../domain/decimal.ts'
import { requireAddress, requirePaymentReference } from '../domain/require-input.ts'
import type { BatchQuestion } from '../domain/route.ts'
import { readAll, readEach } from '../errors/gather-errors.ts'
import type { Reason } from '../errors/reasons.ts'
import { inOneLine, WaybillError, waybillError } from '../errors/waybill-error.ts'
import { chargedFor, REQUEST_NETWORK } from './plans/fee-proxy.ts'
import { type Batch, planBatch } from './plans/plan-batch.ts'
import { isFiatRequest } from './plans/provider.ts'
import { measureFirst, prepare, sortQuoted } from './prepare-payment.ts'
import { type Payment, readPlatformFee } from './question/parse-question.ts'
import { type PlannedCandidate, unlessObjected } from './quotes/plan-candidates.ts'
import {
  type Inquiry,
  inquire,
  type QuoteDependencies,
  type QuoteOptions,
  quotePlanned,
} from './quotes/quote-routes.ts'
import { BATCH_ROUTE_ID } from './quotes/route-id.ts'

/** Parses what a caller asks. @throws WaybillError for input that is not valid */
export function readBatchQuestion(question: BatchQuestion) {
  return readAll({
    references: () =>
      readEach(question.paymentReferences, (text, i) => requirePaymentReference(`paymentReferences[${i}]`, text)),
    wallet: () => requireAddress('wallet', question.wallet),
    platformFee: () => readPlatformFee(question),
  })
}

/**
 * Makes the function that returns the transactions by which a wallet pays many requests at once.
 *
 * It throws WaybillError REQUESTS_NOT_PAYABLE with the reason of each request that cannot be paid; else as `preparePayment` does.
 */
export function createPrepareBatch(dependencies: QuoteDependencies) {
  return async (account: Account, question: BatchQuestion, options: QuoteOptions) => {
    const batch = await loadBatch(account, question, options, dependencies)
    const { wallet, destination } = batch[0]
    const inUnits = (amount: bigint) => formatAmount(amount, destination.decimals)
    const [requestExpiresAt] = batch.flatMap(({ request }) => request.expiresAt ?? []).toSorted((a, b) => +a - +b)
    const quoted = await quotePlanned(planAll(batch, dependencies), { wallet, requestExpiresAt }, options, dependencies)
    const sorted = sortQuoted(quoted, BATCH_ROUTE_ID)
    const measured = await measureFirst(sorted, wallet, options, dependencies)
    const amount = inUnits(measured.found.quoted.quote.received)
    const name = `Pay ${batch.length} ${batch.length === 1 ? 'request' : 'requests'}`
    const pay = `${name}: ${amount} ${destination.symbol} in all, each payee exactly what is due.`
    const prepared = prepare(measured, wallet, { pay, tokens: dependencies.tokens })
    const payments = batch.map((payment) => {
      const { amount, fee } = chargedFor(payment)
      const { paymentReference, payee } = payment.request
      return { paymentReference, payee: formatAddress(payee), amount: inUnits(amount), feeAmount: given(fee, inUnits) }
    })
    const safeFile = writeSafeFile(name, prepared.transactions, dependencies.clock())
    return { prepared, amount, currency: destination.id, payments, safeFile }
  }
}

/** Loads the requests one after the other: a batch is to take no more of the database at a time than a single request. */
async function loadBatch(
  account: Account,
  question: BatchQuestion,
  { signal }: QuoteOptions,
  dependencies: QuoteDependencies,
): Promise<Batch> {
  const { references, ...payer } = readBatchQuestion(question)
  const wanted = question.token?.toUpperCase()
  const payments: Payment[] = []
  const refused: { readonly index: number; readonly error: WaybillError }[] = []
  for (const [index, paymentReference] of references.entries()) {
    try {
      const before = references.indexOf(paymentReference)
      const detail = `the request is at index ${before} already`
      if (before < index) throw waybillError('INVALID_FIELD', { field: `paymentReferences[${index}]`, detail })
      const asked = { paymentReference, amount: undefined, ...payer }
      payments.push(
        payableIn(await inquire(account, asked, signal, dependencies), payments[0]?.destination.id ?? wanted),
      )
    } catch (error) {
      if (!(error instanceof WaybillError) || error.violations[0]?.field === 'feeAddress') throw error
      refused.push({ index, error })
    }
  }
  const [first, ...others] = payments
  if (refused.length === 0 && first !== undefined) return [first, ...others]
  const byReason = Map.groupBy(refused, ({ error }) => error.reason)
  const why = [...byReason].map(([reason, all]) => `${reason} ${all.map(({ index }) => index).join(' ')}`).join('; ')
  const violations = refused.slice(0, MAX_DESCRIBED).map(({ index, error: { reason, message } }) => {
    return { field: `paymentReferences[${index}]`, reason, description: message }
  })
  const unlisted = { count: refused.length - violations.length, isRestUnchecked: false }
  const terms = { count: refused.length, total: references.length, why }
  throw waybillError('REQUESTS_NOT_PAYABLE', terms, { violations, unlisted })
}

/** The most requests of which an error says all; together with the indexes of the others it fits into trailers. */
const MAX_DESCRIBED = 8

/**
 * @param expected - a currency id, or the symbol that the caller wants; undefined for any
 * @throws WaybillError where the request cannot be paid, or not in a batch
 */
function payableIn({ answer, search, refusal }: Inquiry, expected?: string): Payment {
  if (refusal !== undefined) throw refusal
  const [why] = [...answer.warnings, ...answer.unavailable.map((each) => ({ ...each, message: inOneLine(each) }))]
  if (search === undefined) throw new WaybillError(why?.reason as Reason, why?.message ?? '', {}, {})
  const {
    request,
    destination: { id: currency, symbol },
  } = search.payment
  if (isFiatRequest(request)) throw waybillError('BATCH_CONVERSION', { invoiceCurrency: request.invoiceCurrency })
  if (expected === undefined || [currency, symbol.toUpperCase()].includes(expected)) return search.payment
  throw waybillError('BATCH_CURRENCY_DIFFERS', { currency, expected })
}

/** The batch by each of the chain's batch contracts; where there is none, why. */
function planAll(batch: Batch, { chains, objectionTo }: QuoteDependencies): PlannedCandidate[] {
  const { destination } = batch[0]
  const plans = (['BATCH_PAYMENTS', 'BATCH_CONVERSION_PAYMENTS'] as const).map((kind) => planBatch(chains, batch, kind))
  const possible = plans.filter((plan) => !('reason' in plan))
  return (possible.length > 0 ? possible : plans.slice(0, 1)).map((plan) => ({
    candidate: { kind: 'DIRECT', source: destination, destination },
    provider: { name: REQUEST_NETWORK, routeId: BATCH_ROUTE_ID },
    plan: unlessObjected(plan, objectionTo),
  }))
}
