import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import type { Statement } from '../../postgres/statement.ts'
import type { TextRow } from '../../postgres/wire-batch.ts'
import { type PaymentFilter, statusesLeft } from '../filter/payment-filter.ts'
import { DEFAULT_LADDER, type LadderOptions, ladderOf } from '../plan/ladder.ts'
import { pageStatement } from '../plan/sql/page-statement.ts'
import { needsNoGuess, waysOf } from '../plan/ways.ts'
import type { PageQuery } from '../query/page-query.ts'
import {
  type AccountStatistics,
  NO_STATISTICS,
  namesStatement,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../sql/account-statistics.ts'

/** Runs a statement; rows are the texts that the server writes. */
export type ReadTexts = (statement: Statement, signal: AbortSignal | undefined) => Promise<readonly TextRow[]>

/** Runs a statement; rows are objects by the names of their columns. */
type RunStatement = <Row>(statement: Statement, signal: AbortSignal | undefined) => Promise<Row[]>

/** The rows of a page, and the last change of the account that they reflect. */
export interface ReadRows {
  /** Each begins with the requested columns. */
  readonly rows: readonly TextRow[]
  readonly lastChange: bigint
  /** The stamp of that change; undefined in other orders than that of changes, and where nothing has changed. */
  readonly lastChangedAt: Date | undefined
}

export interface PageReaderOptions {
  /** Reads statistics. */
  readonly run: RunStatement
  /** Columns of `payments`; the first is the id. */
  readonly columns: readonly string[]
  readonly ladder?: LadderOptions | undefined
}

export type ReadPage = (query: PageQuery, readTexts: ReadTexts, signal?: AbortSignal) => Promise<ReadRows>

/** Makes the function that reads pages: attempt after attempt, until one gives the page. Each is one statement, and so one snapshot. */
export function createPageReader({ run, columns, ladder = DEFAULT_LADDER }: PageReaderOptions): ReadPage {
  const statisticsOf = createCachedStatistics(run)

  return async function readPage(asked, readTexts, signal) {
    const query = { ...asked, filter: statusesLeft(singleReadingAsFilter(asked.filter)) }
    const ways = waysOf(query)
    const statistics = ways.every(needsNoGuess) ? NO_STATISTICS : await statisticsOf(query.filter.accountId, signal)
    for (const step of ladderOf(ways, query, statistics, ladder)) {
      const rows = await readTexts(pageStatement(step, { query, columns }), signal)
      const page = pageOf(rows, { rows: query.rows, columns: columns.length })
      if (page !== undefined) return page
    }
    throw new Error('the last attempt at a page had a limit')
  }
}

/** Undefined where the limit of entries was reached before the page was full. The columns `last_change`, `cut` and `last_changed_at` follow the requested ones. */
function pageOf(rows: readonly TextRow[], asked: { rows: number; columns: number }): ReadRows | undefined {
  const payments = rows.filter(([id]) => id !== null).slice(0, asked.rows)
  const isCut = rows.at(-1)?.[asked.columns + 1] === 't'
  if (isCut && payments.length < asked.rows) return undefined
  const [lastChange, , lastChangedAt = null] = rows[0]?.slice(asked.columns) ?? []
  return {
    rows: payments,
    lastChange: BigInt(lastChange ?? 0),
    lastChangedAt: lastChangedAt === null ? undefined : parseTimestamp(lastChangedAt),
  }
}

/** Replaces the text filter `q` by the filter that it can only mean: a text that is an address is the filter `walletAddress`. */
export function singleReadingAsFilter(filter: PaymentFilter): PaymentFilter {
  const { q, ...others } = filter
  const [only] = q ?? []
  if (q?.length !== 1 || only === undefined || only.as === 'id' || filter[only.as] !== undefined) return filter
  return { ...others, [only.as]: [only.value] }
}

/** A first guess may be some minutes old. */
const FRESH_MS = 120_000
const MAX_ACCOUNTS = 200

interface CachedEntry {
  readonly statistics: AccountStatistics
  /** When they were read, or begun to be read again, in milliseconds. */
  atMs: number
}

/** The statistics of accounts, as this process remembers them. Old ones are returned, and read again in the background. */
function createCachedStatistics(run: RunStatement) {
  const entries = new Map<number, CachedEntry>()

  async function read(accountId: number, signal: AbortSignal | undefined): Promise<AccountStatistics> {
    const rows = await run<StatisticsRow>(statisticsStatement(accountId), signal)
    const statistics = statisticsOfRows([...rows, ...(await run<StatisticsRow>(namesStatement, signal))])
    if (entries.size >= MAX_ACCOUNTS) entries.clear()
    entries.set(accountId, { statistics, atMs: performance.now() })
    return statistics
  }

  return async (accountId: number, signal: AbortSignal | undefined): Promise<AccountStatistics> => {
    const known = entries.get(accountId)
    if (known === undefined) return read(accountId, signal)
    if (performance.now() - known.atMs > FRESH_MS) {
      known.atMs = performance.now()
      read(accountId, undefined).catch(() => undefined)
    }
    return known.statistics
  }
}
