import type { CurrencyMatch } from '../../chains/resolve-names.ts'
import {
  amountBasis,
  currencyFields,
  currencyMatchesOf,
  type PaymentFilter,
  pairsByKey,
} from '../filter/payment-filter.ts'
import { amountColumns, type FilterField, type FilterName, filterFields, turnedField } from '../filter/search-fields.ts'
import { directionOf, type PageQuery } from '../query/page-query.ts'
import type { AccountStatistics, AmountSample } from '../sql/account-statistics.ts'
import { isAside, othersThan } from './sources.ts'
import { branchCount, isMerged, isWhole, needsNoGuess, type Way } from './ways.ts'

/** How much the attempts may cost, in index entries. */
export interface LadderOptions {
  /** Ascending, each about twice the one before; after the last one the first way is read without a limit. */
  readonly limits: readonly number[]
  readonly makeGuess: MakeGuess
}

/** More entries than any table has. It is a limit in SQL all the same, which keeps PostgreSQL to the index and the order of a way. */
export const ALL = Number.MAX_SAFE_INTEGER

/** One attempt. */
export interface Step {
  readonly way: Way
  /** How many entries it may read; {@link ALL} in the last attempt. */
  readonly limit: number
  /** Whether the entries are read without their rows, and then the rows of the page. */
  readonly isCovered: boolean
}

/** The first limit is the least that is as many times the cost of the cheapest way, since guesses are wrong by about as much. */
const MARGIN = 2.5

/**
 * The attempts at a page, in their order; the last one always gives it. The way that is probably the cheapest goes first. If it does not
 * reach the end of the page within the limit, every other way may cost as much before any may cost more: a wrong guess then costs a
 * few times what the best way does, and not what the wrong one would.
 *
 * @example reference A and network GNOSIS: walk 1,500 entries of A, else 1,500 of GNOSIS, else 6,000 of A, …
 */
export function ladderOf(
  ways: readonly Way[],
  query: PageQuery,
  statistics: AccountStatistics,
  { limits, makeGuess: guessFor }: LadderOptions = DEFAULT_LADDER,
): Step[] {
  const [only] = ways
  if (only !== undefined && isWhole(only) && needsNoGuess(only)) return [{ way: only, limit: ALL, isCovered: false }]
  const guessOf = guessFor(query, statistics)
  const guessed = ways.map((way) => ({ way, guess: guessOf(way) }))
  const byCost = guessed.toSorted((one, other) => one.guess.cost - other.guess.cost)
  const least = MARGIN * (byCost[0]?.guess.cost ?? 0)
  // after the first one every other limit: an attempt may cost four times as much as the one before
  const fromLeast = limits.filter((limit) => limit >= least).filter((_, at) => at % 2 === 0)
  const steps = [...fromLeast, ALL].flatMap((limit) =>
    byCost
      .filter(({ guess }) => guess.start < limit)
      .map(({ way, guess: { start, price, isCovered } }) => ({
        way,
        limit: limit === ALL ? ALL : Math.ceil((limit - start) / price),
        isCovered,
      })),
  )
  const last = steps.findIndex(({ way, limit }) => limit === ALL || isWhole(way))
  return steps.slice(0, last + 1)
}

/**
 * What a way to read a page probably costs, in index entries. Guesses only order what is tried: a page is the same whatever they are.
 * Filters are taken to be independent of each other.
 */
interface Guess {
  readonly cost: number
  /** What it costs in any case. */
  readonly start: number
  /** What one more entry costs. */
  readonly price: number
  /** Whether it is cheaper to read the entries without their rows, and then the rows of the page. */
  readonly isCovered: boolean
}

type MakeGuess = (query: PageQuery, statistics: AccountStatistics) => (way: Way) => Guess

/** Starting a branch costs as much as this many index entries. */
const BRANCH_COST = 10
/** An entry with its row. */
const ROW_COST = 4
/** A row of the page, by its id. */
const LOOKUP_COST = 8

