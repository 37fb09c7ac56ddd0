import type { Statement } from '../../postgres/statement.ts'
import {
  type AccountStatistics,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../sql/account-statistics.ts'

/** Runs a statement; rows are objects by the names of their columns. */
export type RunStatement = <Row>(statement: Statement, signal: AbortSignal | undefined) => Promise<Row[]>

/** The statistics of accounts, as this process remembers them. */
export interface CachedStatistics {
  /** From the cache, else from the database. Old entries are returned and refreshed in the background. */
  readonly of: (accountId: number, signal: AbortSignal | undefined) => Promise<AccountStatistics>
  /** From the database. */
  readonly refresh: (accountId: number, signal: AbortSignal | undefined) => Promise<AccountStatistics>
}

/** Statistics only choose between ways of reading, so some minutes do no harm. */
const FRESH_MS = 120_000
const MAX_ACCOUNTS = 200

interface Entry {
  readonly statistics: AccountStatistics
  readonly readAtMs: number
  isRefreshing: boolean
}

export function createCachedStatistics(run: RunStatement): CachedStatistics {
  const entries = new Map<number, Entry>()

  async function refresh(accountId: number, signal: AbortSignal | undefined): Promise<AccountStatistics> {
    const statistics = statisticsOfRows(await run<StatisticsRow>(statisticsStatement(accountId), signal))
    if (entries.size >= MAX_ACCOUNTS) entries.clear()
    entries.set(accountId, { statistics, readAtMs: performance.now(), isRefreshing: false })
    return statistics
  }

  function refreshInBackground(accountId: number, entry: Entry): void {
    entry.isRefreshing = true
    refresh(accountId, undefined).catch(() => {
      entry.isRefreshing = false
    })
  }

  return {
    async of(accountId, signal) {
      const entry = entries.get(accountId)
      if (entry === undefined) return refresh(accountId, signal)
      const isOld = performance.now() - entry.readAtMs > FRESH_MS
      if (isOld && !entry.isRefreshing) refreshInBackground(accountId, entry)
      return entry.statistics
    },
    refresh,
  }
}
