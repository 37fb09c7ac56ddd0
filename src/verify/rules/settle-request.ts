import { type Decimal, formatDecimal, rescale } from '../../domain/decimal.ts'
import type { PaymentStatus } from '../../domain/payment.ts'
import type { RequestStatus } from '../../domain/payment-request.ts'

/** A payment of a request, as the rules of settlement see it. */
export interface SettlingPayment {
  /** Names it in the result. */
  readonly key: string
  readonly place: LedgerPlace
  readonly final: boolean
  /** In the payment currency. */
  readonly amount: Decimal
  /** In the invoice currency. */
  readonly counted: Decimal
  /** What an import says of it, which stands: FAILED, REFUNDED, and refunds that the chain does not show. */
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

/** What settling makes of a request. Amounts as texts. */
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
  /** Which refund took back how much of it. */
  readonly refunds: readonly { readonly key: string; readonly amount: string }[]
}

/** All amounts are compared in units of this many places. */
const PLACES = 18
const unitsOf = (amount: Decimal) => rescale(amount, PLACES).units
const textOf = (units: bigint) => formatDecimal({ units, places: PLACES })
const positive = (units: bigint) => (units > 0n ? units : 0n)

/** A payment while refunds are laid on it. `over` is what it brought beyond the request's amount, `within` the rest, less what was returned. */
interface Laid {
  readonly payment: SettlingPayment
  readonly over: { readonly paid: bigint; readonly worth: bigint }
  overLeft: bigint
  withinLeft: bigint
  readonly refunds: { readonly key: string; readonly amount: string }[]
  isReturned: boolean
}

/**
 * Settles a request: PENDING until final; CONFIRMED all at once when final payments cover it, before that PARTIAL. A refund first takes what
 * was paid too much, then goes to payments, newest first; a payment that was returned whole by final refunds is REFUNDED.
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
  const laid = layRefunds(due, counting, refunds)
  const laidFinal = layRefunds(
    due,
    counting,
    refunds.filter((refund) => refund.final),
  )
  const states = payments.map((payment): [string, SettledPayment] => [
    payment.key,
    {
      status: statusOf(payment, laidFinal.get(payment.key)?.isReturned ?? false, final >= due),
      refunds: laid.get(payment.key)?.refunds ?? [],
    },
  ])
  const settled = new Map(states)
  const surplusReturned = [...laid.values()].reduce((sum, each) => sum + overReturned(each), 0n)
  const worthy = counting.filter(({ counted }) => counted.units > 0n)
  const isReturned = worthy.length > 0 && worthy.every(({ key }) => settled.get(key)?.status === 'REFUNDED')
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
function overReturned({ payment, over, overLeft }: Laid): bigint {
  if (overLeft === 0n) return over.worth
  return ((over.paid - overLeft) * unitsOf(payment.counted)) / unitsOf(payment.amount)
}

function layRefunds(
  due: bigint,
  payments: readonly SettlingPayment[],
  refunds: readonly SettlingRefund[],
): Map<string, Laid> {
  const laid: Laid[] = []
  const steps = [
    ...payments.map((payment) => ({
      place: payment.place,
      rank: 0,
      run: () => void laid.push(layPayment(due, payment, laid)),
    })),
    ...refunds.map((refund) => ({ place: refund.place, rank: 1, run: () => layRefund(refund, laid) })),
  ]
  for (const { run } of steps.toSorted((a, b) => compareSteps(a, b))) run()
  return new Map(laid.map((each) => [each.payment.key, each]))
}

function layPayment(due: bigint, payment: SettlingPayment, before: readonly Laid[]): Laid {
  const counted = before.reduce((sum, each) => sum + unitsOf(each.payment.counted), 0n)
  const [amount, own] = [unitsOf(payment.amount), unitsOf(payment.counted)]
  // Of what it counts for, all is too much that lies above the amount due, and was not too much before.
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

function layRefund({ key, amount }: SettlingRefund, laid: readonly Laid[]): void {
  let left = unitsOf(amount)
  const newestFirst = laid.toReversed()
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
  const isEmpty = ({ overLeft, withinLeft }: Laid) => overLeft === 0n && withinLeft === 0n
  const isAllReturned = laid.every(isEmpty) && laid.some(({ refunds }) => refunds.length > 0)
  for (const each of laid) each.isReturned ||= isAllReturned || (isEmpty(each) && each.refunds.length > 0)
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
