/**
 * What the service must store for each request, by the rules of money alone: from facts as their senders meant them, or as `read-facts.ts` reads
 * them from a chain. Nothing is shared with detection.
 */
import { formatUnits, type Hex } from 'viem'
import { type ModelEntry, type Place, settle } from './standing.ts'

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
  /** Why a conversion does not count by our own path's rate. */
  readonly rate?: string | undefined
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
  readonly refunds: readonly ModelEntry[]
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
  readonly isFinal: boolean
}

interface Judged {
  readonly payments: readonly Counted[]
  readonly refunds: readonly Counted[]
}

/**
 * @param facts - in the order of the chain
 * @param finalBlock - blocks up to it are final
 */
export function expectState(request: KnownRequest, facts: readonly PlacedFact[], finalBlock: number): ExpectedState {
  const payments: Counted[] = []
  const refunds: Counted[] = []
  const unmatched: string[] = []
  const places = new Map<PlacedFact, Place>()
  for (const [at, fact] of facts.entries()) {
    places.set(fact, { timeSec: fact.timestampSec, block: fact.block, transaction: 0, log: at })
    if (fact.reference !== request.reference && fact.reference !== request.refundReference) continue
    const verdict = judge(request, fact, payments)
    const isFinal = fact.block <= finalBlock
    if (verdict === 'PAYMENT') payments.push({ fact, isFinal })
    else if (verdict === 'REFUND') refunds.push({ fact, isFinal })
    else unmatched.push(`${fact.txHash} ${fact.eventIndex} ${verdict}`)
  }
  return { ...settleFacts(request, { payments, refunds }, places), unmatched: unmatched.toSorted() }
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
  if (fact.paidFrom === fact.to || fact.payer === fact.to) return 'SELF_PAYMENT'
  return (request.isFiat ? fact.rate : undefined) ?? 'PAYMENT'
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

/** @param places - where each fact stands on the chain */
function settleFacts(request: KnownRequest, { payments, refunds }: Judged, places: ReadonlyMap<PlacedFact, Place>) {
  const placeOf = (fact: PlacedFact) => places.get(fact) as Place
  const paid = payments.map(({ fact, isFinal }) => ({
    key: keyOf(fact),
    place: placeOf(fact),
    amount: fact.received,
    worth: request.isFiat ? (fact.dollars ?? 0n) : fact.received,
    payer: fact.payer,
    final: isFinal,
  }))
  const returned = refunds.map(({ fact, isFinal }) => {
    const { txHash, eventIndex, to, received: amount } = fact
    return { place: placeOf(fact), txHash, eventIndex, to, amount, final: isFinal }
  })
  const standing = settle({ amount: request.amount, cancelled: false, expired: false }, paid, returned)
  const factOf = new Map(payments.map(({ fact }) => [keyOf(fact), fact]))
  const text = (units: bigint) => formatUnits(units, request.isFiat ? 8 : request.decimals)
  return {
    payments: standing.payments.flatMap(({ key, amount, status, refunds: entries }) => {
      const fact = factOf.get(key)
      if (fact === undefined) return []
      const { txHash, eventIndex, block, payer = '', payerNeedsTrace: mayLackPayer } = fact
      const stated = formatUnits(amount, request.decimals)
      return [{ txHash, eventIndex, block, amount: stated, payer, mayLackPayer, status, refunds: entries }]
    }),
    request: {
      status: standing.status,
      paid: text(standing.paid),
      pending: text(standing.pending),
      outstanding: text(standing.outstanding),
      overpaid: text(standing.overpaid),
    },
  }
}

const keyOf = ({ txHash, eventIndex }: PlacedFact) => `${txHash} ${eventIndex}`
