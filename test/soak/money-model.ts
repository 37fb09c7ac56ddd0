/**
 * What the service must store for each request, by the rules of money alone. The soak knows what each of its transactions did, so nothing here
 * decodes a log, and nothing is shared with detection.
 */
import { formatUnits, type Hex } from 'viem'

/** Stands for the chain's coin where a token has its address. */
export const COIN = 'coin'

/** What one event of a followed contract did, as its sender meant it. Addresses in lower case, amounts in base units. */
export interface Fact {
  /** The reference of the request that it is about; that of its refund address stands in `reference`. */
  readonly about: Hex
  /** The reference in the event. */
  readonly reference: Hex
  readonly to: string
  /** The token's address, or `coin`. */
  readonly token: string
  /** What arrived at `to`. */
  readonly received: bigint
  /** From whom it came to `to` directly; of coins, the direct caller of the proxy. */
  readonly paidFrom: string
  /** Whether `paidFrom` passes on the money of others. */
  readonly isPassedOn: boolean
  /** Undefined where the rules leave the payer unknown. */
  readonly payer: string | undefined
  /** Whether a node that lacks a trace may leave the payer unknown. */
  readonly payerNeedsTrace: boolean
  /** Of a conversion: the amount in US dollars, with 8 decimals. */
  readonly dollars?: bigint
}

/** A fact in a block. */
export interface PlacedFact extends Fact {
  readonly network: string
  readonly txHash: Hex
  readonly eventIndex: number
  readonly block: number
  readonly timestampSec: number
}

/** A request of one account. Amounts in base units of the invoice currency. */
export interface KnownRequest {
  readonly account: string
  readonly requestId: string
  readonly reference: Hex
  readonly refundReference: Hex | undefined
  readonly refundAddress: string | undefined
  readonly payee: string
  readonly network: string
  /** The address of the payment currency, or `coin`. */
  readonly token: string
  readonly decimals: number
  readonly amount: bigint
  /** Whether the amount is in US dollars, with 8 decimals. */
  readonly isFiat: boolean
  /** The account's refund wallets, registered before the first payment. */
  readonly wallets: ReadonlySet<string>
}

/** A payment as a search must return it. */
export interface ExpectedPayment {
  readonly txHash: Hex
  readonly eventIndex: number
  readonly block: number
  readonly amount: string
  /** Empty where unknown. */
  readonly payer: string
  readonly mayLackPayer: boolean
  readonly status: string
  readonly refunds: readonly Returned[]
}

/** A part of a refund. */
interface Returned {
  readonly txHash: Hex
  readonly eventIndex: number
  readonly amount: bigint
}

export interface ExpectedState {
  readonly payments: readonly ExpectedPayment[]
  readonly request: {
    readonly status: string
    readonly paid: string
    readonly pending: string
    readonly outstanding: string
    readonly overpaid: string
  }
  /** `txHash eventIndex reason`. */
  readonly unmatched: readonly string[]
}

/** `PAYMENT`, `REFUND`, or why it is neither. */
type Verdict = string

interface Counted {
  readonly fact: PlacedFact
  readonly amount: bigint
  /** In the invoice currency. */
  readonly worth: bigint
  readonly isFinal: boolean
}

/** @param finalBlock - blocks up to it are final */
export function expectState(request: KnownRequest, facts: readonly PlacedFact[], finalBlock: number): ExpectedState {
  const payments: Counted[] = []
  const refunds: Counted[] = []
  const unmatched: string[] = []
  for (const fact of facts) {
    if (fact.reference !== request.reference && fact.reference !== request.refundReference) continue
    const verdict = judge(request, fact, payments)
    const isFinal = fact.block <= finalBlock
    if (verdict === 'PAYMENT') payments.push({ fact, amount: fact.received, worth: worthOf(request, fact), isFinal })
    else if (verdict === 'REFUND') refunds.push({ fact, amount: fact.received, worth: 0n, isFinal })
    else unmatched.push(`${fact.txHash} ${fact.eventIndex} ${verdict}`)
  }
  return { ...settle(request, payments, refunds), unmatched: unmatched.toSorted() }
}

