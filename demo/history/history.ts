/**
 * Plans the payments of the last days, which are on the demo's chains. The plan depends on a fixed seed, so that every start knows the same
 * requests.
 */
import { formatAmount } from '../../src/domain/decimal.ts'
import type { DemoChainSpec } from '../network/chain-specs.ts'
import { FIAT_DECIMALS, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import type { DemoPeople } from '../network/people.ts'
import { usdPrice } from '../network/wandering-prices.ts'
import { type DemoRequestTerms, draftTerms, referenceOf } from './demo-requests.ts'
import { cents, decimalsOf, fromUsd, type PlannedPayment, roundAmount } from './planned-payment.ts'
import { createRandom, drawCents, type Random } from './random.ts'
import { timesBefore } from './trade.ts'

export const PAYMENTS_PER_CHAIN = 60
const DAY_SEC = 86_400
const SECOND_PART_AFTER_SEC = 1_200

interface HistoryEntry {
  terms: DemoRequestTerms
  payments: readonly PlannedPayment[]
}

/**
 * Terms and amounts depend on the chain only; the times move.
 *
 * @param fromSec - no payment is before it
 * @param toSec - the last payment is before it
 * @param madeAtSec - when the demo was made
 * @returns latest first; a request is paid at once, in two parts, or only in part
 */
export function planHistory(
  spec: DemoChainSpec,
  people: DemoPeople,
  { fromSec, toSec, madeAtSec }: { fromSec: number; toSec: number; madeAtSec: number },
): readonly HistoryEntry[] {
  const random = createRandom(spec.chainId)
  const draw = { madeAtSec, share: spec.tradeShare, next: createRandom(spec.chainId + 2).next }
  const times = timesBefore(toSec - SECOND_PART_AFTER_SEC, draw)
  const entries: HistoryEntry[] = []
  for (let made = 0; made < PAYMENTS_PER_CHAIN; ) {
    const atSec = Math.max(fromSec, times.next().value)
    const serial = entries.length
    const [name, reference] = [`history ${spec.name} ${serial}`, `order-${spec.name.toLowerCase()}-${1_000 + serial}`]
    const entry = planPurchase({ spec, people, random, atSec, name, reference })
    entries.push(entry)
    made += entry.payments.length
  }
  return entries
}

/** What somebody buys at a moment. */
interface Purchase {
  spec: DemoChainSpec
  people: Pick<DemoPeople, 'payers' | 'payees' | 'feeCollector'>
  random: Random
  atSec: number
  /** Unique; see {@link draftTerms}. */
  name: string
  reference: string
}

/** Draws a request and how it is paid. */
export function planPurchase({ spec, people, random, atSec, name, reference }: Purchase): HistoryEntry {
  const symbol = random.next() < 0.25 ? spec.native.symbol : random.pick(spec.tokens).symbol
  const conversion = random.next() < 0.25
  const usd = cents(drawCents(random))
  const amount = conversion
    ? usd
    : roundAmount(spec, symbol, fromUsd(spec, symbol, { usd, price: usdPrice(spec, symbol) }))
  const decimals = conversion ? FIAT_DECIMALS : decimalsOf(spec, symbol)
  const payee = random.pick(people.payees)
  const terms = draftTerms({
    name,
    payee,
    amount: formatAmount(amount, decimals),
    invoice: conversion ? 'USD' : undefined,
    symbol,
    chain: spec.name,
    reference,
    createdAtSec: atSec - random.below(DAY_SEC / 4),
  })
  const payer = random.pick(people.payers)
  const feePerMille = random.next() < 0.4 ? BigInt(random.pick([1, 5, 10])) : 0n
  const exact = random.next() < 0.7
  const payments = partsOf(amount, random).map((part, place) => ({
    atSec: atSec + place * SECOND_PART_AFTER_SEC,
    payer,
    payee,
    paymentReference: referenceOf(terms),
    symbol,
    amount: part,
    feeAmount: (part * feePerMille) / 1_000n,
    feeAddress: feePerMille > 0n ? people.feeCollector : ZERO_ADDRESS,
    conversion,
    exact,
  }))
  return { terms, payments }
}

/** Most are paid at once, some in two parts, a few only in part. */
function partsOf(amount: bigint, random: Random): bigint[] {
  const choice = random.next()
  const half = amount / 2n
  if (choice < 0.06) return [half]
  return choice < 0.12 ? [half, amount - half] : [amount]
}
