import type { Address } from './address.ts'
import { type Decimal, formatAmount, readStoredDecimal, rescale } from './decimal.ts'
import type { PaymentRefund, PaymentStatus } from './payment.ts'
import type { SettledAmounts, SettledStatus } from './payment-request.ts'

/** Where something stands in the order of a chain. Imported payments may have a time alone. */
export interface ChainPlace {
  readonly timestamp: Date
  readonly blockNumber?: bigint | undefined
  /** Of its event, counted from 0 in the block. */
  readonly logIndex?: number | undefined
}

/** A payment of a request. Leave out superseded ones. */
export interface LedgerPayment {
  readonly id: string
  readonly place: ChainPlace
  readonly final: boolean
  /** Only FAILED is read: a FAILED payment counts for nothing and stays FAILED. The others are decided anew. */
  readonly status: PaymentStatus
  /** In human units of `currency`. */
  readonly amount: Decimal
  /** Currency id. Refunds in another currency return nothing of it. */
  readonly currency: string
  /** What it counts for, in the invoice currency. */
  readonly counted: Decimal
  /** Undefined where it is unknown. */
  readonly payer?: Address | undefined
  /** Whether it is known that payee and payer are one: then it counts for nothing. */
  readonly isToSelf: boolean
  /** Entries that an import brought and that no detected refund is known for. They stay on this payment. */
  readonly importedRefunds: readonly PaymentRefund[]
  /** What an import says was returned beyond these entries: how and when is unknown. In human units of `currency`. */
  readonly otherwiseReturned: Decimal
}

/** A refund that was found on chain. */
export interface LedgerRefund {
  readonly txHash: string
  readonly eventIndex: number
  readonly network: string
  readonly place: ChainPlace
  readonly final: boolean
  /** In human units of `currency`. */
  readonly amount: Decimal
  readonly currency: string
  /** Who received it. Undefined where it is unknown. */
  readonly recipient?: Address | undefined
}

/** All payments and refunds of a request, in any order. */
export interface Ledger {
  /** What the request asks for, in its invoice currency. */
  readonly expected: Decimal
  readonly payments: readonly LedgerPayment[]
  readonly refunds: readonly LedgerRefund[]
}

/** What the walk decides of one payment. */
export interface PaymentStanding {
  readonly status: PaymentStatus
  /** The imported entries, then the others in the order of the chain. */
  readonly refunds: readonly PaymentRefund[]
  /** The sum of `refunds`, and what an import says was returned beyond them. */
  readonly refundedAmount: Decimal
}

/** What the walk decides of a request and of each of its payments. */
export interface Standing extends SettledAmounts {
  /** By id. */
  readonly payments: ReadonlyMap<string, PaymentStanding>
}

/**
 * Decides how a request stands: walks its payments and refunds in the order of the chain, whatever the order in which they became known.
 *
 * - `held` is what the payments count for less what refunds returned. The request is covered from the first point at which `held` reaches what it
 *   asks for; nothing re-opens it after that.
 * - A refund returns payments before it in its currency: those of its recipient, newest first, then the others, newest first, each at most its
 *   amount. Each part is an entry of that payment. What is left is an entry of the newest payment, marked `excess`, and returns nothing.
 * - Only final refunds lower `held`. Before the cover, only parts lower it that went to the known payer of the payment that they return.
 * - A second walk over final payments and final refunds alone decides `paidAmount`, PAID and CONFIRMED.
 *
 * @returns amounts with 18 places
 * @see CHAIN, "Status, outstanding, refunds"
 */
export function decideStanding({ expected, payments, refunds }: Ledger): Standing {
  const due = unitsOf(expected)
  const counting = payments.filter(({ status, isToSelf }) => status !== 'FAILED' && !isToSelf)
  const all = walk(due, counting, refunds)
  const final = walk(due, counting.filter(isFinal), refunds.filter(isFinal))
  return {
    status: requestStatusOf(all, final),
    paidAmount: decimalOf(final.isCovered ? final.gross : final.held),
    pendingAmount: decimalOf(all.gross - final.gross),
    heldAmount: decimalOf(all.held),
    payments: new Map(
      payments.map((payment) => [payment.id, standingOf(payment, all.lots.get(payment.id), final.isCovered)]),
    ),
  }
}

