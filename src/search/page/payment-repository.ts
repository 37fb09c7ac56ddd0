import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { runNamed } from '../../postgres/named-statements.ts'
import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { raw, readRows } from '../../postgres/statement.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import type { LadderOptions } from '../plan/ladder.ts'
import { directionOf, type PageQuery } from '../query/page-query.ts'
import { type ChainProgress, chainProgressOf, chainProgressStatement, headsOf } from '../sql/chain-progress.ts'
import { type RemovedPayment, removedStatement } from '../sql/removed-payments.ts'
import { createPageReader, type ReadTexts } from './read-page.ts'

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
  const readPage = createPageReader({
    run: (statement, signal) => readRows(knex, statement, signal),
    columns: readPaymentColumns,
    ladder,
  })
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

const runPlannedOnce: (knex: Knex, ...asked: Parameters<ReadTexts>) => ReturnType<ReadTexts> = async (
  knex,
  statement,
  signal,
) => {
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
