import { type Decimal, formatAmount, readStoredDecimal, rescale } from '../domain/decimal.ts'
import type { PaymentRefund, PaymentStatus, StatusChange } from '../domain/payment.ts'

/** What settling may change of a payment. */
export interface SettledState {
  readonly status: PaymentStatus
  readonly refunds: readonly PaymentRefund[]
  /** The sum of `refunds`. */
  readonly refundedAmount: Decimal
  readonly statusHistory: readonly StatusChange[]
  readonly updatedAt: Date
}

/** A payment of the request that is settled. */
export interface LedgerPayment extends SettledState {
  readonly id: string
  /** Whether it is not stored yet. A new payment has no status that could change. */
  readonly isNew: boolean
  readonly imported: boolean
  readonly final: boolean
  readonly timestamp: Date
  /** Undefined for imported payments without it. */
  readonly blockNumber?: bigint | undefined
  readonly txHash?: string | undefined
  readonly eventIndex?: number | undefined
  /** In the payment currency. */
  readonly amount: Decimal
  /** What it counts for, in the invoice currency. */
  readonly counted: Decimal
}

/** A refund of the request that is settled. */
export interface LedgerRefund {
  readonly txHash: string
  readonly eventIndex: number
  readonly network: string
  readonly timestamp: Date
  readonly blockNumber: bigint
  readonly final: boolean
  /** In the payment currency. */
  readonly amount: Decimal
  readonly currency: string
}

/** A request with all its payments and refunds, and the time of settling. */
export interface Ledger {
  /** What is expected, in the invoice currency. */
  readonly amount: Decimal
  readonly payments: readonly LedgerPayment[]
  readonly refunds: readonly LedgerRefund[]
  /** Refunds that a reorg removed. Imported payments may still have entries of them. */
  readonly droppedRefunds?: readonly Pick<LedgerRefund, 'txHash' | 'eventIndex'>[]
  readonly now: Date
}

/**
 * Decides status and refunds of every payment of a request.
 *
 * - A payment is PENDING until final. When final payments cover the request, all of them are CONFIRMED at once; before that, PARTIAL.
 * - A refund is first taken from what was paid beyond the amount, which changes no status. The rest is allocated to the payments that were
 *   made before it, newest first. A payment with such an allocation is REFUNDED when all of it was returned. When everything that was paid
 *   has been returned, all payments are REFUNDED, including those that only added to the surplus. Only final refunds change a status.
 * - Imported payments that are FAILED or REFUNDED stay so. FAILED payments count for nothing.
 *
 * @returns the state of each payment, by id; the given payment itself (with its `updatedAt`) where nothing changed
 */
