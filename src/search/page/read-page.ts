import type { TextRow } from '../../postgres/prepared.ts'
import type { Statement } from '../../postgres/statement.ts'
import { needsStatistics, planPage } from '../plan/plan-page.ts'
import { DEFAULT_THRESHOLDS, type PlanThresholds, singleReadingAsFilter } from '../plan/plan-terms.ts'
import type { Plan, Shape } from '../plan/search-plan.ts'
import { type AccountStatistics, statisticsOfRows } from '../sql/account-statistics.ts'
import type { PageRequest } from '../sql/shapes/page-rows.ts'
import { plainStatement } from '../sql/shapes/plain.ts'
import { shapeStatement } from '../sql/shapes/shape-statement.ts'
import { hasTwoRanges, walkStatement } from '../sql/shapes/walk.ts'
import { createCachedStatistics, type RunStatement } from './cached-statistics.ts'
import type { PageQuery } from './page-query.ts'

/** Runs a statement; rows are the texts that the server writes. */
export type ReadTexts = (statement: Statement, signal: AbortSignal | undefined) => Promise<readonly TextRow[]>

/** The rows of a page, and the last change of the account that they reflect. */
export interface ReadRows {
  /** Each begins with the requested columns. */
  readonly rows: readonly TextRow[]
  readonly lastChange: bigint
}

export interface PageReaderOptions {
  /** Reads statistics. */
  readonly run: RunStatement
  /** Columns of `payments`; the first is the id. */
  readonly columns: readonly string[]
  readonly thresholds?: PlanThresholds | undefined
}

export type ReadPage = (query: PageQuery, readTexts: ReadTexts, signal?: AbortSignal) => Promise<ReadRows>

/**
 * New combinations of networks and currencies may come as fast as the statistics are read. After so many attempts the page is read by the
 * plain shape, which does not depend on them.
 */
const MAX_PLANS = 3

/** Makes the function that reads pages: plans each and runs the plan. */
export function createPageReader({ run, columns, thresholds = DEFAULT_THRESHOLDS }: PageReaderOptions): ReadPage {
  const cache = createCachedStatistics(run)

  return async function readPage(asked, readTexts, signal) {
    const query = { ...asked, filter: singleReadingAsFilter(asked.filter) }
    const { accountId } = query.filter
    const tryPlan = (statistics: AccountStatistics) => {
      const planned = statementsOf(planPage(query, statistics, thresholds), { query, columns })
      return runPlan(planned, { query, columns, knownSeq: statistics.seq }, readTexts, signal)
    }
    if (!needsStatistics(query)) {
      const page = await tryPlan(NO_STATISTICS)
      if (page === undefined) throw new Error('a plan without statistics was refused for its statistics')
      return page
    }
    let statistics = await cache.of(accountId, signal)
    for (let plans = 1; plans <= MAX_PLANS; plans++) {
      const page = await tryPlan(statistics)
      if (page !== undefined) return page
      statistics = await cache.refresh(accountId, signal)
    }
    return pageOf(await readTexts(plainStatement({ query, columns }), signal), columns)
  }
}

const NO_STATISTICS = statisticsOfRows([])

/** A statement of a plan, made when its turn comes. */
export interface PlannedStatement {
  readonly shape: Shape
  readonly statement: () => Statement
  /** Whether its rows are the page only if they fill it. */
  readonly mustFillPage: boolean
}

/**
 * The statements of a plan in the order in which they are tried. A walk over known and unknown amounts comes twice: unknown amounts are
 * seldom on a page, so it is first tried without the range that comes last.
 */
export function statementsOf(plan: Plan, request: PageRequest): PlannedStatement[] {
  return plan.flatMap((shape): PlannedStatement[] => {
    const whole = { shape, statement: () => shapeStatement(shape, request), mustFillPage: false }
    if (shape.kind !== 'walk' || !hasTwoRanges(shape, request.query)) return [whole]
    const firstRange = () => walkStatement(shape, request, { firstRangeOnly: true })
    return [{ shape, statement: firstRange, mustFillPage: true }, whole]
  })
}

interface PlanRequest extends PageRequest {
  /** The newest combination that the statistics of the plan know. */
  readonly knownSeq: number
}

/** Runs statement after statement until one gives the page. Undefined: the statistics were too old for this plan. */
async function runPlan(
  planned: readonly PlannedStatement[],
  { query, columns, knownSeq }: PlanRequest,
  readTexts: ReadTexts,
  signal: AbortSignal | undefined,
): Promise<ReadRows | undefined> {
  let cut: Shape | undefined
  for (const each of planned) {
    if (each.shape === cut) continue
    const rows = await readTexts(each.statement(), signal)
    switch (judgeRows(rows, each, { query, columns, knownSeq })) {
      case 'page':
        return pageOf(rows, columns)
      case 'stale statistics':
        return undefined
      case 'cut':
        cut = each.shape
        break
      case 'not full':
        break
    }
  }
  throw new Error('the last shape of a plan was not whole')
}

/**
 * What the rows of a statement are:
 *
 * - `page`: the page
 * - `stale statistics`: a combination has come that the plan did not know, so payments of it may be missing
 * - `cut`: the shape reached its limit before the page was full
 * - `not full`: the statement left out a range of keys, and its rows do not fill the page
 */
export type Verdict = 'page' | 'stale statistics' | 'cut' | 'not full'

/** Judges the rows of a statement. The columns `page_cut`, `last_change` and `statistics_seq` follow the requested ones. */
export function judgeRows(
  rows: readonly TextRow[],
  { shape, mustFillPage }: Pick<PlannedStatement, 'shape' | 'mustFillPage'>,
  { query, columns, knownSeq }: PlanRequest,
): Verdict {
  const newestSeq = Number(rows[0]?.[columns.length + 2] ?? 0)
  if (reliesOnStatistics(shape) && newestSeq > knownSeq) return 'stale statistics'
  if (rows.some((row) => row[columns.length] === 't')) return 'cut'
  return mustFillPage && paymentsOf(rows).length < query.rows ? 'not full' : 'page'
}

function pageOf(rows: readonly TextRow[], columns: readonly string[]): ReadRows {
  return { rows: paymentsOf(rows), lastChange: BigInt(rows[0]?.[columns.length + 1] ?? 0) }
}

/** An empty page is one row without a payment. */
function paymentsOf(rows: readonly TextRow[]): TextRow[] {
  return rows.filter(([id]) => id !== null)
}

/** Whether the shape reads only combinations that the statistics know, so that a payment of a new one would be missing. */
function reliesOnStatistics(shape: Shape): boolean {
  if (shape.kind === 'months' || shape.kind === 'plain') return false
  return shape.parts.some((part) => INDEXES_BY_STATISTICS.includes(part.index) || 'unknownOnly' in part)
}

/** Indexes whose branches are taken from the statistics. */
const INDEXES_BY_STATISTICS = ['payments_cell', 'payments_source_network', 'payments_invoice_amount']
