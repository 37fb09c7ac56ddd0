import { addressToBytes } from '../../domain/address.ts'
import { amountBasis } from '../filter/payment-filter.ts'
import { countOf } from './estimate-matches.ts'
import { amountParts, bounded, cellParts, hasResidual, type Named, sliced, statusParts, walk } from './plan-parts.ts'
import { amounts, clamp, endsSoon, gapBefore, hasAny, isOneOf, MARGIN, type Terms } from './plan-terms.ts'
import type { Plan, Shape, WalkPart } from './search-plan.ts'

/** Filters that name payments by a column with an index, what names the fewest first. */
export const namingFields = ['requestId', 'paymentReference', 'reference', 'payer', 'payee', 'walletAddress'] as const
type NamingField = (typeof namingFields)[number]

const hex = (text: string) => Buffer.from(text.replace(/^0x/, ''), 'hex')

/** A wallet is two: payer and payee. */
function namedBy({ filter }: Terms, field: NamingField): Named[] {
  const values = filter[field] ?? []
  switch (field) {
    case 'requestId':
      return [{ field, column: 'request_id', values: values.map(hex) }]
    case 'paymentReference':
      return [{ field, column: 'payment_reference', values: values.map(hex) }]
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

/** What is known of a plan for named payments before its shapes are made. */
interface Naming {
  readonly terms: Terms
  /** The filters that name them, what names the fewest first. */
  readonly fields: readonly NamingField[]
  /** Whether the index of the first has all that is asked; else the rows themselves are asked. */
  readonly isCovered: boolean
}

/** Of named payments little is known beforehand: walks and gathers take turns, each longer than the one before. */
export function planNamed(terms: Terms): Plan {
  const fields = namingFields.filter((field) => terms.given.includes(field))
  const [field] = fields as [NamingField]
  const isPayerOfPayee = fields.join() === 'payer,payee'
  const isCovered = isPayerOfPayee || (fields.length === 1 && (isOneOf(walletFields, field) || field === 'reference'))
  const naming = { terms, fields, isCovered }
  if (terms.query.sortBy === 'amount' && !hasOrderByAmount(terms, field)) return planByForeignAmount(naming, field)
  const parts = partsOf(terms, field)
  const overlap = isTwo(field)
  if (!hasResidual(parts)) return [...sliced(terms, parts, overlap), walk(parts, overlap)]
  return fields.length > 1 ? planCrossed(naming, field) : planOneNamed(naming, field, parts)
}

const walletFields = ['payer', 'payee', 'walletAddress'] as const

function isTwo(field: NamingField): boolean {
  return field === 'walletAddress'
}

/** Whether the payments of one value stand in an index in the order of the amount that is asked. */
function hasOrderByAmount({ filter }: Terms, field: NamingField): boolean {
  return amountBasis(filter) === 'amountInUsd' && isOneOf(walletFields, field)
}

function partsOf(terms: Terms, field: NamingField): WalkPart[] {
  const named = namedBy(terms, field)
  return terms.query.sortBy === 'amount'
    ? named.flatMap((each) => amountParts(terms, each))
    : named.flatMap((each) => statusParts(terms, each))
}

function gatherOf(terms: Terms, field: NamingField, most?: number): Shape {
  const parts = namedBy(terms, field).flatMap((each) => statusParts(terms, each))
  return { kind: 'gather', parts, overlap: isTwo(field), ...(most === undefined ? {} : { most }) }
}

/** By an amount that no index of the named payments is ordered by: they are gathered, or the account is walked. */
function planByForeignAmount({ terms, fields, isCovered }: Naming, field: NamingField): Plan {
  const { thresholds } = terms
  const isOfReference = field === 'reference' && amountBasis(terms.filter) === 'amountInUsd'
  const probes = fields.map((each) => gatherOf(terms, each, thresholds.probe))
  const walked = bounded(terms, amountParts(terms), isOfReference ? thresholds.longestWalk / 4 : thresholds.walk)
  const gathered = isCovered ? [gatherOf(terms, field, thresholds.gather)] : []
  return [...probes, walked, ...gathered, gatherOf(terms, field)]
}

/**
 * Named twice over: how many of the one are of the other is not known, but if they are many, a short walk of either finds them. A wallet
 * has fewer than a reference that very many share.
 */
function planCrossed({ terms, fields, isCovered }: Naming, field: NamingField): Plan {
  const { thresholds } = terms
  const isWallet = (each: NamingField) => isOneOf(walletFields, each)
  const first = isCovered ? fields : [...fields.filter(isWallet), ...fields.filter((each) => !isWallet(each))]
  const upTo = (entries: number) => first.map((each) => bounded(terms, partsOf(terms, each), entries, isTwo(each)))
  const most = isCovered ? thresholds.longestWalk : 2 * thresholds.walk
  const expected = MARGIN * expectedEntries(terms)
  return [
    ...fields.map((each) => gatherOf(terms, each, thresholds.probe)),
    ...(expected > most ? [] : upTo(Math.max(expected, thresholds.walk))),
    gatherOf(terms, field, isCovered ? thresholds.gather : thresholds.gatherRows),
    ...fields.slice(1).map((each) => gatherOf(terms, each, thresholds.gatherRows)),
    // all of the one that has the other in its index; else either may be the few
    ...upTo(most).slice(0, isCovered ? 1 : first.length),
    walk(partsOf(terms, field), isTwo(field)),
  ]
}

function planOneNamed({ terms, isCovered }: Naming, field: NamingField, parts: readonly WalkPart[]): Plan {
  const { thresholds, query } = terms
  const overlap = isTwo(field)
  const exact = walk(parts, overlap)
  const probes = isCovered ? [] : [gatherOf(terms, field, thresholds.probe)]
  const gathered = gatherOf(terms, field, isCovered ? thresholds.gather : thresholds.gatherRows)
  const inRange = (most: number) => gatherOfRange(terms, field, isCovered, most)
  const expected = expectedEntries(terms)
  const most = isCovered ? thresholds.longestWalk : 2 * thresholds.walk
  const walked = bounded(terms, parts, clamp(MARGIN * expected, thresholds.walk, most), overlap)
  const turns = expected > most ? [gathered, walked] : [walked, gathered]
  const cells = query.sortBy === 'amount' ? undefined : cellParts(terms)
  const isRare = cells !== undefined && countOf(terms.estimate.cells) <= terms.statistics.n / MARGIN
  const inCells = isRare ? [bounded(terms, cells.parts, thresholds.walk, cells.overlap)] : []
  if (gapBefore(terms) > 0.1 || endsSoon(terms))
    return [...probes, ...inCells, ...inRange(thresholds.gather), ...turns, exact]
  return [...probes, ...inRange(thresholds.probe), ...inRange(thresholds.gather), ...turns, ...inCells, exact]
}

/** A wallet's payments in a range of US dollars, where they are not asked by amount. */
function gatherOfRange(terms: Terms, field: NamingField, isCovered: boolean, most: number): Shape[] {
  const isRange =
    isCovered && hasOrderByAmount(terms, field) && hasAny(terms, amounts) && terms.query.sortBy !== 'amount'
  if (!isRange) return []
  const parts = namedBy(terms, field).flatMap((each) => amountParts(terms, each))
  return [{ kind: 'gather', parts, overlap: isTwo(field), most }]
}

/** How many of the named payments are read for a page: the small filters, and dates where they do not bound the walk, leave some. */
function expectedEntries({ estimate, query, statistics }: Terms): number {
  const ofRest = query.sortBy === 'amount' ? estimate.ofDates * estimate.ofStatus : 1
  const share = statistics.n === 0 ? 1 : estimate.ofSmall * ofRest
  return query.rows / Math.max(share, 1e-9)
}