export function settle(ledger: Ledger): Map<string, SettledState> {
  const counting = ledger.payments.filter((payment) => payment.status !== 'FAILED')
  const isCovered = sum(counting.filter(({ final }) => final).map(countedUnits)) >= unitsOf(ledger.amount)
  const shares = allocateRefunds(ledger, counting, ledger.refunds)
  const finalRefunds = ledger.refunds.filter(({ final }) => final)
  const finalShares = allocateRefunds(ledger, counting, finalRefunds)
  return new Map(
    ledger.payments.map((payment) => {
      const status = statusOf(payment, isCovered, finalShares.get(payment.id)?.isReturned ?? false)
      const refunds = shares.get(payment.id)?.refunds ?? payment.refunds
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
  const { statusHistory } = payment
  const statusChanged = payment.isNew || payment.status !== status
  const refundsChanged = !isEqualJson(payment.refunds, refunds)
  if (!statusChanged && !refundsChanged) return payment
  return {
    status,
    refunds,
    refundedAmount: refundsChanged ? decimalOf(sum(refunds.map(refundUnits))) : payment.refundedAmount,
    statusHistory: statusChanged ? [...statusHistory, { status, at: now.toISOString() }] : statusHistory,
    updatedAt: now,
  }
}

/**
 * How much was returned of what was paid beyond the request's amount, by final and pending refunds: the part of the refunds that was
 * allocated to no payment.
 *
 * @returns an amount in the invoice currency; each payment's surplus counts at the rate of the payment
 */
export function returnedSurplus(ledger: Ledger): Decimal {
  const counting = ledger.payments.filter((payment) => payment.status !== 'FAILED')
  const shares = [...allocateRefunds(ledger, counting, ledger.refunds).values()]
  return decimalOf(sum(shares.map(returnedSurplusWorth)))
}

/** A surplus that was returned completely is worth exactly what it counted for, without the rounding of a rate. */
function returnedSurplusWorth({ payment, paidSurplus, surplusWorth, surplus }: Share): bigint {
  if (surplus === 0n) return surplusWorth
  return ((paidSurplus - surplus) * countedUnits(payment)) / unitsOf(payment.amount)
}

/** How much of a payment was returned. Amounts are units of 18 places of the payment currency unless the field says otherwise. */
interface Share {
  readonly payment: LedgerPayment
  /** The part that was paid beyond the request's amount. */
  readonly paidSurplus: bigint
  /** What `paidSurplus` counts for in the invoice currency. */
  readonly surplusWorth: bigint
  /** The part of `paidSurplus` that is not returned yet. */
  surplus: bigint
  /** The part that covers the request and is not returned yet. */
  covering: bigint
  readonly refunds: PaymentRefund[]
  /** Whether a refund of this ledger is among `refunds`. */
  hasAllocation: boolean
  isReturned: boolean
}

/** Takes payments and refunds in their order, so that later ones never change earlier allocations. */
function allocateRefunds(
  ledger: Ledger,
  payments: readonly LedgerPayment[],
  refunds: readonly LedgerRefund[],
): Map<string, Share> {
  const expected = unitsOf(ledger.amount)
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
      allocateRefund(refund, shares)
      markReturned(shares)
    }
  }
  return new Map(shares.map((share) => [share.payment.id, share]))
}

function openShare(ledger: Ledger, payment: LedgerPayment, expected: bigint, countedBefore: bigint): Share {
  const amount = unitsOf(payment.amount)
  const worth = countedUnits(payment)
  const surplusWorth = atLeastZero(countedBefore + worth - expected) - atLeastZero(countedBefore - expected)
  const surplus = worth === 0n ? 0n : (amount * surplusWorth) / worth
  const refunds = importedRefunds(ledger, payment)
  const returned = sum(refunds.map(refundUnits))
  return {
    payment,
    paidSurplus: surplus,
    surplusWorth,
    surplus,
    covering: atLeastZero(amount - surplus - returned),
    refunds,
    hasAllocation: false,
    isReturned: refunds.length > 0 && returned >= amount,
  }
}

/** The refunds that an import brought, without those that are known from the chain, which are allocated again. */
function importedRefunds({ refunds, droppedRefunds = [] }: Ledger, payment: LedgerPayment): PaymentRefund[] {
  if (!payment.imported) return []
  const known = [...refunds, ...droppedRefunds]
  return payment.refunds.filter(
    (entry) => !known.some(({ txHash, eventIndex }) => txHash === entry.txHash && eventIndex === entry.eventIndex),
  )
}

function allocateRefund(refund: LedgerRefund, shares: readonly Share[]): void {
  let left = unitsOf(refund.amount)
  for (const share of shares.toReversed()) {
    const taken = smaller(left, share.surplus)
    share.surplus -= taken
    left -= taken
  }
  for (const share of shares.toReversed()) {
    const taken = smaller(left, share.covering)
    if (taken === 0n) continue
    share.covering -= taken
    left -= taken
    share.hasAllocation = true
    share.refunds.push(toEntry(refund, taken))
  }
}

/** A returned payment stays returned, whatever is paid later. */
function markReturned(shares: readonly Share[]): void {
  const isEmpty = ({ surplus, covering }: Share) => surplus === 0n && covering === 0n
  const isAllReturned = shares.every(isEmpty) && shares.some(({ hasAllocation }) => hasAllocation)
  for (const share of shares) {
    if (isAllReturned || (share.hasAllocation && isEmpty(share))) share.isReturned = true
  }
}

function toEntry(refund: LedgerRefund, taken: bigint): PaymentRefund {
  const { currency, network, txHash, eventIndex, timestamp } = refund
  const amount = formatAmount(taken, PLACES)
  return { amount, currency, network, txHash, eventIndex, timestamp: timestamp.toISOString() }
}

/** What payments and refunds are ordered by. Blocks may have the same second. */
interface Order {
  readonly timeMs: number
  readonly block: bigint
  readonly rank: number
  readonly txHash: string
  readonly eventIndex: number
}

/** @param rank - 0 for payments and 1 for refunds: within a block, a refund comes after the payments that it returns */
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

/** Amounts of currencies with different decimals are compared here, so all are counted in units of the most places that one can have. */
const PLACES = 18

const unitsOf = (amount: Decimal) => rescale(amount, PLACES).units
const decimalOf = (units: bigint): Decimal => ({ units, places: PLACES })
const countedUnits = ({ counted }: LedgerPayment) => unitsOf(counted)
const refundUnits = ({ amount }: PaymentRefund) => unitsOf(readStoredDecimal(amount))
const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n)
const atLeastZero = (value: bigint) => (value > 0n ? value : 0n)
const smaller = (a: bigint, b: bigint) => (a < b ? a : b)

/** Compares by value: objects of a JSON column come back with their keys in another order. */
function isEqualJson(a: readonly PaymentRefund[], b: readonly PaymentRefund[]): boolean {
  const text = (refunds: readonly PaymentRefund[]) =>
    refunds.map((refund) => JSON.stringify(Object.entries(refund).toSorted(([x], [y]) => (x < y ? -1 : 1)))).join()
  return text(a) === text(b)
}
