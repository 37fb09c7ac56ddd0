import { cellKey } from '../sql/account-statistics.ts'
import { countOf } from './estimate-matches.ts'
import { cellParts, hasResidual, invoicePart, statusParts } from './plan-parts.ts'
import { BRANCH_COST, MARGIN, ranksOf, type Terms } from './plan-terms.ts'
import type { Part, Shape, WalkPart } from './search-plan.ts'

/** Shapes made of parts, and the limits that they get. */

/** A walk without a limit. */
export function walk(parts: readonly WalkPart[], mayOverlap = false): Shape {
  return { kind: 'walk', parts, mayOverlap }
}

/** Few entries stray further from what is expected than many do, and the scan stops when a branch is exhausted. In standard deviations. */
const SPREAD = 2.5

/**
 * A walk with a limit of entries. They are divided among the branches in proportion to their payments, so that all branches end at about
 * the same place in the order. Branches that are read one after the other get the whole number each.
 */
export function boundedWalk(terms: Terms, parts: readonly WalkPart[], entries: number, mayOverlap = false): Shape {
  const weights = parts.map((part) => weightsOf(terms, part))
  const total = Math.max(
    1e-9,
    weights.flat().reduce((sum, weight) => sum + weight, 0),
  )
  const limitOf = ({ inOrder, branches }: WalkPart, weight: number) => {
    if (inOrder === true) return Math.ceil(entries)
    // in the order of status, one status may be the whole page
    const values = Math.max(1, (branches?.tuples.length ?? 1) / ranksOf(terms.filter).length)
    const expected = terms.query.sortBy === 'status' ? entries / values : (entries * weight) / total
    return Math.ceil(expected + SPREAD * Math.sqrt(expected)) + 3
  }
  return walk(
    parts.map((part, nth) => ({ ...part, entryLimits: (weights[nth] ?? []).map((weight) => limitOf(part, weight)) })),
    mayOverlap,
  )
}

/**
 * For very many branches: little of each, since few rows of each are on the page. None where the branches are not many, or have residual
 * filters.
 */
export function sliced(terms: Terms, parts: readonly WalkPart[], mayOverlap: boolean): Shape[] {
  const count = parts.reduce((sum, { branches }) => sum + (branches?.tuples.length ?? 1), 0)
  if (count < terms.thresholds.manyBranches || hasResidual(parts)) return []
  const { rows, sortBy } = terms.query
  const isOfCells = parts.some(({ index }) => index === 'payments_cell')
  // the statistics tell how many payments a cell has, but not how many a wallet has
  if (!isOfCells && sortBy === 'date') {
    // in steps of three, because the number is part of the statement's text
    const rowsPerBranch = Math.ceil((MARGIN * rows) / count / 3) * 3
    return [{ kind: 'slices', parts, mayOverlap, rowsPerBranch }]
  }
  const weights = parts.map((part) => weightsOf(terms, part))
  const total = weights.flat().reduce((sum, weight) => sum + weight, 0)
  // of wallets only the share of each status is known
  const scale = isOfCells ? (MARGIN * rows) / total : rows / Math.max(1, ...weights.flat())
  return [
    walk(
      parts.map((part, nth) => ({
        ...part,
        entryLimits: (weights[nth] ?? []).map((weight) => Math.min(rows + 1, Math.ceil(scale * weight) + 3)),
      })),
      mayOverlap,
    ),
  ]
}

/** How many payments each branch is expected to have, relative to the others; 1 where nothing is known. */
function weightsOf({ statistics }: Terms, { branches }: WalkPart): number[] {
  if (branches === undefined) return [1]
  const { columns, tuples } = branches
  const statusAt = columns.indexOf('status')
  if (columns[0] === 'source_network') {
    return tuples.map(([network]) => (statistics.shareOfSource.get(String(network)) ?? 0) * statistics.n)
  }
  if (statusAt < 0) return tuples.map(() => 1)
  if (!columns.includes('network')) return tuples.map((tuple) => statistics.nOfStatus.get(Number(tuple[statusAt])) ?? 1)
  return tuples.map(
    ([rank, network, symbol]) => statistics.nOfCell.get(cellKey(Number(rank), String(network), String(symbol))) ?? 1,
  )
}

/** Gathers that are expected to stay below the limit, the smallest first: a stretch of time, the matching cells, the matching invoices. */
export function gathers(terms: Terms): Shape[] {
  const { thresholds, statistics, estimate } = terms
  const maxEntries = thresholds.gather
  const found: { n: number; shape: Shape }[] = []
  const add = (n: number, parts: readonly Part[], mayOverlap = false) => {
    if (n <= maxEntries) found.push({ n, shape: { kind: 'gather', parts, mayOverlap, maxEntries } })
  }
  add(statistics.n * estimate.ofStatus * estimate.ofDates, statusParts(terms))
  const cells = cellParts(terms)
  if (cells !== undefined) {
    add(countOf(estimate.cells) * estimate.ofDates + BRANCH_COST * estimate.cells.length, cells.parts, cells.mayOverlap)
  }
  const invoices = invoicePart(terms)
  if (invoices !== undefined) add(invoices.n, [invoices.part])
  return found.toSorted((one, other) => one.n - other.n).map(({ shape }) => shape)
}