function requestStatusOf(all: Walk, final: Walk): SettledStatus {
  if (all.isCovered && all.held === 0n) return 'REFUNDED'
  if (final.isCovered) return 'PAID'
  if (all.isCovered) return 'PENDING'
  return all.held > 0n ? 'PARTIALLY_PAID' : 'OPEN'
}

function standingOf(payment: LedgerPayment, lot: Lot | undefined, isCovered: boolean): PaymentStanding {
  const refunds = [...payment.importedRefunds, ...(lot?.entries ?? [])]
  const returned = refunds.reduce((sum, entry) => sum + entryUnits(entry), unitsOf(payment.otherwiseReturned))
  return { status: statusOf(payment, lot, isCovered), refunds, refundedAmount: decimalOf(returned) }
}

function statusOf({ status, final }: LedgerPayment, lot: Lot | undefined, isCovered: boolean): PaymentStatus {
  if (status === 'FAILED') return 'FAILED'
  if (!final) return 'PENDING'
  if (lot !== undefined && lot.amount > 0n && lot.returnedFinally === lot.amount) return 'REFUNDED'
  return isCovered ? 'CONFIRMED' : 'PARTIAL'
}

/** A payment that the walk has passed, and what was returned of it since. In units of 18 places of the payment currency. */
interface Lot {
  readonly payment: LedgerPayment
  readonly amount: bigint
  /** At most `amount`. By final refunds and others. */
  returned: bigint
  /** By final refunds. */
  returnedFinally: bigint
  /** Entries of detected refunds. */
  readonly entries: PaymentRefund[]
}

/** The state of a walk. In units of 18 places of the invoice currency. */
interface Walk {
  readonly due: bigint
  /** What was counted less what was returned. */
  held: bigint
  /** What was counted. */
  gross: bigint
  isCovered: boolean
  /** By the payment's id, in the order of the walk. */
  readonly lots: Map<string, Lot>
  /** Refunds before the first payment: they return nothing, and stand on that payment. */
  readonly early: LedgerRefund[]
}

interface Step {
  readonly order: Order
  readonly take: (walk: Walk) => void
}

function walk(due: bigint, payments: readonly LedgerPayment[], refunds: readonly LedgerRefund[]): Walk {
  const state: Walk = { due, held: 0n, gross: 0n, isCovered: false, lots: new Map(), early: [] }
  const steps: Step[] = [
    ...payments.flatMap(stepsOfPayment),
    ...refunds.map((refund) => ({
      order: orderOf(refund.place, { rank: REFUND, key: `${refund.txHash} ${refund.eventIndex}` }),
      take: (on: Walk) => takeRefund(on, refund),
    })),
  ]
  for (const { take } of steps.toSorted((a, b) => compareOrder(a.order, b.order))) take(state)
  return state
}

function stepsOfPayment(payment: LedgerPayment): Step[] {
  const { place, id: key, importedRefunds, otherwiseReturned } = payment
  return [
    { order: orderOf(place, { rank: PAYMENT, key }), take: (on) => takePayment(on, payment) },
    ...importedRefunds.map((entry) => ({
      order: orderOfImported(entry, payment),
      take: (on: Walk) => {
        if (entry.excess !== true) returnPart(on, lotOf(on, payment), entryUnits(entry), entry.recipient)
      },
    })),
    {
      order: { ...orderOf(place, { rank: REFUND, key }), timeMs: AT_THE_END },
      take: (on) => returnPart(on, lotOf(on, payment), unitsOf(otherwiseReturned), undefined),
    },
  ]
}

function takePayment(walk: Walk, payment: LedgerPayment): void {
  const lot: Lot = { payment, amount: unitsOf(payment.amount), returned: 0n, returnedFinally: 0n, entries: [] }
  walk.lots.set(payment.id, lot)
  for (const refund of walk.early.splice(0)) lot.entries.push(toEntry(refund, unitsOf(refund.amount), true))
  walk.held += unitsOf(payment.counted)
  walk.gross += unitsOf(payment.counted)
  if (walk.held >= walk.due) walk.isCovered = true
}

