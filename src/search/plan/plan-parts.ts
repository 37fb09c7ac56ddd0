import { amountBasis, type PaymentFilter } from '../filter/payment-filter.ts'
import { cellKey } from '../sql/account-statistics-repository.ts'
import { directionOf } from '../sql/shapes/shape-query.ts'
import { currencyFields, invoiceIdsOf } from './estimate-matches.ts'
import { amounts, boundsLeft, dates, isOneOf, MARGIN, ranksOf, type Terms } from './plan-terms.ts'
import type { BranchColumn, Branches, BranchValue, FieldName, Part, Shape, WalkPart } from './search-plan.ts'

/** Payments that a filter names by a column of their own. */
export interface Named {
  readonly field: FieldName
  readonly column: BranchColumn
  readonly values: readonly BranchValue[]
}

/** Walks by time of one status each: of all payments, or of those that are named. */
export function statusParts(terms: Terms, named?: Named): WalkPart[] {
  const ranks = ranksOf(terms.filter)
  const branches: Branches =
    named === undefined
      ? { columns: ['status'], tuples: ranks.map((rank) => [rank]) }
      : {
          columns: [named.column, 'status'],
          tuples: named.values.flatMap((value) => ranks.map((rank) => [value, rank])),
        }
  const answered: FieldName[] = ['status', ...dates, ...(named === undefined ? [] : [named.field])]
  const parts = timeParts(terms, { index: `payments_${named?.column ?? 'status'}`, branches, answered })
  const isOrdered = terms.query.sortBy === 'status' && (named?.values.length ?? 1) === 1
  return isOrdered
    ? parts.map((part) => ({ ...part, branches: inDirection(part.branches, terms), inOrder: true }))
    : parts
}

/** Statuses in the direction of the walk. */
function inDirection(branches: Branches | undefined, { query }: Terms): Branches {
  const { columns, tuples } = branches as Branches
  return { columns, tuples: directionOf(query) === 'asc' ? tuples : tuples.toReversed() }
}

interface TimeTerms {
  readonly index: string
  readonly branches: Branches
  readonly answered: readonly FieldName[]
}

/** Walks by time of branches; in the order of status, those of the position's status begin there, and those before it are left out. */
function timeParts(terms: Terms, { index, branches, answered }: TimeTerms): WalkPart[] {
  const { query, given } = terms
  const within = dates.filter((name) => given.includes(name))
  const part = { index, order: 'time' as const, residual: given.filter((name) => !answered.includes(name)) }
  if (query.sortBy !== 'status') {
    return [{ ...part, branches, within: boundsLeft(terms, dates), fixedKeys: 0, after: true }]
  }
  const { position } = query
  if (position === undefined) return [{ ...part, branches, within, fixedKeys: 1, after: false }]
  const at = branches.columns.indexOf('status')
  const from = Number(position.keys[0])
  const isBeyond = (rank: number) => (directionOf(query) === 'asc' ? rank > from : rank < from)
  const some = (after: boolean, keep: (rank: number) => boolean): WalkPart[] => {
    const tuples = branches.tuples.filter((tuple) => keep(Number(tuple[at])))
    const kept = after ? boundsLeft(terms, dates) : within
    return tuples.length === 0
      ? []
      : [{ ...part, branches: { ...branches, tuples }, within: kept, fixedKeys: 1, after }]
  }
  const parts = [...some(true, (rank) => rank === from), ...some(false, isBeyond)]
  // nothing lies beyond the position, which a walk of no branches says
  return parts.length > 0
    ? parts
    : [{ ...part, branches: { ...branches, tuples: [] }, within, fixedKeys: 1, after: false }]
}

/** Walks of one cell each, where the filter leaves few; payments that only come from a network are a walk of their own. */
export function cellParts(terms: Terms): { readonly parts: WalkPart[]; readonly overlap: boolean } | undefined {
  const { estimate, filter, statistics, thresholds, given } = terms
  const { cells } = estimate
  if (cells.length > thresholds.branches || cells.length === statistics.cells.length) return undefined
  const whole = currencyFields.filter((name) =>
    filter[name]?.every(({ of, id }) => of === 'payment' && id === undefined),
  )
  const ofCells = timeParts(terms, {
    index: 'payments_cell',
    branches: {
      columns: ['status', 'network', 'currency_symbol'],
      tuples: cells.map(({ status, network, symbol }) => [status, network, symbol]),
    },
    answered: ['status', 'network', ...whole, ...dates],
  })
  const sources = (filter.network ?? []).filter((network) => statistics.shareOfSource.has(network))
  if (sources.length === 0) return { parts: ofCells, overlap: false }
  // the index of sources has no order by status
  if (terms.query.sortBy === 'status') return undefined
  const elsewhere: WalkPart = {
    index: 'payments_source_network',
    order: 'time',
    branches: { columns: ['source_network'], tuples: sources.map((network) => [network]) },
    within: boundsLeft(terms, dates),
    residual: given.filter((name) => name !== 'network' && !isOneOf(dates, name)),
    fromElsewhere: true,
    fixedKeys: 0,
    after: true,
  }
  return { parts: cells.length === 0 ? [elsewhere] : [...ofCells, elsewhere], overlap: true }
}

