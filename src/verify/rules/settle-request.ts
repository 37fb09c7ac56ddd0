import { type Decimal, formatDecimal, rescale } from '../../domain/decimal.ts'
import type { PaymentStatus } from '../../domain/payment.ts'
import type { SettledStatus } from '../../domain/payment-request.ts'

/** A payment of a request, for settling it. */
export interface SettlingPayment {
  /** Names it in the result. */
  readonly key: string
  readonly place: LedgerPlace
  readonly final: boolean
  /** In human units of `currency`. */
  readonly amount: Decimal
  readonly currency: string
  /** In the invoice currency. */
  readonly counted: Decimal
  readonly payer: string | undefined
  /** Whether it counts for nothing: it is FAILED, or an import says that its payee made it. */
  readonly isVoid: boolean
  readonly isFailed: boolean
  /** Refunds that an import brought and the chain does not show. */
  readonly importedRefunds: readonly ImportedRefund[]
  /** What an import says was returned beside them. */
  readonly returnedBeside: Decimal
}

/** A refund that an import brought: of one payment, at a time or at none. */
export interface ImportedRefund {
  readonly amount: Decimal
  readonly timestampSec: number | undefined
  readonly recipient: string | undefined
}

/** A refund of a request. */
export interface SettlingRefund {
  readonly key: string
  readonly place: LedgerPlace
  readonly final: boolean
  /** In human units of `currency`. */
  readonly amount: Decimal
  readonly currency: string
  readonly recipient: string | undefined
}

/** Where something stands in the order of the chain. An import may say neither block nor log. */
export interface LedgerPlace {
  readonly timestampSec: number
  readonly blockNumber: number
  readonly logIndex: number
}

/** A settled request. Amounts are decimal texts. */
export interface SettledRequest {
  readonly status: SettledStatus
  readonly paid: string
  readonly pending: string
  readonly held: string
  /** By the payments' keys. */
  readonly payments: ReadonlyMap<string, SettledPayment>
}

export interface SettledPayment {
  readonly status: PaymentStatus
  /** What refunds returned of it, and what of them is more than there was to return. */
  readonly refunds: readonly Part[]
}

interface Part {
  readonly key: string
  readonly amount: string
  readonly excess: boolean
}

/** All amounts are compared in units of this many places. */
const PLACES = 18
const unitsOf = (amount: Decimal) => rescale(amount, PLACES).units
const textOf = (units: bigint) => formatDecimal({ units, places: PLACES })
const least = (a: bigint, b: bigint) => (a < b ? a : b)

/** A payment that was passed. */
interface Passed {
  readonly payment: SettlingPayment
  /** Not returned by anything. */
  left: bigint
  /** Not returned by anything final. */
  leftFinally: bigint
  readonly parts: Part[]
}

/**
 * Settles a request by one pass over payments and refunds in the order of the chain, and one over the final ones alone.
 *
 * @see CHAIN, "Status, outstanding, refunds"
 */
export function settleRequest(
  expected: Decimal,
  payments: readonly SettlingPayment[],
  refunds: readonly SettlingRefund[],
): SettledRequest {
  const due = unitsOf(expected)
  const counting = payments.filter(({ isVoid }) => !isVoid)
  const all = pass(due, counting, refunds)
  const final = pass(
    due,
    counting.filter((payment) => payment.final),
    refunds.filter((refund) => refund.final),
  )
  const status = ({ key, final: isFinal, isFailed }: SettlingPayment): PaymentStatus => {
    const passed = all.passed.find(({ payment }) => payment.key === key)
    if (isFailed) return 'FAILED'
    if (!isFinal) return 'PENDING'
    if (passed !== undefined && passed.leftFinally === 0n && unitsOf(passed.payment.amount) > 0n) return 'REFUNDED'
    return final.isCovered ? 'CONFIRMED' : 'PARTIAL'
  }
  return {
    status: statusOf(all, final),
    paid: textOf(final.isCovered ? sumOf(final) : final.held),
    pending: textOf(sumOf(all) - sumOf(final)),
    held: textOf(all.held),
    payments: new Map(
      payments.map((payment) => [
        payment.key,
        {
          status: status(payment),
          refunds: all.passed.find((each) => each.payment === payment)?.parts ?? [],
        },
      ]),
    ),
  }
}

function statusOf(all: Pass, final: Pass): SettledStatus {
  if (all.isCovered && all.held === 0n) return 'REFUNDED'
  if (final.isCovered) return 'PAID'
  if (all.isCovered) return 'PENDING'
  return all.held === 0n ? 'OPEN' : 'PARTIALLY_PAID'
}

