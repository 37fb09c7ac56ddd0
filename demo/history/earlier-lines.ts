/** The earlier payments of all chains, as lines of an import. */
import { createHash } from 'node:crypto'
import type { Address } from '../../src/domain/address.ts'
import { caip2Of } from '../../src/domain/chain.ts'
import { currencyId } from '../../src/domain/currency.ts'
import { type DecimalString, formatAmount } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { paymentIdOf } from '../../src/domain/identifiers.ts'
import type { Payment, PaymentStatus, PaymentType } from '../../src/domain/payment.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import { canonical } from '../network/chain-config.ts'
import { DEMO_CHAINS, type DemoChainSpec, USUAL_BLOCK_SEC } from '../network/chain-specs.ts'
import { FIAT_DECIMALS } from '../network/demo-contracts.ts'
import type { DemoPeople } from '../network/people.ts'
import { LAYOUT_VERSION } from '../network/state-folder.ts'
import { usdPrice } from '../network/wandering-prices.ts'
import { cents, decimalsOf, fromUsd, roundAmount } from './planned-payment.ts'
import { createRandom, drawCents, type Random } from './random.ts'
import { timesBefore } from './trade.ts'

/** What the earlier payments of a chain depend on. */
export interface EarlierChain {
  readonly spec: DemoChainSpec
  readonly people: Pick<DemoPeople, 'payees' | 'feeCollector'>
  /** The time of the first payment on the chain. */
  readonly beginsSec: number
  /** When the chain was made. */
  readonly madeAtSec: number
}

/**
 * The latest first, since people look at them while the others are still being imported.
 *
 * @param days - how far they reach back
 */
export function* earlierLines(chains: readonly EarlierChain[], days: number): Generator<Uint8Array> {
  const plans = chains.map(({ spec, people, beginsSec, madeAtSec }) =>
    planEarlierPayments(spec, people, { toSec: beginsSec, days, madeAtSec }),
  )
  const heads = plans.map((plan) => ({ plan, head: plan.next() }))
  const timeOf = ({ head }: (typeof heads)[number]) => (head.done ? 0 : head.value.timestamp.getTime())
  for (;;) {
    const latest = heads.reduce((best, each) => (timeOf(each) > timeOf(best) ? each : best))
    if (latest.head.done) return
    yield Buffer.from(`${formatPaymentLine(latest.head.value)}\n`)
    latest.head = latest.plan.next()
  }
}

/** A name for the lines of these chains; other lines have another name. */
export function nameOfLines(chains: readonly EarlierChain[], days: number): string {
  const parts = chains.map(({ spec, beginsSec, madeAtSec }) => [spec.chainId, beginsSec, madeAtSec])
  return createHash('sha256')
    .update(JSON.stringify([LAYOUT_VERSION, days, parts]))
    .digest('hex')
}

/**
 * The payments of the months before the demo's chains: the merchant brings them along from elsewhere, as `waybill import payments` does. They
 * have what chains of an hour's age cannot have: failures, refunds of long ago, subscriptions.
 */
const DAY_SEC = 86_400
const COIN_DECIMALS = 18
const CUSTOMERS = 400
/** The number of the newest invoice of a chain. Counted down from it, a payment keeps its number however far back the payments reach. */
const NEWEST_INVOICE = 99_999
/** The price of one euro in US dollars, with 8 decimals. */
const DOLLARS_A_EURO = 109_000_000n
const GAS_USED = { DIRECT: 91_204n, CONVERSION: 168_930n, CROSSCHAIN: 212_415n, RECURRING: 104_377n } as const

interface Span {
  /** The payments end before it. */
  readonly toSec: number
  readonly days: number
  readonly madeAtSec: number
}

/**
 * Plans the earlier payments of a chain, each when it is asked for, since half a year at once would stop the process for a second. Always the
 * same for the same chain; a longer span only adds to them.
 *
 * @returns latest first
 */
export function* planEarlierPayments(
  spec: DemoChainSpec,
  people: Pick<DemoPeople, 'payees' | 'feeCollector'>,
  { toSec, days, madeAtSec }: Span,
): Generator<Payment> {
  const random = createRandom(spec.chainId + 1)
  let place = 0
  for (const atSec of timesBefore(toSec, { madeAtSec, share: spec.tradeShare, next: random.next })) {
    if (atSec < toSec - days * DAY_SEC) return
    yield planPayment({ spec, people, random, atSec, place: place++, toSec })
  }
}