/** Walks by the amount that the filter chooses; US dollars of a payer or a payee have an index of their own. */
export function amountParts(terms: Terms, named?: Named): WalkPart[] {
  const { filter, given, statistics } = terms
  const part = (index: string, branches: Branches | undefined, answered: readonly FieldName[]): WalkPart => ({
    index,
    ...(branches === undefined ? {} : { branches }),
    order: 'amount',
    within: boundsLeft(terms, amounts),
    residual: given.filter((name) => !answered.includes(name) && !isOneOf(amounts, name)),
    fixedKeys: 0,
    after: true,
  })
  switch (amountBasis(filter)) {
    case 'amountInUsd': {
      if (named === undefined) return [part('payments_usd', undefined, [])]
      const branches = { columns: [named.column], tuples: named.values.map((value) => [value]) }
      return [part(`payments_${named.column}_usd`, branches, [named.field])]
    }
    case 'amount': {
      const of = currencyFields.find((name) => filter[name]?.every((match) => match.of === 'payment')) ?? 'currency'
      const matches = filter[of] ?? []
      const isWhole = matches.every(({ id }) => id === undefined)
      const tuples = [...new Set(matches.map(({ symbol }) => symbol))].map((symbol) => [symbol])
      return [part('payments_amount', { columns: ['currency_symbol'], tuples }, isWhole ? [of] : [])]
    }
    case 'invoiceAmount': {
      const of = invoiceField(filter) ?? 'invoiceCurrency'
      const ids = (filter[of] ?? []).flatMap((match) => invoiceIdsOf(match, statistics))
      const tuples = [...new Set(ids)].map((id) => [id])
      return [part('payments_invoice_amount', { columns: ['invoice_currency'], tuples }, [of])]
    }
  }
}

/** All payments that were invoiced in what the filter asks for, where it asks for nothing else; and how many they are. */
export function invoicePart({
  filter,
  given,
  statistics,
}: Terms): { readonly part: Part; readonly n: number } | undefined {
  const of = invoiceField(filter)
  if (of === undefined) return undefined
  const ids = [...new Set((filter[of] ?? []).flatMap((match) => invoiceIdsOf(match, statistics)))]
  const share = ids.reduce((sum, id) => sum + (statistics.shareOfInvoice.get(id) ?? 0), 0)
  const part: Part = {
    index: 'payments_invoice_amount',
    order: 'none',
    branches: { columns: ['invoice_currency'], tuples: ids.map((id) => [id]) },
    within: [],
    residual: given.filter((name) => name !== of),
  }
  return { part, n: share * statistics.n }
}

function invoiceField(filter: PaymentFilter) {
  return currencyFields.find((field) => filter[field]?.every((match) => match.of === 'invoice'))
}

export function hasResidual(parts: readonly Part[]): boolean {
  return parts.some(({ residual }) => residual.length > 0)
}

export function walk(parts: readonly WalkPart[], overlap = false): Shape {
  return { kind: 'walk', parts, overlap }
}

/** Branches of few entries stray further from what is expected than those of many; the first that ends ends the walk. */
const SPREAD = 2.5

/**
 * A walk of no more than some entries. They are divided among branches as payments are divided among statuses and cells, so that the
 * branches end at about the same place; where branches follow one another, each has all.
 */
export function bounded(terms: Terms, parts: readonly WalkPart[], entries: number, overlap = false): Shape {
  const weights = parts.map((part) => weightsOf(terms, part))
  const total = Math.max(
    1e-9,
    weights.flat().reduce((sum, weight) => sum + weight, 0),
  )
  const ofBranch = ({ inOrder, branches }: WalkPart, weight: number) => {
    if (inOrder === true) return Math.ceil(entries)
    // a status may be all of the page
    const values = Math.max(1, (branches?.tuples.length ?? 1) / ranksOf(terms.filter).length)
    const expected = terms.query.sortBy === 'status' ? entries / values : (entries * weight) / total
    return Math.ceil(expected + SPREAD * Math.sqrt(expected)) + 3
  }
  return walk(
    parts.map((part, nth) => ({ ...part, entries: (weights[nth] ?? []).map((weight) => ofBranch(part, weight)) })),
    overlap,
  )
}

/** Many branches give few rows each to a page, so little is read of each at first. */
export function sliced(terms: Terms, parts: readonly WalkPart[], overlap: boolean): Shape[] {
  const count = parts.reduce((sum, { branches }) => sum + (branches?.tuples.length ?? 1), 0)
  if (count < terms.thresholds.manyBranches || hasResidual(parts)) return []
  const { rows, sortBy } = terms.query
  const isOfCells = parts.some(({ index }) => index === 'payments_cell')
  // of cells it is known how many each has, but of names it is not
  if (!isOfCells && sortBy === 'date') {
    // in steps of three, since it stands in the text of the statement
    const each = Math.ceil((MARGIN * rows) / count / 3) * 3
    return [{ kind: 'slices', parts, overlap, each }]
  }
  const weights = parts.map((part) => weightsOf(terms, part))
  const total = weights.flat().reduce((sum, weight) => sum + weight, 0)
  // of named payments it is known how many have a status, but not how many have a name
  const most = isOfCells ? (MARGIN * rows) / total : rows / Math.max(1, ...weights.flat())
  return [
    walk(
      parts.map((part, nth) => ({
        ...part,
        entries: (weights[nth] ?? []).map((weight) => Math.min(rows + 1, Math.ceil(most * weight) + 3)),
      })),
      overlap,
    ),
  ]
}

/** How many payments a branch is expected to have, against others; 1 where nothing is known. */
function weightsOf({ statistics }: Terms, { branches }: WalkPart): number[] {
  if (branches === undefined) return [1]
  const { columns, tuples } = branches
  const status = columns.indexOf('status')
  if (columns[0] === 'source_network') {
    return tuples.map(([network]) => (statistics.shareOfSource.get(String(network)) ?? 0) * statistics.n)
  }
  if (status < 0) return tuples.map(() => 1)
  if (!columns.includes('network')) return tuples.map((tuple) => statistics.nOfStatus.get(Number(tuple[status])) ?? 1)
  return tuples.map(
    ([rank, network, symbol]) => statistics.nOfCell.get(cellKey(Number(rank), String(network), String(symbol))) ?? 1,
  )
}