const sumOf = ({ passed }: Pass) => passed.reduce((sum, { payment }) => sum + unitsOf(payment.counted), 0n)

interface Pass {
  held: bigint
  isCovered: boolean
  /** In the order of the chain. */
  readonly passed: Passed[]
}

type Move = { readonly place: LedgerPlace; readonly isRefund: boolean; readonly key: string; readonly run: () => void }

function pass(due: bigint, payments: readonly SettlingPayment[], refunds: readonly SettlingRefund[]): Pass {
  const state: Pass = { held: 0n, isCovered: false, passed: [] }
  const waiting: SettlingRefund[] = []
  const moves: Move[] = []
  for (const payment of payments) {
    const of = { payment, left: unitsOf(payment.amount), leftFinally: unitsOf(payment.amount), parts: [] }
    const pay = () => {
      state.passed.push(of)
      for (const early of waiting.splice(0)) addPart(of, early, unitsOf(early.amount), true)
      state.held += unitsOf(payment.counted)
      state.isCovered ||= state.held >= due
    }
    moves.push({ place: payment.place, isRefund: false, key: payment.key, run: pay })
    for (const { amount, timestampSec = Number.POSITIVE_INFINITY, recipient } of payment.importedRefunds) {
      const isLater = timestampSec > payment.place.timestampSec
      const place = isLater ? { timestampSec, blockNumber: -1, logIndex: -1 } : payment.place
      const run = () => giveBack(state, of, unitsOf(amount), { recipient, final: true })
      moves.push({ place, isRefund: true, key: payment.key, run })
    }
    const atTheEnd = { ...payment.place, timestampSec: Number.POSITIVE_INFINITY }
    const beside = () => giveBack(state, of, unitsOf(payment.returnedBeside), { recipient: undefined, final: true })
    moves.push({ place: atTheEnd, isRefund: true, key: payment.key, run: beside })
  }
  for (const refund of refunds) {
    const run = () => void (state.passed.length === 0 ? waiting.push(refund) : takeRefund(state, refund))
    moves.push({ place: refund.place, isRefund: true, key: refund.key, run })
  }
  for (const { run } of moves.toSorted(compareMoves)) run()
  return state
}

function takeRefund(state: Pass, refund: SettlingRefund): void {
  const newestFirst = state.passed.toReversed()
  const isTheirs = ({ payment: { payer } }: Passed) => payer !== undefined && payer === refund.recipient
  let rest = unitsOf(refund.amount)
  for (const theirs of [true, false]) {
    for (const of of newestFirst) {
      if (isTheirs(of) !== theirs || of.payment.currency !== refund.currency) continue
      const taken = least(rest, of.left)
      if (taken === 0n) continue
      rest -= taken
      addPart(of, refund, taken, false)
      giveBack(state, of, taken, refund)
    }
  }
  const [newest] = newestFirst
  if (rest > 0n && newest !== undefined) addPart(newest, refund, rest, true)
}

function addPart({ parts }: Passed, { key }: SettlingRefund, units: bigint, excess: boolean): void {
  parts.push({ key, amount: textOf(units), excess })
}

/** Lowers what is held: after the cover by whatever is returned, before it by what went back to the payer. */
function giveBack(
  state: Pass,
  of: Passed,
  units: bigint,
  { recipient, final }: Pick<SettlingRefund, 'recipient' | 'final'>,
): void {
  const taken = least(units, of.left)
  of.left -= taken
  if (!final || taken === 0n) return
  const before = worthLeft(of)
  of.leftFinally -= taken
  const { payer } = of.payment
  if (state.isCovered || (payer !== undefined && payer === recipient)) state.held -= before - worthLeft(of)
}

/** What is left of a payment, in the invoice currency: what was returned is rounded down. */
function worthLeft({ payment, leftFinally }: Passed): bigint {
  const [amount, counted] = [unitsOf(payment.amount), unitsOf(payment.counted)]
  return counted - (counted * (amount - leftFinally)) / amount
}

/** In the order of the chain. What a place cannot tell apart: payments first, then by key. */
function compareMoves(a: Move, b: Move): number {
  const numbers = (move: Move) => [
    move.place.timestampSec,
    move.place.blockNumber,
    move.place.logIndex,
    Number(move.isRefund),
  ]
  const others = numbers(b)
  const at = numbers(a).findIndex((value, index) => value !== others[index])
  if (at >= 0) return numbers(a)[at]! < others[at]! ? -1 : 1
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1
}