function worthOf({ isFiat }: KnownRequest, { received, dollars = 0n }: PlacedFact): bigint {
  return isFiat ? dollars : received
}

/** @param before - the request's payments before the event */
function judge(request: KnownRequest, fact: PlacedFact, before: readonly Counted[]): Verdict {
  if (fact.network !== request.network) return 'WRONG_CHAIN'
  if (fact.reference === request.reference && isRefundToPayer(request, fact, before)) return judgeReturn(request, fact)
  if (fact.reference === request.reference) return judgePayment(request, fact)
  if (fact.to !== request.refundAddress) return 'WRONG_PAYEE'
  const verdict = judgeReturn(request, fact)
  return verdict === 'REFUND' && !isPayeesMoney(request, fact) ? 'NOT_FROM_PAYEE' : verdict
}

function judgePayment(request: KnownRequest, fact: PlacedFact): Verdict {
  if (fact.to !== request.payee) return 'WRONG_PAYEE'
  if (fact.token !== request.token) return 'WRONG_TOKEN'
  if (request.isFiat && fact.dollars === undefined) return 'NOT_A_CONVERSION'
  if (!request.isFiat && fact.dollars !== undefined) return 'WRONG_TOKEN'
  if (fact.received === 0n) return 'NOTHING_RECEIVED'
  return fact.paidFrom === fact.to || fact.payer === fact.to ? 'SELF_PAYMENT' : 'PAYMENT'
}

function judgeReturn(request: KnownRequest, fact: PlacedFact): Verdict {
  if (fact.token !== request.token) return 'WRONG_TOKEN'
  if (fact.received === 0n) return 'NOTHING_RECEIVED'
  return fact.paidFrom === fact.to ? 'SELF_PAYMENT' : 'REFUND'
}

function isPayeesMoney({ payee, wallets }: KnownRequest, { paidFrom, isPassedOn }: PlacedFact): boolean {
  return !isPassedOn && (paidFrom === payee || wallets.has(paidFrom))
}

function isRefundToPayer(request: KnownRequest, fact: PlacedFact, before: readonly Counted[]): boolean {
  if (fact.to === request.payee || !isPayeesMoney(request, fact)) return false
  if (before.some((payment) => payment.fact.payer === fact.to)) return true
  return before.some((payment) => payment.fact.payer === undefined) && !request.wallets.has(fact.to)
}

/** What is left of a payment after refunds. */
interface Left {
  readonly payment: Counted
  readonly paidSurplus: bigint
  readonly surplusWorth: bigint
  surplus: bigint
  covering: bigint
  readonly returned: Returned[]
  wasTouched: boolean
  isReturned: boolean
}

function settle(request: KnownRequest, payments: readonly Counted[], refunds: readonly Counted[]) {
  const all = allot(request, payments, refunds)
  const final = allot(
    request,
    payments,
    refunds.filter(({ isFinal }) => isFinal),
  )
  const paid = sum(payments.filter(({ isFinal }) => isFinal).map(({ worth }) => worth))
  const pending = sum(payments.filter(({ isFinal }) => !isFinal).map(({ worth }) => worth))
  const isCovered = paid >= request.amount
  const statusOf = (payment: Counted, index: number) => {
    if (!payment.isFinal) return 'PENDING'
    if (final[index]?.isReturned === true) return 'REFUNDED'
    return isCovered ? 'CONFIRMED' : 'PARTIAL'
  }
  const statuses = payments.map(statusOf)
  const surplus = paid + pending - request.amount
  const surplusBack = sum(all.map(surplusReturned))
  const inInvoice = (units: bigint) => formatUnits(units > 0n ? units : 0n, request.isFiat ? 8 : request.decimals)
  return {
    payments: payments.map(({ fact, amount }, index) => ({
      txHash: fact.txHash,
      eventIndex: fact.eventIndex,
      block: fact.block,
      amount: formatUnits(amount, request.decimals),
      payer: fact.payer ?? '',
      mayLackPayer: fact.payerNeedsTrace,
      status: statuses[index] ?? '',
      refunds: all[index]?.returned ?? [],
    })),
    request: {
      status: requestStatus(request, { paid, pending, statuses }),
      paid: inInvoice(paid),
      pending: inInvoice(pending),
      outstanding: inInvoice(-surplus),
      overpaid: inInvoice(surplus - surplusBack),
    },
  }
}