interface PlanContext {
  readonly spec: DemoChainSpec
  readonly people: Pick<DemoPeople, 'payees' | 'feeCollector'>
  readonly random: Random
  readonly atSec: number
  /** Counted from the latest. */
  readonly place: number
  readonly toSec: number
}

function planPayment({ spec, people, random, atSec, place, toSec }: PlanContext): Payment {
  const type = drawType(random)
  const symbol =
    random.next() < 0.2 ? spec.native.symbol : (spec.tokens[drawRank(random, spec.tokens.length)]?.symbol ?? '')
  const [price, decimals] = [usdPrice(spec, symbol, atSec), decimalsOf(spec, symbol)]
  const usd = cents(drawCents(random))
  const amount = roundAmount(spec, symbol, fromUsd(spec, symbol, { usd, price }))
  const [currency, payer] = [currencyId(symbol, spec.name), addressOf(`customer ${drawRank(random, CUSTOMERS)}`)]
  const dollars = (amount * price) / 10n ** BigInt(decimals)
  const status = drawStatus(random)
  const hash = digest(`transaction ${spec.name} ${place}`)
  const timestamp = new Date(atSec * 1_000)
  const settledSec = Math.min(toSec, atSec + spec.finalityDepth * USUAL_BLOCK_SEC)
  const source = type === 'CROSSCHAIN' ? random.pick(DEMO_CHAINS.filter(({ name }) => name !== spec.name)) : undefined
  const refund =
    status === 'REFUNDED' ? refundOf({ spec, place, amount, decimals, currency }, random, atSec, toSec) : undefined
  const chainId = caip2Of(spec.chainId)
  return {
    id: paymentIdOf({ account: 'demo', chainId, txHash: hash, eventIndex: 0 }),
    status,
    type,
    timestamp,
    updatedAt: new Date((refund?.atSec ?? settledSec) * 1_000),
    amount: formatAmount(amount, decimals),
    currency,
    amountInUsd: formatAmount(dollars, FIAT_DECIMALS),
    ...invoiceOf({ type, random, amount: formatAmount(amount, decimals), currency, dollars, price, timestamp }),
    network: spec.name,
    chainId,
    txHash: hash,
    eventIndex: 0,
    sourceNetwork: source?.name ?? spec.name,
    sourceTxHash: source === undefined ? hash : digest(`deposit ${spec.name} ${place}`),
    payer,
    payee: canonical(random.pick(people.payees)),
    initiator: payer,
    reference: `INV-${timestamp.getUTCFullYear()}-${spec.name.charAt(0)}${NEWEST_INVOICE - place}`,
    fees: feesOf({ spec, source, amount, decimals, currency, price, receiver: canonical(people.feeCollector) }, random),
    gas: gasOf(source ?? spec, type, atSec),
    refunds: refund?.refunds ?? [],
    refundedAmount: refund === undefined ? formatAmount(0n, 0) : formatAmount(amount, decimals),
    marks: [],
    statusHistory: [
      { status: 'PENDING', at: timestamp.toISOString() },
      { status: refund === undefined ? status : 'CONFIRMED', at: new Date(settledSec * 1_000).toISOString() },
      ...(refund === undefined ? [] : [{ status, at: new Date(refund.atSec * 1_000).toISOString() }]),
    ],
  }
}

function drawType(random: Random): PaymentType {
  const drawn = random.next()
  if (drawn < 0.7) return 'DIRECT'
  if (drawn < 0.87) return 'CONVERSION'
  return drawn < 0.94 ? 'CROSSCHAIN' : 'RECURRING'
}

function drawStatus(random: Random): PaymentStatus {
  const drawn = random.next()
  if (drawn < 0.935) return 'CONFIRMED'
  if (drawn < 0.96) return 'FAILED'
  return drawn < 0.985 ? 'REFUNDED' : 'PARTIAL'
}

