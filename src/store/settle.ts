import { formatAmount, parseAmount } from '../domain/decimal.ts'
import type { PaymentRefund, PaymentStatus, StatusChange } from '../domain/payment.ts'

/** Everything is counted with the most places that a decimal string may have. */
const PLACES = 18

/** What settling may change of a payment. */
export interface SettledState {
  readonly status: PaymentStatus
  readonly refunds: readonly PaymentRefund[]
  /** Sum of `refunds`, a decimal string. */
  readonly refundedAmount: string
  readonly statusHistory: readonly StatusChange[]
  readonly updatedAt: Date
}

/** A payment of the request that is settled. Amounts are decimal strings. */
export interface LedgerPayment extends SettledState {
  readonly id: string
  /** Absent: it is not stored yet, so it has no status that could change. */
  readonly isNew: boolean
  readonly imported: boolean
  readonly final: boolean
  readonly timestamp: Date
  /** Absent of imported payments that do not say. */
  readonly blockNumber?: bigint
  readonly txHash?: string
  readonly eventIndex?: number
  /** In the payment currency. */
  readonly amount: string
  /** In the invoice currency: what it counts for. */
  readonly counted: string
}

/** A refund of the request that is settled. */
export interface LedgerRefund {
  readonly txHash: string
  readonly eventIndex: number
  readonly network: string
  readonly timestamp: Date
  readonly blockNumber: bigint
  readonly final: boolean
  /** In the payment currency, a decimal string. */
  readonly amount: string
  readonly currency: string
}

/** A request with all that was paid and returned, and when it is settled. */
export interface Ledger {
  /** What is expected, in the invoice currency. */
  readonly amount: string
  readonly payments: readonly LedgerPayment[]
  readonly refunds: readonly LedgerRefund[]
  /** Refunds that a reorg took out, of which imported payments may still hold entries. */
  readonly droppedRefunds?: readonly Pick<LedgerRefund, 'txHash' | 'eventIndex'>[]
  readonly now: Date
}

/**
 * Decides status and refunds of every payment of a request.
 *
 * - A payment is PENDING until final. When final payments cover the request, all of them are CONFIRMED at once; else PARTIAL.
 * - A refund first consumes what was paid beyond the amount, which changes no status. What is beyond is laid on the payments made
 *   before it, newest first. One with such an entry of which everything went back is REFUNDED; once everything that was paid has
 *   gone back, all are, those that brought nothing but surplus included. Only final refunds change a status.
 * - What an import says of failed or refunded payments stands; failed ones count for nothing.
 *
 * @returns the state of each payment, by id; equal to the given one (`updatedAt` included) where nothing changed
 */
export function settle(ledger: Ledger): Map<string, SettledState> {
  const counting = ledger.payments.filter((payment) => payment.status !== 'FAILED')
  const isCovered = sum(counting.filter(({ final }) => final).map(countedUnits)) >= units(ledger.amount)
  const laid = layRefunds(ledger, counting, ledger.refunds)
  const laidFinally = layRefunds(
    ledger,
    counting,
    ledger.refunds.filter(({ final }) => final),
  )
  return new Map(
    ledger.payments.map((payment) => {
      const share = laid.get(payment.id)
      const status = statusOf(payment, isCovered, laidFinally.get(payment.id)?.isReturned ?? false)
      const refunds = share?.refunds ?? payment.refunds
      return [payment.id, changeState(payment, { status, refunds, now: ledger.now })]
    }),
  )
}

function statusOf(payment: LedgerPayment, isCovered: boolean, isReturned: boolean): PaymentStatus {
  if (payment.status === 'FAILED') return 'FAILED'
  if (!payment.final) return 'PENDING'
  if (isReturned || (payment.imported && payment.status === 'REFUNDED')) return 'REFUNDED'
  return isCovered ? 'CONFIRMED' : 'PARTIAL'
}

interface Change {
  readonly status: PaymentStatus
  readonly refunds: readonly PaymentRefund[]
  readonly now: Date
}

function changeState(payment: LedgerPayment, { status, refunds, now }: Change): SettledState {
  const statusChanged = payment.isNew || payment.status !== status
  const refundsChanged = !isEqualJson(payment.refunds, refunds)
  if (!statusChanged && !refundsChanged) return payment
  return {
    status,
    refunds,
    refundedAmount: refundsChanged
      ? formatAmount(sum(refunds.map(({ amount }) => units(amount))), PLACES)
      : payment.refundedAmount,
    statusHistory: statusChanged
      ? [...payment.statusHistory, { status, at: now.toISOString() }]
      : payment.statusHistory,
    updatedAt: now,
  }
}

/**
 * How much of what was paid beyond the request's amount has gone back, final or not: what refunds took and laid on no payment.
 *
 * @returns a decimal string in the invoice currency, each payment's surplus at the rate at which it was made
 */
export function returnedSurplus(ledger: Ledger): string {
  const counting = ledger.payments.filter((payment) => payment.status !== 'FAILED')
  const shares = [...layRefunds(ledger, counting, ledger.refunds).values()]
  return formatAmount(sum(shares.map(surplusWorthReturned)), PLACES)
}

/** What is gone altogether is worth what it was counted for, without what its rate loses in rounding. */
function surplusWorthReturned({ payment, paidSurplus, surplusWorth, surplus }: Share): bigint {
  if (surplus === 0n) return surplusWorth
  return ((paidSurplus - surplus) * countedUnits(payment)) / units(payment.amount)
}