export const makeGuess: MakeGuess = (query, statistics) => {
  const shares = new Map<FilterName, number>()
  const shareOfOne = (name: FilterName) => {
    const share = shares.get(name) ?? shareOf(name, query, statistics)
    shares.set(name, share)
    return share
  }
  const share = (names: readonly FilterName[]) =>
    names.reduce((product, name) => product * shareOfOne(name), shareOfRanges(names, query, statistics))
  return (way) => {
    const branches = branchCount(way.parts)
    const own = shareOfOwnPairs(way, statistics)
    const all = statistics.n * share(othersThan(way.residual, query)) * own
    const left = (share(way.residual) / own) * shareOfKnown(way, query, statistics)
    const wanted = query.rows / Math.max(left, 1e-9)
    const sorted = isWhole(way) && !isMerged(way.parts) ? branches * query.rows : wanted
    const entries = way.kind === 'walk' ? Math.min(all, sorted) : all
    const reads = [
      { isCovered: false, start: BRANCH_COST * branches, price: isAside(way.parts) ? LOOKUP_COST : ROW_COST },
      { isCovered: true, start: BRANCH_COST * branches + LOOKUP_COST * query.rows, price: 1 },
    ].map((read) => ({ ...read, cost: read.start + read.price * entries }))
    const [withRows, covered] = reads as [Guess, Guess]
    return way.covering !== undefined && covered.cost < withRows.cost ? covered : withRows
  }
}

/** Payments that a name probably has where nothing is known of it. */
const PAYMENTS_OF_NAME = 20
/** Where nothing is known of an amount. */
const SHARE_OF_AMOUNTS = 0.05

/** The share of the account's payments that a filter other than a range leaves, from 0 to 1. */
function shareOf(name: FilterName, query: PageQuery, statistics: AccountStatistics): number {
  const { filter } = query
  const { n, shares } = statistics
  const few = PAYMENTS_OF_NAME / Math.max(n, 1)
  const field = filterFields.find((one) => one.name === name) as FilterField
  switch (field.kind) {
    case 'list': {
      const keys = (filter[field.name] ?? []).map((value) => field.value.bind(value as never))
      const ofColumn = (column: string) =>
        keys.map((key) => shares.get(`${column} ${key}`) ?? Math.max(few, shares.get(column) ?? 0))
      return atMostAll(field.columns.flatMap(ofColumn))
    }
    case 'currency':
      return atMostAll((filter[field.name] ?? []).map((match) => shareOfCurrency(match, shares)))
    case 'exclusion': {
      const { name: turned } = turnedField(field)
      return 1 - shareOf(turned, { ...query, filter: { ...filter, [turned]: filter[field.name] } }, statistics)
    }
    case 'prefix': {
      const start = `${field.column} ${filter[field.name]}`
      const frequent = [...shares].flatMap(([key, share]) => (key.startsWith(start) ? [share] : []))
      return atMostAll([few, ...frequent])
    }
    case 'pairs':
      return pairsByKey(filter).reduce((product, pairs) => product * shareOfPairs(pairs, statistics), 1)
    case 'text':
      return few
    case 'date':
    case 'amount':
    case 'zone':
      return 1
  }
}

/** The share of the payments that have one of some pairs of a key. */
function shareOfPairs(pairs: readonly string[], { n, shares }: AccountStatistics): number {
  const other = Math.max(PAYMENTS_OF_NAME / Math.max(n, 1), shares.get('pair') ?? 0)
  return atMostAll(pairs.map((pair) => shares.get(`pair ${pair}`) ?? other))
}

/** The share of the pairs that the source of a way has, where all keys are checked again; else 1. */
function shareOfOwnPairs({ parts, residual }: Way, statistics: AccountStatistics): number {
  const pairs = parts.flatMap(({ columns, tuples }) =>
    columns[0] === 'pair' ? tuples.map(([pair]) => String(pair)) : [],
  )
  return pairs.length === 0 || !residual.includes('metadata') ? 1 : shareOfPairs([...new Set(pairs)], statistics)
}

function atMostAll(shares: readonly number[]): number {
  const sum = shares.reduce((one, other) => one + other, 0)
  return Math.min(1, sum)
}

