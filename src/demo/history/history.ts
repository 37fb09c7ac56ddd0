/**
 * Plans ninety days of payments. The plan depends on a fixed seed, so that every start knows the same requests.
 */
import { formatAmount } from '../../domain/decimal.ts'
import type { DemoChainSpec } from '../network/chain-specs.ts'
import { FIAT_DECIMALS, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import { type DemoRequestTerms, draftTerms, referenceOf } from './demo-requests.ts'
import type { DemoPeople } from './people.ts'
import { cents, decimalsOf, fromUsd, type PlannedPayment, roundAmount, usdPrice } from './planned-payment.ts'
import { createRandom, type Random } from './random.ts'

export const PAYMENTS_PER_CHAIN = 100
const DAY_SEC = 86_400
const MIN_CENTS = 100
const MAX_CENTS = 5_000_000
/** Natural logarithm of the median amount in cents (about 120 US dollars), and its standard deviation. */
const LOG_MEDIAN = 9.4
const LOG_DEVIATION = 1.3

interface HistoryEntry {
  terms: DemoRequestTerms
  payments: readonly PlannedPayment[]
}

/**
 * Terms and amounts depend on the chain only; `fromSec` and `toSec` move just the times.
 *
 * @param fromSec - the first payment is soon after it
 * @param toSec - the last payment is before it
 * @returns entries in no order; a request is paid at once, in two parts, or only in part
 */
export function planHistory(
  spec: DemoChainSpec,
  people: DemoPeople,
  { fromSec, toSec }: { fromSec: number; toSec: number },
): readonly HistoryEntry[] {
  const random = createRandom(spec.chainId)
  const entries: HistoryEntry[] = []
  for (let made = 0; made < PAYMENTS_PER_CHAIN; ) {
    const entry = planEntry({ spec, people, random, fromSec, toSec, serial: entries.length })
    entries.push(entry)
    made += entry.payments.length
  }
  return entries
}

interface EntryContext {
  spec: DemoChainSpec
  people: DemoPeople
  random: Random
  fromSec: number
  toSec: number
  serial: number
}

function planEntry({ spec, people, random, fromSec, toSec, serial }: EntryContext): HistoryEntry {
  const atSec = fromSec + Math.floor(random.next() * (toSec - fromSec - DAY_SEC))
  const symbol = random.next() < 0.25 ? spec.native.symbol : random.pick(spec.tokens).symbol
  const conversion = random.next() < 0.25
  const usd = cents(randomCents(random))
  const amount = conversion
    ? usd
    : roundAmount(spec, symbol, fromUsd(spec, symbol, { usd, price: usdPrice(spec, symbol) }))
  const decimals = conversion ? FIAT_DECIMALS : decimalsOf(spec, symbol)
  const payee = random.pick(people.payees)
  const terms = draftTerms({
    name: `history ${spec.name} ${serial}`,
    payee,
    amount: formatAmount(amount, decimals),
    invoice: conversion ? 'USD' : undefined,
    symbol,
    chain: spec.name,
    reference: `order-${spec.name.toLowerCase()}-${1_000 + serial}`,
    createdAtSec: atSec - random.below(DAY_SEC),
  })
  const payer = random.pick(people.payers)
  const feePerMille = random.next() < 0.4 ? BigInt(random.pick([1, 5, 10])) : 0n
  const exact = random.next() < 0.7
  const payments = partsOf(amount, random).map((part, place) => ({
    atSec: atSec + place * 3_600,
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

function randomCents(random: Random): number {
  const drawn = Math.round(Math.exp(LOG_MEDIAN + LOG_DEVIATION * random.normal()))
  return Math.min(MAX_CENTS, Math.max(MIN_CENTS, drawn))
}
