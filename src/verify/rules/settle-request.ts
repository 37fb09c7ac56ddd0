import { type Decimal, formatDecimal, rescale } from '../../domain/decimal.ts'
import type { PaymentStatus } from '../../domain/payment.ts'
import type { RequestStatus } from '../../domain/payment-request.ts'

/** A payment of a request, for settling it. */
export interface SettlingPayment {
  /** Names it in the result. */
  readonly key: string
  readonly place: LedgerPlace
  readonly final: boolean
  /** In the payment currency. */
  readonly amount: Decimal
  /** In the invoice currency. */
  readonly counted: Decimal
  /** What an import says of it, which is believed: FAILED, REFUNDED, and refunds that the chain does not show. */
  readonly imported?: { readonly status: PaymentStatus; readonly returned: Decimal } | undefined
}

/** A refund of a request. */
export interface SettlingRefund {
  readonly key: string
  readonly place: LedgerPlace
  readonly final: boolean
  /** In the payment currency. */
  readonly amount: Decimal
}

/** Where something stands in the order of the chain. */
export interface LedgerPlace {
  readonly timestampSec: number
  readonly blockNumber: number
  readonly txHash: string
  readonly eventIndex: number
}

/** A settled request. Amounts are decimal texts. */
export interface SettledRequest {
  readonly status: RequestStatus
  readonly paid: string
  readonly pending: string
  readonly outstanding: string
  readonly overpaid: string
  readonly surplusReturned: string
  /** By the payments' keys. */
  readonly payments: ReadonlyMap<string, SettledPayment>
}

export interface SettledPayment {
  readonly status: PaymentStatus
  /** The refunds that returned it, with how much of it each returned. */
  readonly refunds: readonly { readonly key: string; readonly amount: string }[]
}

/** All amounts are compared in units of this many places. */
const PLACES = 18
const unitsOf = (amount: Decimal) => rescale(amount, PLACES).units
const textOf = (units: bigint) => formatDecimal({ units, places: PLACES })
const positive = (units: bigint) => (units > 0n ? units : 0n)

/** A payment while refunds are assigned to it. `over` is the part beyond the request's amount; `within` is the rest, less what was returned. */
interface Assigned {
  readonly payment: SettlingPayment
  readonly over: { readonly paid: bigint; readonly worth: bigint }
  overLeft: bigint
  withinLeft: bigint
  readonly refunds: { readonly key: string; readonly amount: string }[]
  isReturned: boolean
}

/**
 * Settles a request. A payment is PENDING until it is final, then PARTIAL, and CONFIRMED once final payments cover the request. A refund first
 * returns what was overpaid, then payments, the newest first. A payment that final refunds returned in full is REFUNDED.
 */
export function settleRequest(
  expected: Decimal,
  payments: readonly SettlingPayment[],
  refunds: readonly SettlingRefund[],
): SettledRequest {
  const due = unitsOf(expected)
  const counting = payments.filter(({ imported }) => imported?.status !== 'FAILED')
  const sumOf = (some: readonly SettlingPayment[]) => some.reduce((sum, { counted }) => sum + unitsOf(counted), 0n)
  const final = sumOf(counting.filter((payment) => payment.final))
  const all = sumOf(counting)
  const assigned = assignRefunds(due, counting, refunds)
  const assignedFinal = assignRefunds(
    due,
    counting,
    refunds.filter((refund) => refund.final),
  )
  const states = payments.map((payment): [string, SettledPayment] => [
    payment.key,
    {
      status: statusOf(payment, assignedFinal.get(payment.key)?.isReturned ?? false, final >= due),
      refunds: assigned.get(payment.key)?.refunds ?? [],
    },
  ])
  const settled = new Map(states)
  const surplusReturned = [...assigned.values()].reduce((sum, each) => sum + overReturned(each), 0n)
  const paying = counting.filter(({ counted }) => counted.units > 0n)
  const isReturned = paying.length > 0 && paying.every(({ key }) => settled.get(key)?.status === 'REFUNDED')
  return {
    status: requestStatus({ due, final, all, isReturned }),
    paid: textOf(final),
    pending: textOf(all - final),
    outstanding: textOf(positive(due - all)),
    overpaid: textOf(positive(all - due - surplusReturned)),
    surplusReturned: textOf(surplusReturned),
    payments: settled,
  }
}