function requestStatus(
  { amount }: KnownRequest,
  { paid, pending, statuses }: { paid: bigint; pending: bigint; statuses: readonly string[] },
): string {
  if (statuses.length > 0 && statuses.every((status) => status === 'REFUNDED')) return 'REFUNDED'
  if (paid >= amount) return 'PAID'
  if (paid + pending >= amount) return 'PENDING'
  return paid + pending > 0n ? 'PARTIALLY_PAID' : 'OPEN'
}

function surplusReturned({ payment, paidSurplus, surplusWorth, surplus }: Left): bigint {
  if (surplus === 0n) return surplusWorth
  return ((paidSurplus - surplus) * payment.worth) / payment.amount
}

/** Takes each refund first from what was over-paid, then from payments, both times newest first. */
function allot(request: KnownRequest, payments: readonly Counted[], refunds: readonly Counted[]): Left[] {
  const lefts = new Map<Counted, Left>()
  let counted = 0n
  const entries = [
    ...payments.map((entry) => ({ entry, rank: 0 })),
    ...refunds.map((entry) => ({ entry, rank: 1 })),
  ].toSorted((a, b) => compareOrder(a.entry.fact, b.entry.fact, a.rank - b.rank))
  for (const { entry, rank } of entries) {
    if (rank === 1) {
      takeBack(entry, [...lefts.values()])
      continue
    }
    const before = atLeastZero(counted - request.amount)
    counted += entry.worth
    const surplusWorth = atLeastZero(counted - request.amount) - before
    const surplus = entry.worth === 0n ? 0n : (entry.amount * surplusWorth) / entry.worth
    const covering = entry.amount - surplus
    const ends = { returned: [], wasTouched: false, isReturned: false }
    lefts.set(entry, { payment: entry, paidSurplus: surplus, surplusWorth, surplus, covering, ...ends })
  }
  return payments.map((payment) => lefts.get(payment) as Left)
}

function takeBack({ fact, amount }: Counted, lefts: readonly Left[]): void {
  let rest = amount
  for (const left of lefts.toReversed()) {
    const taken = rest < left.surplus ? rest : left.surplus
    left.surplus -= taken
    rest -= taken
  }
  for (const left of lefts.toReversed()) {
    const taken = rest < left.covering ? rest : left.covering
    if (taken === 0n) continue
    left.covering -= taken
    rest -= taken
    left.wasTouched = true
    left.returned.push({ txHash: fact.txHash, eventIndex: fact.eventIndex, amount: taken })
  }
  const isEmpty = ({ surplus, covering }: Left) => surplus === 0n && covering === 0n
  const isAll = lefts.every(isEmpty) && lefts.some(({ wasTouched }) => wasTouched)
  for (const left of lefts) if (isAll || (left.wasTouched && isEmpty(left))) left.isReturned = true
}

/** By time and block; within a block payments before refunds, then by hash and event. */
function compareOrder(a: PlacedFact, b: PlacedFact, rank: number): number {
  if (a.timestampSec !== b.timestampSec) return a.timestampSec - b.timestampSec
  if (a.block !== b.block) return a.block - b.block
  if (rank !== 0) return rank
  if (a.txHash !== b.txHash) return a.txHash < b.txHash ? -1 : 1
  return a.eventIndex - b.eventIndex
}

const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n)
const atLeastZero = (value: bigint) => (value > 0n ? value : 0n)
