import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { runNamed } from '../../postgres/named-statements.ts'
import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { raw, readRows, type Statement } from '../../postgres/statement.ts'
import type { TextRow } from '../../postgres/wire-batch.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import { type PaymentFilter, statusesLeft } from '../filter/payment-filter.ts'
import { DEFAULT_LADDER, type LadderOptions, ladderOf } from '../plan/ladder.ts'
import { pageStatement } from '../plan/sql/page-statement.ts'
import { needsNoGuess, waysOf } from '../plan/ways.ts'
import { directionOf, type PageQuery } from '../query/page-query.ts'
import {
  type AccountStatistics,
  NO_STATISTICS,
  namesStatement,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../sql/account-statistics.ts'
import { type ChainProgress, chainProgressOf, chainProgressStatement, headsOf } from '../sql/chain-progress.ts'
import { type RemovedPayment, removedStatement } from '../sql/removed-payments.ts'

/** What has a place in the order of an answer: a payment, or in the order of changes one that was removed. */
export type Entry = Payment | RemovedPayment

export function isRemoved(entry: Entry): entry is RemovedPayment {
  return !('status' in entry)
}

/** Entries of a page, nearest first, in one snapshot with the account's change log. */
export interface EntriesOfPage {
  readonly entries: readonly Entry[]
  /** The last change of the account that the payments reflect. */
  readonly lastChange: bigint
  /** Its stamp, in the order of changes. */
  readonly lastChangedAt: Date | undefined
  /** Every chain that was ever followed. Read just before the page, so that the page holds all payments of the scanned blocks. */
  readonly progress: readonly ChainProgress[]
}

/** How old the progress of the chains may be that a search remembers from one before. */
const PROGRESS_MAX_AGE_MS = 1_000

/**
 * Makes what reads payments. Every query is limited to one account.
 *
 * @param ladder - how pages are tried; tests give low limits
 */
export function createPaymentRepository(knex: Knex, ladder?: LadderOptions) {
  const readPage = createPageReader(knex, ladder)
  const withProgress = createProgressReader(knex)
  return {
    /** The payments after a position, nearest first. `confirmations` is known only of final payments. */
    async page(query: PageQuery, signal?: AbortSignal): Promise<readonly Payment[]> {
      const { rows } = await readPage(query, (...asked) => runPlannedOnce(knex, ...asked), signal)
      return rows.map((row) => paymentOfRow(row, NO_HEADS))
    },
    /** The same with the confirmations of all payments and the progress that they are counted from: of a moment ago, unless `noCache`. */
    async pageAsOf(query: PageQuery, signal?: AbortSignal, noCache?: boolean): Promise<EntriesOfPage> {
      const { readTexts, progress } = withProgress(noCache)
      const { rows, ...of } = await readPage(query, readTexts, signal)
      const chains = progress()
      const heads = headsOf(chains)
      const payments = rows.map((row) => paymentOfRow(row, heads))
      // what was removed later than the page's snapshot belongs to a later page
      const removed = of.lastChangedAt && (await readRemoved(knex, query, of.lastChangedAt, signal))
      return { entries: removed ? inPlaces(query, [...payments, ...removed]) : payments, ...of, progress: chains }
    },
    /** One payment; undefined where the account has none of that id. */
    async byId(accountId: number, id: string, signal?: AbortSignal): Promise<Payment | undefined> {
      const { readTexts, progress } = withProgress(true)
      const [row] = await readTexts(raw(PAYMENT_BY_ID, [accountId, id]), signal)
      return row === undefined ? undefined : paymentOfRow(row, headsOf(progress()))
    },
  }
}

const PAYMENT_BY_ID = `select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = ?`

async function readRemoved(knex: Knex, query: PageQuery, until: Date, signal: AbortSignal | undefined) {
  const [rows = []] = await runNamed(knex, [removedStatement(query, until)], signal)
  return rows.map(([id, at]): RemovedPayment => ({ id: id as string, changedAt: parseTimestamp(at as string) }))
}

function inPlaces(query: PageQuery, entries: readonly Entry[]): readonly Entry[] {
  const placeOf = ({ changedAt, id }: Entry) => `${changedAt?.toISOString()} ${id}`
  const ascending = entries.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1))
  return directionOf(query) === 'asc' ? ascending : ascending.toReversed()
}