function requestStatus(sums: { due: bigint; final: bigint; all: bigint; isReturned: boolean }): RequestStatus {
  if (sums.isReturned) return 'REFUNDED'
  if (sums.final >= sums.due) return 'PAID'
  if (sums.all >= sums.due) return 'PENDING'
  return sums.all > 0n ? 'PARTIALLY_PAID' : 'OPEN'
}

function statusOf({ final, imported }: SettlingPayment, isReturned: boolean, isCovered: boolean): PaymentStatus {
  if (imported?.status === 'FAILED') return 'FAILED'
  if (!final) return 'PENDING'
  if (isReturned || imported?.status === 'REFUNDED') return 'REFUNDED'
  return isCovered ? 'CONFIRMED' : 'PARTIAL'
}

/** What was returned of a payment's surplus, in the invoice currency. */
function overReturned({ payment, over, overLeft }: Assigned): bigint {
  if (overLeft === 0n) return over.worth
  return ((over.paid - overLeft) * unitsOf(payment.counted)) / unitsOf(payment.amount)
}

function assignRefunds(
  due: bigint,
  payments: readonly SettlingPayment[],
  refunds: readonly SettlingRefund[],
): Map<string, Assigned> {
  const assigned: Assigned[] = []
  const steps = [
    ...payments.map((payment) => ({
      place: payment.place,
      rank: 0,
      run: () => void assigned.push(assignPayment(due, payment, assigned)),
    })),
    ...refunds.map((refund) => ({ place: refund.place, rank: 1, run: () => assignRefund(refund, assigned) })),
  ]
  for (const { run } of steps.toSorted((a, b) => compareSteps(a, b))) run()
  return new Map(assigned.map((each) => [each.payment.key, each]))
}

function assignPayment(due: bigint, payment: SettlingPayment, before: readonly Assigned[]): Assigned {
  const counted = before.reduce((sum, each) => sum + unitsOf(each.payment.counted), 0n)
  const [amount, own] = [unitsOf(payment.amount), unitsOf(payment.counted)]
  // The part of it above the amount due that payments before it had not overpaid already.
  const worth = positive(counted + own - due) - positive(counted - due)
  const paid = own === 0n ? 0n : (amount * worth) / own
  const returned = payment.imported === undefined ? 0n : unitsOf(payment.imported.returned)
  return {
    payment,
    over: { paid, worth },
    overLeft: paid,
    withinLeft: positive(amount - paid - returned),
    refunds: [],
    isReturned: returned > 0n && returned >= amount,
  }
}

function assignRefund({ key, amount }: SettlingRefund, assigned: readonly Assigned[]): void {
  let left = unitsOf(amount)
  const newestFirst = assigned.toReversed()
  for (const each of newestFirst) {
    const taken = each.overLeft < left ? each.overLeft : left
    each.overLeft -= taken
    left -= taken
  }
  for (const each of newestFirst) {
    const taken = each.withinLeft < left ? each.withinLeft : left
    if (taken === 0n) continue
    each.withinLeft -= taken
    left -= taken
    each.refunds.push({ key, amount: textOf(taken) })
  }
  const isEmpty = ({ overLeft, withinLeft }: Assigned) => overLeft === 0n && withinLeft === 0n
  const isAllReturned = assigned.every(isEmpty) && assigned.some(({ refunds }) => refunds.length > 0)
  for (const each of assigned) each.isReturned ||= isAllReturned || (isEmpty(each) && each.refunds.length > 0)
}

interface Step {
  readonly place: LedgerPlace
  readonly rank: number
}

/** In the order of the chain; within a block, payments come before the refunds that return them. */
function compareSteps(a: Step, b: Step): number {
  const byNumber =
    a.place.timestampSec - b.place.timestampSec || a.place.blockNumber - b.place.blockNumber || a.rank - b.rank
  if (byNumber !== 0) return byNumber
  if (a.place.txHash !== b.place.txHash) return a.place.txHash < b.place.txHash ? -1 : 1
  return a.place.eventIndex - b.place.eventIndex
}