function shareOfCurrency({ of, symbol, id }: CurrencyMatch, shares: AccountStatistics['shares']): number {
  if (of === 'payment') return shares.get(id === undefined ? `currency_symbol ${symbol}` : `currency ${id}`) ?? 0
  if (id !== undefined) return shares.get(`invoice_currency ${id}`) ?? 0
  const start = `invoice_currency ${symbol}-`
  return [...shares].reduce((total, [key, share]) => (key.startsWith(start) ? total + share : total), 0)
}

/** The share that the ranges leave, of which both bounds are taken together. */
function shareOfRanges(names: readonly FilterName[], query: PageQuery, statistics: AccountStatistics): number {
  const { filter } = query
  const hasDates = names.includes('fromDate') || names.includes('toDate')
  const hasAmounts = names.includes('minAmount') || names.includes('maxAmount')
  const hasChanges = names.includes('changedFrom') || names.includes('changedTo')
  return [
    hasDates ? shareOfSpan(filter.fromDate, filter.toDate, statistics) : 1,
    hasAmounts ? shareOfAmounts(query, statistics) : 1,
    // when payments changed is taken to be spread as their times are
    hasChanges ? shareOfSpan(filter.changedFrom, filter.changedTo, statistics) : 1,
  ].reduce((product, share) => product * share)
}

function shareOfSpan(
  fromMs: number | undefined,
  toMs: number | undefined,
  { firstMs, lastMs }: AccountStatistics,
): number {
  const shared = Math.min(toMs ?? lastMs, lastMs) - Math.max(fromMs ?? firstMs, firstMs)
  return Math.min(1, Math.max(0, shared / Math.max(1, lastMs - firstMs)))
}

/** The share of the sample. Half a payment is added, so that a range which the sample misses is not taken to be empty. */
function shareOfAmounts({ filter }: PageQuery, { samples }: AccountStatistics): number {
  const [least, most] = [Number(filter.minAmount ?? 0), Number(filter.maxAmount ?? Number.POSITIVE_INFINITY)]
  const all = samplesOf(filter, samples)
  const n = all.reduce((sum, sample) => sum + sample.n, 0)
  if (n === 0) return SHARE_OF_AMOUNTS
  const countWithin = ({ known }: AmountSample) => countBelow(known, most, true) - countBelow(known, least, false)
  const within = all.reduce((sum, sample) => sum + countWithin(sample), 0)
  return (within + 0.5) / (n + 0.5)
}

/** How many of sorted amounts are less than a bound, or equal to it. */
function countBelow(sorted: Float64Array, bound: number, orEqual: boolean): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const amount = sorted[middle] ?? 0
    if (amount < bound || (orEqual && amount === bound)) low = middle + 1
    else high = middle
  }
  return low
}

/** Down from the highest amount a walk reads all known amounts before the unknown ones, and some currencies have none that is known. */
function shareOfKnown({ kind, residual }: Way, query: PageQuery, statistics: AccountStatistics): number {
  const isAmongKnown = query.sortBy === 'amount' && directionOf(query) === 'desc' && query.position?.keys[0] !== null
  const hasCurrency = currencyFields.some((name) => residual.includes(name))
  return kind === 'walk' && isAmongKnown && hasCurrency ? shareOfAmounts(query, statistics) : 1
}

function samplesOf(filter: PaymentFilter, samples: AccountStatistics['samples']): AmountSample[] {
  const column = amountColumns[amountBasis(filter)].column
  const matches = currencyMatchesOf(filter)
  if (matches.length === 0)
    return [...samples].flatMap(([name, sample]) => (name.startsWith(`${column} `) ? [sample] : []))
  return matches.flatMap(
    ({ of, id, symbol }) => samples.get(`${column} ${of === 'invoice' ? (id ?? symbol) : symbol}`) ?? [],
  )
}

export const DEFAULT_LADDER: LadderOptions = {
  limits: [1_500, 3_000, 6_000, 12_000, 24_000, 48_000, 100_000, 200_000, 400_000],
  makeGuess,
}
