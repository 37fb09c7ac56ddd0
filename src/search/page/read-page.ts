import type { TextRow } from '../../postgres/prepared.ts'
import { needsStatistics, planPage } from '../plan/plan-page.ts'
import { DEFAULT_THRESHOLDS, type PlanThresholds, readText } from '../plan/plan-terms.ts'
import type { Plan, Shape } from '../plan/search-plan.ts'
import {
  type AccountStatistics,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../sql/account-statistics-repository.ts'
import type { PageQuery, Statement } from '../sql/payment-query.ts'
import { gatherStatement } from '../sql/shapes/gather.ts'
import { monthsStatement } from '../sql/shapes/months.ts'
import { plainStatement } from '../sql/shapes/plain.ts'
import { slicesStatement } from '../sql/shapes/slices.ts'
import { isTwofold, walkStatement } from '../sql/shapes/walk.ts'

/** Runs a statement; rows as objects by the names of their columns. */
export type RunStatement = <Row>(statement: Statement, signal: AbortSignal | undefined) => Promise<Row[]>

/** Runs a statement; rows as the server writes them. */
export type ReadTexts = (statement: Statement, signal: AbortSignal | undefined) => Promise<readonly TextRow[]>

/** The rows of a page, and the last change of the account that they show. */
export interface ReadRows {
  /** Their first columns are those that were asked for. */
  readonly rows: readonly TextRow[]
  readonly lastChange: bigint
}

export interface PageReaderOptions {
  /** For statistics. */
  readonly run: RunStatement
  /** Of a row; the first is its id. */
  readonly columns: readonly string[]
  readonly thresholds?: PlanThresholds
  /** Milliseconds of a clock that only goes forward. */
  readonly now?: () => number
}

/** Statistics decide how to read, and are as good when they are some minutes old. */
const FRESH_MS = 120_000
const MOST_ACCOUNTS = 200
/** New combinations may come as fast as statistics are read; what then remains is what needs none. */
const MOST_READS = 3

/** Reads pages as they are planned: shape after shape until one gives the whole page. */
export function createPageReader({
  run,
  columns,
  thresholds = DEFAULT_THRESHOLDS,
  now = () => performance.now(),
}: PageReaderOptions) {
  const known = new Map<number, { statistics: AccountStatistics; readAtMs: number; reading?: Promise<unknown> }>()

  async function readStatistics(accountId: number, signal?: AbortSignal): Promise<AccountStatistics> {
    const statistics = statisticsOfRows(await run<StatisticsRow>(statisticsStatement(accountId), signal))
    if (known.size >= MOST_ACCOUNTS) known.clear()
    known.set(accountId, { statistics, readAtMs: now() })
    return statistics
  }

  /** What is old is read again by whoever asks next, who does not wait for it. */
  async function statisticsOf(accountId: number, signal: AbortSignal | undefined): Promise<AccountStatistics> {
    const entry = known.get(accountId)
    if (entry === undefined) return readStatistics(accountId, signal)
    if (now() - entry.readAtMs > FRESH_MS && entry.reading === undefined) {
      entry.reading = readStatistics(accountId).catch(() => {
        delete entry.reading
      })
    }
    return entry.statistics
  }

  /** What a row of a page says of it, behind its columns. */
  const cutAt = columns.length
  const changeAt = cutAt + 1
  const seqAt = cutAt + 2
  /** The one row of an empty page has no payment. */
  const pageOf = (rows: readonly TextRow[]): ReadRows => ({
    rows: rows.filter(([id]) => id !== null),
    lastChange: BigInt(rows[0]?.[changeAt] ?? 0),
  })

  async function tryPlan(
    asked: PageQuery,
    statistics: AccountStatistics,
    readTexts: ReadTexts,
    signal: AbortSignal | undefined,
  ): Promise<ReadRows | undefined> {
    const query = { ...asked, filter: readText(asked.filter) }
    const plan = planPage(query, statistics, thresholds)
    let cut: Shape | undefined
    for (const { statement, isFirst, shape } of statementsOf(plan, query, columns)) {
      if (shape === cut) continue
      const rows = await readTexts(statement(), signal)
      if (reliesOnStatistics(shape) && Number(rows[0]?.[seqAt] ?? 0) > statistics.seq) return undefined
      if (rows.some((row) => row[cutAt] === 't')) {
        cut = shape
        continue
      }
      const page = pageOf(rows)
      if (isFirst && page.rows.length < query.rows) continue
      return page
    }
    throw new Error('the last shape of a plan was not whole')
  }

  return async function readPage(query: PageQuery, readTexts: ReadTexts, signal?: AbortSignal): Promise<ReadRows> {
    const { accountId } = query.filter
    if (!needsStatistics(query)) return (await tryPlan(query, NO_STATISTICS, readTexts, signal)) as ReadRows
    let statistics = await statisticsOf(accountId, signal)
    for (let reads = 1; reads <= MOST_READS; reads++) {
      const page = await tryPlan(query, statistics, readTexts, signal)
      if (page !== undefined) return page
      statistics = await readStatistics(accountId, signal)
    }
    return pageOf(await readTexts(plainStatement(query, columns), signal))
  }
}

const NO_STATISTICS = statisticsOfRows([])

/** A statement of a plan; made only when its turn comes. */
interface PlannedStatement {
  readonly shape: Shape
  readonly statement: () => Statement
  /** Whether it is the page only if it fills it. */
  readonly isFirst: boolean
}

/** Unknown amounts are seldom on a page: where they are a walk of their own, the page is first looked for without it. */
export function statementsOf(plan: Plan, query: PageQuery, columns: readonly string[]): PlannedStatement[] {
  return plan.flatMap((shape) => {
    const whole = { shape, statement: () => statementOf(shape, query, columns), isFirst: false }
    if (shape.kind !== 'walk' || !isTwofold(shape, query)) return [whole]
    return [{ shape, statement: () => walkStatement(shape, query, columns, true), isFirst: true }, whole]
  })
}

/** The SQL of a shape. */
function statementOf(shape: Shape, query: PageQuery, columns: readonly string[]): Statement {
  switch (shape.kind) {
    case 'walk':
      return walkStatement(shape, query, columns)
    case 'slices':
      return slicesStatement(shape, query, columns)
    case 'gather':
      return gatherStatement(shape, query, columns)
    case 'months':
      return monthsStatement(shape, query, columns)
    case 'plain':
      return plainStatement(query, columns)
  }
}

/** Whether payments of a combination that is not known would be left out. */
function reliesOnStatistics(shape: Shape): boolean {
  if (shape.kind === 'months' || shape.kind === 'plain') return false
  return shape.parts.some((part) => KNOWN_BY_STATISTICS.includes(part.index) || 'unknownOnly' in part)
}

/** Indexes whose branches are what the statistics know to be there. */
const KNOWN_BY_STATISTICS = ['payments_cell', 'payments_source_network', 'payments_invoice_amount']