/**
 * For the statements of the same round trip: PostgreSQL plans each once for all values. To plan a merge of five branches for its values takes longer than
 * to run it, and the branches leave no choice between indexes. Citus has to know the account to plan; it has a setting that PostgreSQL lacks.
 */
const PLAN_ONCE = raw(`select set_config('plan_cache_mode',
  case when current_setting('citus.shard_count', true) is null then 'force_generic_plan' else 'auto' end, true)`)

async function runPlannedOnce(knex: Knex, ...[statement, signal]: Parameters<ReadTexts>) {
  const [, rows = []] = await runNamed(knex, [PLAN_ONCE, statement], signal)
  return rows
}

/** Reads with the progress of the chains as it was before. */
type WithProgress = (noCache?: boolean) => { readTexts: ReadTexts; progress: () => readonly ChainProgress[] }

/**
 * The progress of the chains is always read before a page: the page then holds all payments of the blocks that the progress names. It is
 * read in the round trip of a statement, ahead of it, and remembered for a moment by searches that do not ask for more.
 */
function createProgressReader(knex: Knex): WithProgress {
  let known = { chains: [] as readonly ChainProgress[], atMs: Number.NEGATIVE_INFINITY }
  return (noCache = false) => {
    let used = !noCache && performance.now() - known.atMs < PROGRESS_MAX_AGE_MS ? known.chains : undefined
    return {
      async readTexts(statement, signal) {
        if (used !== undefined) return runPlannedOnce(knex, statement, signal)
        const atMs = performance.now()
        const [, chains = [], rows = []] = await runNamed(knex, [PLAN_ONCE, chainProgressStatement, statement], signal)
        used = chains.map(chainProgressOf)
        known = { chains: used, atMs }
        return rows
      },
      progress: () => used ?? [],
    }
  }
}

/** Runs a statement; rows are the texts that the server writes. */
type ReadTexts = (statement: Statement, signal: AbortSignal | undefined) => Promise<readonly TextRow[]>

/** The rows of a page, and the last change of the account that they reflect. */
interface ReadRows {
  /** Each begins with {@link readPaymentColumns}. */
  readonly rows: readonly TextRow[]
  readonly lastChange: bigint
  /** The stamp of that change; undefined in other orders than that of changes, and where nothing has changed. */
  readonly lastChangedAt: Date | undefined
}

/** Makes the function that reads pages: attempt after attempt, until one gives the page. Each is one statement, and so one snapshot. */
function createPageReader(knex: Knex, ladder: LadderOptions = DEFAULT_LADDER) {
  const statisticsOf = createCachedStatistics(knex)

  return async (asked: PageQuery, readTexts: ReadTexts, signal?: AbortSignal): Promise<ReadRows> => {
    const query = { ...asked, filter: statusesLeft(singleReadingAsFilter(asked.filter)) }
    const ways = waysOf(query)
    const statistics = ways.every(needsNoGuess) ? NO_STATISTICS : await statisticsOf(query.filter.accountId, signal)
    for (const step of ladderOf(ways, query, statistics, ladder)) {
      const rows = await readTexts(pageStatement(step, { query, columns: readPaymentColumns }), signal)
      const page = pageOf(rows, query.rows)
      if (page !== undefined) return page
    }
    throw new Error('the last attempt at a page had a limit')
  }
}

/** Undefined where the limit of entries was reached before the page was full. The columns `last_change`, `cut` and `last_changed_at` follow the requested ones. */
function pageOf(rows: readonly TextRow[], asked: number): ReadRows | undefined {
  const payments = rows.filter(([id]) => id !== null).slice(0, asked)
  const isCut = rows.at(-1)?.[readPaymentColumns.length + 1] === 't'
  if (isCut && payments.length < asked) return undefined
  const [lastChange, , lastChangedAt = null] = rows[0]?.slice(readPaymentColumns.length) ?? []
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

/** The statistics of accounts, as this process remembers them. Old ones are returned, and read again in the background. */
function createCachedStatistics(knex: Knex) {
  /** `atMs`: when they were read, or begun to be read again. */
  const entries = new Map<number, { readonly statistics: AccountStatistics; atMs: number }>()

  async function read(accountId: number, signal: AbortSignal | undefined): Promise<AccountStatistics> {
    const rows = await readRows<StatisticsRow>(knex, statisticsStatement(accountId), signal)
    const names = await readRows<StatisticsRow>(knex, namesStatement, signal)
    const statistics = statisticsOfRows([...rows, ...names])
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