/** A place in a list in which the first are drawn far more often than the last. */
function drawRank(random: Random, length: number): number {
  return Math.floor(length * random.next() ** 2.5)
}

interface PaidAmount {
  readonly spec: DemoChainSpec
  readonly amount: bigint
  readonly decimals: number
  readonly currency: string
}

/** The merchant sends everything back some days later. */
function refundOf(
  { spec, place, amount, decimals, currency }: PaidAmount & { readonly place: number },
  random: Random,
  paidSec: number,
  toSec: number,
) {
  const atSec = Math.min(toSec, paidSec + 3_600 + random.below(6 * DAY_SEC))
  const txHash = digest(`refund ${spec.name} ${place}`)
  const timestamp = new Date(atSec * 1_000).toISOString().replace('.000', '')
  const sent = {
    amount: formatAmount(amount, decimals),
    currency,
    network: spec.name,
    txHash,
    eventIndex: 0,
    timestamp,
  }
  return { atSec, refunds: [sent] }
}

interface Invoiced {
  readonly type: PaymentType
  readonly random: Random
  readonly amount: DecimalString
  readonly currency: string
  readonly dollars: bigint
  /** One unit of the payment's currency in US dollars, with 8 decimals. */
  readonly price: bigint
  readonly timestamp: Date
}

/** A conversion pays an invoice in dollars or euros; everything else pays one in its own currency. */
function invoiceOf({ type, random, amount, currency, dollars, price, timestamp }: Invoiced) {
  if (type !== 'CONVERSION') return { invoiceAmount: amount, invoiceCurrency: currency, exchangeRates: [] }
  const fiat = random.next() < 0.65 ? { code: 'USD', price: 10n ** 8n } : { code: 'EUR', price: DOLLARS_A_EURO }
  const inFiat = (value: bigint) => formatAmount((value * 10n ** 8n) / fiat.price, FIAT_DECIMALS)
  const at = timestamp.toISOString().replace('.000', '')
  return {
    invoiceAmount: inFiat(dollars),
    invoiceCurrency: fiat.code,
    exchangeRates: [{ from: currency, to: fiat.code, rate: inFiat(price), source: 'chainlink', at }],
  }
}

interface FeeTerms extends PaidAmount {
  readonly source: DemoChainSpec | undefined
  readonly price: bigint
  readonly receiver: Address
}

/** A fee of the platform for some, and what a bridge takes. */
function feesOf(
  { spec, source, amount, decimals, currency, price, receiver }: FeeTerms,
  random: Random,
): Payment['fees'] {
  const feeOf = (units: bigint) => ({
    amount: formatAmount(units, decimals),
    currency,
    amountInUsd: formatAmount((units * price) / 10n ** BigInt(decimals), FIAT_DECIMALS),
    network: spec.name,
  })
  const perMille = random.next() < 0.4 ? BigInt(random.pick([1, 5, 10])) : 0n
  const fees: Payment['fees'][number][] = []
  if (perMille > 0n) {
    const paid = feeOf((amount * perMille) / 1_000n)
    fees.push({ type: 'PLATFORM', stage: 'SENDING', ...paid, receiverAddress: receiver })
  }
  if (source !== undefined)
    fees.push({ type: 'CROSSCHAIN', stage: 'OVERALL', provider: 'lifi', ...feeOf((amount * 3n) / 1_000n) })
  return fees
}

function gasOf(spec: DemoChainSpec, type: PaymentType, atSec: number): Payment['gas'] {
  const used = GAS_USED[type]
  const price = spec.baseFeePerGas + spec.tipPerGas
  const usd = (used * price * usdPrice(spec, spec.native.symbol, atSec)) / 10n ** BigInt(COIN_DECIMALS)
  return {
    used: String(used),
    price: formatAmount(price, COIN_DECIMALS),
    amount: formatAmount(used * price, COIN_DECIMALS),
    currency: currencyId(spec.native.symbol, spec.name),
    amountInUsd: formatAmount(usd, FIAT_DECIMALS),
  }
}

function digest(text: string): Hex {
  return `0x${createHash('sha256').update(`waybill demo ${text}`).digest('hex')}`
}

function addressOf(text: string): Address {
  return digest(text).slice(0, 42) as Address
}
