import { amountBasis, currencyFields, type PaymentFilter } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { directionOf } from '../page/page-query.ts'
import { invoiceIdsOf } from './estimate-matches.ts'
import { amounts, boundsLeft, dates, isOneOf, ranksOf, type Terms } from './plan-terms.ts'
import type { BranchColumn, Branches, BranchValue, Part, WalkPart } from './search-plan.ts'

/** The parts that shapes consist of: which index, which branches of it, and which filters it answers. */

/** A filter whose values a column with an index of its own is compared with: `payer` in (A, B). */
export interface NamedValues {
  readonly field: FilterName
  readonly column: BranchColumn
  readonly values: readonly BranchValue[]
}

/**
 * Walks by date, one branch for each status; of all payments, or of those that a filter names.
 *
 * @example statuses 1 to 5 of payer A: `payments_payer`, branches (A, 1), (A, 2), (A, 3), (A, 4), (A, 5)
 */
export function statusParts(terms: Terms, named?: NamedValues): WalkPart[] {
  const ranks = ranksOf(terms.filter)
  const branches: Branches =
    named === undefined
      ? { columns: ['status'], tuples: ranks.map((rank) => [rank]) }
      : {
          columns: [named.column, 'status'],
          tuples: named.values.flatMap((value) => ranks.map((rank) => [value, rank])),
        }
  const answered: FilterName[] = ['status', ...dates, ...(named === undefined ? [] : [named.field])]
  const parts = timeParts(terms, { index: `payments_${named?.column ?? 'status'}`, branches, answered })
  const isInOrder = terms.query.sortBy === 'status' && (named?.values.length ?? 1) === 1
  return isInOrder
    ? parts.map((part) => ({ ...part, branches: inDirection(part.branches, terms), inOrder: true }))
    : parts
}

/** Ascending statuses in the direction in which the page is read. */
function inDirection(branches: Branches | undefined, { query }: Terms): Branches {
  const { columns, tuples } = branches as Branches
  return { columns, tuples: directionOf(query) === 'asc' ? tuples : tuples.toReversed() }
}

interface TimeTerms {
  readonly index: string
  readonly branches: Branches
  /** The filters that branches and dates answer; the others are residual. */
  readonly answered: readonly FilterName[]
}

/**
 * Walks by date of branches. In the order of status a position divides the branches in three: those of its own status begin at the
 * position, those of later statuses are read from their start, and those of earlier ones are left out.
 */
function timeParts(terms: Terms, { index, branches, answered }: TimeTerms): WalkPart[] {
  const { query, given } = terms
  const { position } = query
  const within = dates.filter((name) => given.includes(name))
  const part = { index, order: 'time' as const, residual: given.filter((name) => !answered.includes(name)) }
  if (query.sortBy !== 'status') {
    return [{ ...part, branches, within: boundsLeft(terms, dates), fixedKeys: 0, startsAtPosition: true }]
  }
  if (position === undefined) return [{ ...part, branches, within, fixedKeys: 1, startsAtPosition: false }]
  const statusAt = branches.columns.indexOf('status')
  const current = Number(position.keys[0])
  const isLater = (rank: number) => (directionOf(query) === 'asc' ? rank > current : rank < current)
  const keep = (isKept: (rank: number) => boolean): Branches => ({
    ...branches,
    tuples: branches.tuples.filter((tuple) => isKept(Number(tuple[statusAt]))),
  })
  const ofCurrent: WalkPart = {
    ...part,
    branches: keep((rank) => rank === current),
    within: boundsLeft(terms, dates),
    fixedKeys: 1,
    startsAtPosition: true,
  }
  const ofLater: WalkPart = { ...part, branches: keep(isLater), within, fixedKeys: 1, startsAtPosition: false }
  const parts = [ofCurrent, ofLater].filter(({ branches: kept }) => kept !== undefined && kept.tuples.length > 0)
  // where nothing lies after the position, a walk of no branches gives the empty page
  return parts.length > 0 ? parts : [ofLater]
}

/** Walks of cells. */
export interface CellParts {
  readonly parts: WalkPart[]
  readonly mayOverlap: boolean
}

/**
 * Walks by date, one branch for each cell (status × network × symbol) that matches. Payments that come from a network of the filter and go
 * elsewhere are in cells of other networks; they are a part of their own. Undefined where the filter leaves too many cells, or all.
 *
 * @example network GNOSIS: `payments_cell`, branches (1, GNOSIS, USDC), (3, GNOSIS, DAI), …; `payments_source_network`, branch (GNOSIS)
 */
