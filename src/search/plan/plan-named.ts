import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { amountBasis } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { countOf } from './estimate-matches.ts'
import { amountParts, cellParts, hasResidual, type NamedValues, statusParts } from './plan-parts.ts'
import { boundedWalk, sliced, walk } from './plan-shapes.ts'
import { amounts, clamp, endsSoon, gapBefore, hasAny, isOneOf, MARGIN, type Terms } from './plan-terms.ts'
import type { Plan, Shape, WalkPart } from './search-plan.ts'

/** Filters that name payments by a column with an index, the most selective first. */
export const namingFields = ['requestId', 'paymentReference', 'reference', 'payer', 'payee', 'walletAddress'] as const
type NamingField = (typeof namingFields)[number]

/** A wallet is looked for in two columns. */
function namedBy({ filter }: Terms, field: NamingField): NamedValues[] {
  const values = filter[field] ?? []
  switch (field) {
    case 'requestId':
      return [{ field, column: 'request_id', values: values.map(hexToBytes) }]
    case 'paymentReference':
      return [{ field, column: 'payment_reference', values: values.map(hexToBytes) }]
    case 'reference':
      return [{ field, column: 'reference', values }]
    case 'payer':
    case 'payee':
      return [{ field, column: field, values: (filter[field] ?? []).map(addressToBytes) }]
    case 'walletAddress': {
      const wallets = (filter[field] ?? []).map(addressToBytes)
      return [
        { field, column: 'payer', values: wallets },
        { field, column: 'payee', values: wallets },
      ]
    }
  }
}

/** The terms of a plan for named payments. */
interface NamedTerms {
  readonly terms: Terms
  /** The naming filters that were given, the most selective first. */
  readonly fields: readonly [NamingField, ...NamingField[]]
  /** Whether the index of the first has every column that the other filters ask for; if not, the rows have to be read. */
  readonly isCovered: boolean
}

/**
 * Plans for payments that a filter names: by wallet, request or reference. The statistics do not tell how many payments a name has, so
 * walks and gathers take turns, each with a larger limit than the one before.
 *
 * @example payee A: walk payments_payee, branches (A, 1) to (A, 5)
 * @example payee A and network GNOSIS: walk up to 1,500 entries of payments_payee, gather up to 16,000 of them, walk the cells of
 *   GNOSIS, walk payments_payee
 */
export function planNamed(terms: Terms): Plan {
  const fields = namingFields.filter((field) => terms.given.includes(field)) as [NamingField, ...NamingField[]]
  const [field] = fields
  // the index by payer has the payee as well
  const isPayerAndPayee = fields.join() === 'payer,payee'
  const isCovered = isPayerAndPayee || (fields.length === 1 && (isWallet(field) || field === 'reference'))
  const named = { terms, fields, isCovered }
  if (terms.query.sortBy === 'amount' && !hasOrderByAmount(terms, field)) return planByForeignAmount(named)
  const parts = partsOf(terms, field)
  const mayOverlap = isTwoColumns(field)
  if (!hasResidual(parts)) return [...sliced(terms, parts, mayOverlap), walk(parts, mayOverlap)]
  return fields.length > 1 ? planNamedTwice(named) : planNamedOnce(named, parts)
}

const walletFields: readonly FilterName[] = ['payer', 'payee', 'walletAddress']

function isWallet(field: NamingField): boolean {
  return isOneOf(walletFields, field)
}

/** Whether a payment may be found by both columns of the filter. */
function isTwoColumns(field: NamingField): boolean {
  return field === 'walletAddress'
}

/** Whether an index holds the payments of one value in the order of the requested amount. */
function hasOrderByAmount({ filter }: Terms, field: NamingField): boolean {
  return amountBasis(filter) === 'amountInUsd' && isWallet(field)
}

/** The payments of a naming filter in the order of the answer. */
function partsOf(terms: Terms, field: NamingField): WalkPart[] {
  const named = namedBy(terms, field)
  return terms.query.sortBy === 'amount'
    ? named.flatMap((each) => amountParts(terms, each))
    : named.flatMap((each) => statusParts(terms, each))
}

/** All payments of a naming filter. */
function gatherOf(terms: Terms, field: NamingField, maxEntries?: number): Shape {
  const parts = namedBy(terms, field).flatMap((each) => statusParts(terms, each))
  return { kind: 'gather', parts, mayOverlap: isTwoColumns(field), maxEntries }
}

/**
 * By an amount that no index of the named payments is ordered by: they are gathered, or the account is walked in the order of the amount.
 */