function takeRefund(walk: Walk, refund: LedgerRefund): void {
  const newestFirst = [...walk.lots.values()].toReversed()
  const [newest] = newestFirst
  if (newest === undefined) {
    walk.early.push(refund)
    return
  }
  const returnable = newestFirst.filter(({ payment }) => payment.currency === refund.currency)
  const isOwn = ({ payment: { payer } }: Lot) => payer !== undefined && payer === refund.recipient
  let left = unitsOf(refund.amount)
  for (const lot of [...returnable.filter(isOwn), ...returnable.filter((each) => !isOwn(each))]) {
    const part = smaller(left, lot.amount - lot.returned)
    if (part === 0n) continue
    left -= part
    lot.entries.push(toEntry(refund, part, false))
    if (refund.final) returnPart(walk, lot, part, refund.recipient)
    else lot.returned += part
  }
  if (left > 0n) newest.entries.push(toEntry(refund, left, true))
}

/** Returns a part of a payment by a final refund. @param recipient - undefined where it is unknown */
function returnPart(walk: Walk, lot: Lot, units: bigint, recipient: string | undefined): void {
  const part = smaller(units, lot.amount - lot.returned)
  const worthBefore = worthOf(lot, lot.returnedFinally)
  lot.returned += part
  lot.returnedFinally += part
  const { payer } = lot.payment
  if (walk.isCovered || (payer !== undefined && payer === recipient)) {
    walk.held -= worthOf(lot, lot.returnedFinally) - worthBefore
  }
}

/** What a part of a payment counts for, rounded down. Parts that are returned one after the other add up to what the payment counts for. */
function worthOf({ payment, amount }: Lot, units: bigint): bigint {
  return amount === 0n ? 0n : (unitsOf(payment.counted) * units) / amount
}

function lotOf({ lots }: Walk, { id }: LedgerPayment): Lot {
  const lot = lots.get(id)
  if (lot === undefined) throw new RangeError(`a refund of the payment ${id} comes before it`)
  return lot
}

function toEntry(refund: LedgerRefund, units: bigint, isExcess: boolean): PaymentRefund {
  const { currency, network, txHash, eventIndex, recipient, place } = refund
  const amount = formatAmount(units, PLACES)
  const timestamp = place.timestamp.toISOString()
  return {
    amount,
    currency,
    network,
    txHash,
    eventIndex,
    timestamp,
    ...(recipient === undefined ? {} : { recipient }),
    ...(isExcess ? { excess: true } : {}),
  }
}

const PAYMENT = 0
const REFUND = 1

/** A refund whose time is unknown comes last. */
const AT_THE_END = Number.POSITIVE_INFINITY

/** What steps are ordered by, the first difference first. Blocks may have the same second. */
interface Order {
  readonly timeMs: number
  readonly block: bigint
  readonly logIndex: number
  readonly rank: typeof PAYMENT | typeof REFUND
  /** Orders what is alike in all else, so that the result never depends on the order in which rows are read. */
  readonly key: string
}

function orderOf(
  { timestamp, blockNumber = -1n, logIndex = -1 }: ChainPlace,
  { rank, key }: Pick<Order, 'rank' | 'key'>,
): Order {
  return { timeMs: timestamp.getTime(), block: blockNumber, logIndex, rank, key }
}

/** An imported refund has a time at most. It comes after its payment in any case. */
function orderOfImported({ timestamp, txHash, eventIndex = 0 }: PaymentRefund, { place, id }: LedgerPayment): Order {
  const key = `${id} ${txHash} ${eventIndex}`
  const timeMs = timestamp === undefined ? AT_THE_END : new Date(timestamp).getTime()
  if (timeMs <= place.timestamp.getTime()) return orderOf(place, { rank: REFUND, key })
  return { timeMs, block: -1n, logIndex: -1, rank: REFUND, key }
}

function compareOrder(a: Order, b: Order): number {
  if (a.timeMs !== b.timeMs) return a.timeMs < b.timeMs ? -1 : 1
  if (a.block !== b.block) return a.block < b.block ? -1 : 1
  if (a.logIndex !== b.logIndex) return a.logIndex - b.logIndex
  if (a.rank !== b.rank) return a.rank - b.rank
  return a.key < b.key ? -1 : Number(a.key > b.key)
}

/** Amounts of currencies with different decimals are compared here, so all are counted in units of the most places that one can have. */
const PLACES = 18

const isFinal = ({ final }: { readonly final: boolean }) => final
const unitsOf = (amount: Decimal) => rescale(amount, PLACES).units
const decimalOf = (units: bigint): Decimal => ({ units, places: PLACES })
const entryUnits = ({ amount }: PaymentRefund) => unitsOf(readStoredDecimal(amount))
const smaller = (a: bigint, b: bigint) => (a < b ? a : b)