/** How much of a payment went back. All in base units of 18 places of the payment currency unless told. */
interface Share {
  readonly payment: LedgerPayment
  /** Paid beyond the request's amount. */
  readonly paidSurplus: bigint
  /** What `paidSurplus` counts for in the invoice currency. */
  readonly surplusWorth: bigint
  /** Of `paidSurplus`, what is not returned yet. */
  surplus: bigint
  /** Needed to cover the request, and not returned yet. */
  room: bigint
  readonly refunds: PaymentRefund[]
  /** Whether a refund of this ledger stands among `refunds`. */
  isLaidOn: boolean
  isReturned: boolean
}

/** Goes through payments and refunds in their order, so that what comes later never moves what was laid before. */
function layRefunds(
  ledger: Ledger,
  payments: readonly LedgerPayment[],
  refunds: readonly LedgerRefund[],
): Map<string, Share> {
  const expected = units(ledger.amount)
  const shares: Share[] = []
  let counted = 0n
  const entries = [
    ...payments.map((payment) => ({ ...orderOf(payment, 0), payment, refund: undefined })),
    ...refunds.map((refund) => ({ ...orderOf(refund, 1), payment: undefined, refund })),
  ].toSorted(compareOrder)
  for (const { payment, refund } of entries) {
    if (payment !== undefined) {
      shares.push(openShare(ledger, payment, expected, counted))
      counted += countedUnits(payment)
    } else {
      layRefund(refund, shares)
      markReturned(shares)
    }
  }
  return new Map(shares.map((share) => [share.payment.id, share]))
}

function openShare(ledger: Ledger, payment: LedgerPayment, expected: bigint, countedBefore: bigint): Share {
  const amount = units(payment.amount)
  const worth = countedUnits(payment)
  const surplusWorth = aboveZero(countedBefore + worth - expected) - aboveZero(countedBefore - expected)
  const surplus = worth === 0n ? 0n : (amount * surplusWorth) / worth
  const kept = importedRefunds(ledger, payment)
  const returned = sum(kept.map((refund) => units(refund.amount)))
  const room = aboveZero(amount - surplus - returned)
  const isReturned = kept.length > 0 && returned >= amount
  return { payment, paidSurplus: surplus, surplusWorth, surplus, room, refunds: kept, isLaidOn: false, isReturned }
}

/** What an import said was returned, without what is known from the chain and laid anew. */
function importedRefunds({ refunds, droppedRefunds = [] }: Ledger, payment: LedgerPayment): PaymentRefund[] {
  if (!payment.imported) return []
  const known = [...refunds, ...droppedRefunds]
  return payment.refunds.filter(
    (entry) => !known.some(({ txHash, eventIndex }) => txHash === entry.txHash && eventIndex === entry.eventIndex),
  )
}

function layRefund(refund: LedgerRefund, shares: readonly Share[]): void {
  let left = units(refund.amount)
  for (const share of shares.toReversed()) {
    const taken = smaller(left, share.surplus)
    share.surplus -= taken
    left -= taken
  }
  for (const share of shares.toReversed()) {
    const taken = smaller(left, share.room)
    if (taken === 0n) continue
    share.room -= taken
    left -= taken
    share.isLaidOn = true
    share.refunds.push(toEntry(refund, taken))
  }
}

/** What is returned stays so, whatever is paid later. */
function markReturned(shares: readonly Share[]): void {
  const isEmpty = ({ surplus, room }: Share) => surplus === 0n && room === 0n
  const isAllReturned = shares.every(isEmpty) && shares.some(({ isLaidOn }) => isLaidOn)
  for (const share of shares) {
    if (isAllReturned || (share.isLaidOn && isEmpty(share))) share.isReturned = true
  }
}

function toEntry(refund: LedgerRefund, taken: bigint): PaymentRefund {
  const { currency, network, txHash, eventIndex, timestamp } = refund
  const amount = formatAmount(taken, PLACES)
  return { amount, currency, network, txHash, eventIndex, timestamp: timestamp.toISOString() }
}

/** What payments and refunds are ordered by; blocks may share a second. */
interface Order {
  readonly timeMs: number
  readonly block: bigint
  readonly rank: number
  readonly txHash: string
  readonly eventIndex: number
}

/** Within one block payments come before refunds; what returns money came after it. */
function orderOf(
  entry: Pick<LedgerPayment, 'timestamp' | 'blockNumber' | 'txHash' | 'eventIndex'>,
  rank: number,
): Order {
  const { timestamp, blockNumber = 0n, txHash = '', eventIndex = 0 } = entry
  return { timeMs: timestamp.getTime(), block: blockNumber, rank, txHash, eventIndex }
}

function compareOrder(a: Order, b: Order): number {
  if (a.timeMs !== b.timeMs) return a.timeMs - b.timeMs
  if (a.block !== b.block) return a.block < b.block ? -1 : 1
  if (a.rank !== b.rank) return a.rank - b.rank
  if (a.txHash !== b.txHash) return a.txHash < b.txHash ? -1 : 1
  return a.eventIndex - b.eventIndex
}

function units(text: string): bigint {
  const value = parseAmount(text, PLACES)
  if (value === undefined) throw new RangeError(`not a stored amount: ${text}`)
  return value
}

const countedUnits = (payment: LedgerPayment) => units(payment.counted)
const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n)
const aboveZero = (value: bigint) => (value > 0n ? value : 0n)
const smaller = (a: bigint, b: bigint) => (a < b ? a : b)

/** By value: what comes back from a JSON column has its keys in another order. */
function isEqualJson(a: readonly PaymentRefund[], b: readonly PaymentRefund[]): boolean {
  const text = (refunds: readonly PaymentRefund[]) =>
    refunds.map((refund) => JSON.stringify(Object.entries(refund).toSorted(([x], [y]) => (x < y ? -1 : 1)))).join()
  return text(a) === text(b)
}