function planByForeignAmount({ terms, fields, isCovered }: NamedTerms): Plan {
  const { thresholds } = terms
  const [field] = fields
  // payments_usd has the merchant's reference, so its entries answer that filter without the rows
  const isInIndex = field === 'reference' && amountBasis(terms.filter) === 'amountInUsd'
  const probes = fields.map((each) => gatherOf(terms, each, thresholds.probe))
  const walked = boundedWalk(terms, amountParts(terms), isInIndex ? thresholds.maxWalk / 4 : thresholds.walk)
  const gathered = isCovered ? [gatherOf(terms, field, thresholds.gather)] : []
  return [...probes, walked, ...gathered, gatherOf(terms, field)]
}

/**
 * Two naming filters, such as a payee and a reference. How many payments have both is unknown; if many do, a short walk of either finds a
 * page of them. The wallet is walked first, because a reference may be shared by very many payments.
 */
function planNamedTwice({ terms, fields, isCovered }: NamedTerms): Plan {
  const { thresholds } = terms
  const [field, ...others] = fields
  const walkOrder = isCovered ? fields : [...fields.filter(isWallet), ...fields.filter((each) => !isWallet(each))]
  const walksOf = (entries: number) =>
    walkOrder.map((each) => boundedWalk(terms, partsOf(terms, each), entries, isTwoColumns(each)))
  const maxWalk = isCovered ? thresholds.maxWalk : 2 * thresholds.walk
  const expected = MARGIN * expectedEntries(terms)
  return [
    ...fields.map((each) => gatherOf(terms, each, thresholds.probe)),
    ...(expected > maxWalk ? [] : walksOf(Math.max(expected, thresholds.walk))),
    gatherOf(terms, field, isCovered ? thresholds.gather : thresholds.gatherRows),
    ...others.map((each) => gatherOf(terms, each, thresholds.gatherRows)),
    // where the index of the first has the other, its walk alone is cheap; else either may be the one with few payments
    ...walksOf(maxWalk).slice(0, isCovered ? 1 : walkOrder.length),
    walk(partsOf(terms, field), isTwoColumns(field)),
  ]
}

/** One naming filter beside others that its index does not answer. */
function planNamedOnce({ terms, fields: [field], isCovered }: NamedTerms, parts: readonly WalkPart[]): Plan {
  const { thresholds, query } = terms
  const mayOverlap = isTwoColumns(field)
  const probes = isCovered ? [] : [gatherOf(terms, field, thresholds.probe)]
  const gathered = gatherOf(terms, field, isCovered ? thresholds.gather : thresholds.gatherRows)
  const ofRange = (maxEntries: number) => (isCovered ? gatherOfAmounts(terms, field, maxEntries) : [])
  const expected = expectedEntries(terms)
  const maxWalk = isCovered ? thresholds.maxWalk : 2 * thresholds.walk
  const walked = boundedWalk(terms, parts, clamp(MARGIN * expected, thresholds.walk, maxWalk), mayOverlap)
  const inTurn = expected > maxWalk ? [gathered, walked] : [walked, gathered]
  const cells = query.sortBy === 'amount' ? undefined : cellParts(terms)
  const isRare = cells !== undefined && countOf(terms.estimate.cells) <= terms.statistics.n / MARGIN
  const ofCells = isRare ? [boundedWalk(terms, cells.parts, thresholds.walk, cells.mayOverlap)] : []
  const exact = walk(parts, mayOverlap)
  if (gapBefore(terms) > 0.1 || endsSoon(terms))
    return [...probes, ...ofCells, ...ofRange(thresholds.gather), ...inTurn, exact]
  return [...probes, ...ofRange(thresholds.probe), ...ofRange(thresholds.gather), ...inTurn, ...ofCells, exact]
}

/** A wallet's payments in a range of US dollars, for an order other than by amount. */
function gatherOfAmounts(terms: Terms, field: NamingField, maxEntries: number): Shape[] {
  const hasRange = hasOrderByAmount(terms, field) && hasAny(terms, amounts) && terms.query.sortBy !== 'amount'
  if (!hasRange) return []
  const parts = namedBy(terms, field).flatMap((each) => amountParts(terms, each))
  return [{ kind: 'gather', parts, mayOverlap: isTwoColumns(field), maxEntries }]
}

/** How many of the named payments have to be read for a page, given the share that the other filters leave. */
function expectedEntries({ estimate, query, statistics }: Terms): number {
  // in the order of the amount, dates and statuses do not bound the walk
  const ofRest = query.sortBy === 'amount' ? estimate.ofDates * estimate.ofStatus : 1
  const share = statistics.n === 0 ? 1 : estimate.ofSmall * ofRest
  return query.rows / Math.max(share, 1e-9)
}