export function cellParts(terms: Terms): CellParts | undefined {
  const { estimate, filter, statistics, thresholds, given } = terms
  const { cells } = estimate
  if (cells.length > thresholds.maxBranches || cells.length === statistics.cells.length) return undefined
  const bySymbolAlone = currencyFields.filter((name) =>
    filter[name]?.every(({ of, id }) => of === 'payment' && id === undefined),
  )
  const ofCells = timeParts(terms, {
    index: 'payments_cell',
    branches: {
      columns: ['status', 'network', 'currency_symbol'],
      tuples: cells.map(({ status, network, symbol }) => [status, network, symbol]),
    },
    answered: ['status', 'network', 'destinationNetwork', ...bySymbolAlone, ...dates],
  })
  const sources = (filter.network ?? []).filter((network) => statistics.shareOfSource.has(network))
  if (sources.length === 0) return { parts: ofCells, mayOverlap: false }
  // the index by source network has no order by status
  if (terms.query.sortBy === 'status') return undefined
  const elsewhere: WalkPart = {
    index: 'payments_source_network',
    order: 'time',
    branches: { columns: ['source_network'], tuples: sources.map((network) => [network]) },
    within: boundsLeft(terms, dates),
    residual: given.filter((name) => name !== 'network' && !isOneOf(dates, name)),
    fromElsewhere: true,
    fixedKeys: 0,
    startsAtPosition: true,
  }
  return { parts: cells.length === 0 ? [elsewhere] : [...ofCells, elsewhere], mayOverlap: true }
}

/**
 * Walks by the amount that the currency filters choose.
 *
 * @example in US dollars: `payments_usd`; of payer A: `payments_payer_usd`, branch (A)
 * @example in USDC: `payments_amount`, branch (USDC); invoiced in EUR: `payments_invoice_amount`, branch (EUR)
 */
export function amountParts(terms: Terms, named?: NamedValues): WalkPart[] {
  const { filter, given, statistics } = terms
  const part = (index: string, branches: Branches | undefined, answered: readonly FilterName[]): WalkPart => ({
    index,
    branches,
    order: 'amount',
    within: boundsLeft(terms, amounts),
    residual: given.filter((name) => !answered.includes(name) && !isOneOf(amounts, name)),
    fixedKeys: 0,
    startsAtPosition: true,
  })
  switch (amountBasis(filter)) {
    case 'amountInUsd': {
      if (named === undefined) return [part('payments_usd', undefined, [])]
      const branches = { columns: [named.column], tuples: named.values.map((value) => [value]) }
      return [part(`payments_${named.column}_usd`, branches, [named.field])]
    }
    case 'amount': {
      const field = currencyFields.find((name) => filter[name]?.every((match) => match.of === 'payment')) ?? 'currency'
      const matches = filter[field] ?? []
      const isBySymbolAlone = matches.every(({ id }) => id === undefined)
      const tuples = [...new Set(matches.map(({ symbol }) => symbol))].map((symbol) => [symbol])
      return [part('payments_amount', { columns: ['currency_symbol'], tuples }, isBySymbolAlone ? [field] : [])]
    }
    case 'invoiceAmount': {
      const field = invoiceField(filter) ?? 'invoiceCurrency'
      const ids = (filter[field] ?? []).flatMap((match) => invoiceIdsOf(match, statistics))
      const tuples = [...new Set(ids)].map((id) => [id])
      return [part('payments_invoice_amount', { columns: ['invoice_currency'], tuples }, [field])]
    }
  }
}

/** All payments invoiced in the currencies of a filter that names invoice currencies alone, and how many they are. */
export function invoicePart({
  filter,
  given,
  statistics,
}: Terms): { readonly part: Part; readonly n: number } | undefined {
  const field = invoiceField(filter)
  if (field === undefined) return undefined
  const ids = [...new Set((filter[field] ?? []).flatMap((match) => invoiceIdsOf(match, statistics)))]
  const share = ids.reduce((sum, id) => sum + (statistics.shareOfInvoice.get(id) ?? 0), 0)
  const part: Part = {
    index: 'payments_invoice_amount',
    order: 'none',
    branches: { columns: ['invoice_currency'], tuples: ids.map((id) => [id]) },
    within: [],
    residual: given.filter((name) => name !== field),
  }
  return { part, n: share * statistics.n }
}

function invoiceField(filter: PaymentFilter) {
  return currencyFields.find((field) => filter[field]?.every((match) => match.of === 'invoice'))
}

export function hasResidual(parts: readonly Part[]): boolean {
  return parts.some(({ residual }) => residual.length > 0)
}
