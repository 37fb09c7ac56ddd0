import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { withConnection } from '../cancellable.ts'
import { runWithoutTimeouts } from '../without-timeouts.ts'
import { type IndexBuild, type IndexChange, statementOf } from './migration.ts'
import type { IndexProgress } from './migration-report.ts'

export interface IndexWork {
  /** For the statement that works; it takes one connection. */
  readonly knex: Knex
  readonly readRows: ReadRows
  readonly onProgress: (progress: IndexProgress) => void
  readonly signal: AbortSignal | undefined
}

/**
 * Runs a statement with one binding on a connection beside the work, outside of a transaction: a build waits for the end of every transaction that
 * reads at a certain moment, so one that stayed open beside it would never end.
 */
export type ReadRows = <Row>(sql: string, binding: string) => Promise<Row[]>

const CHECK_EVERY_MS = 250

/**
 * Builds and drops indexes without stopping writes. What an earlier call left is continued: a valid index of the name counts as built, an
 * invalid one is dropped and built again, a build that still runs on the server after its process was killed is waited for.
 *
 * @throws Error of the database; the index may then exist and not be valid
 */
export async function changeIndexes(changes: readonly IndexChange[], work: IndexWork): Promise<void> {
  for (const change of changes) {
    await ('drop' in change ? run(statementOf(change), change.drop, work) : build(change, work))
  }
}

async function build(index: IndexBuild, work: IndexWork): Promise<void> {
  const statement = statementOf(index)
  await untilOrphanEnds(statement, index.build, work)
  const isValid = await validity(work.readRows, index.build)
  if (isValid === true) return
  // of a sharded table perhaps only some shards have it
  if (isValid === false) await run(statementOf({ drop: index.build, table: index.table }), index.build, work)
  await run(statement, index.build, work)
}

/** undefined: there is no such index */
async function validity(readRows: ReadRows, name: string): Promise<boolean | undefined> {
  const sql = 'select indisvalid from pg_index where indexrelid = to_regclass(?)'
  const [row] = await readRows<{ indisvalid: boolean }>(sql, name)
  return row?.indisvalid
}

/** The server goes on building when the process that asked for it is killed. It shows the beginning of the statement. */
async function untilOrphanEnds(statement: string, index: string, work: IndexWork): Promise<void> {
  const startedMs = performance.now()
  for (;;) {
    const rows = await work.readRows(
      `select 1 from pg_stat_activity where datname = current_database() and state = 'active'
         and query like 'create %index concurrently %' and starts_with(?, query)`,
      statement,
    )
    if (rows.length === 0) return
    work.onProgress(await progressOf(work.readRows, index, startedMs))
    await sleep(CHECK_EVERY_MS, undefined, { signal: work.signal })
  }
}

/** Runs a statement that may take hours, and tells its progress meanwhile. */
async function run(statement: string, index: string, { knex, readRows, onProgress, signal }: IndexWork): Promise<void> {
  const startedMs = performance.now()
  const ended = new AbortController()
  const working = withConnection(knex, signal, (connection) => runWithoutTimeouts(knex, connection, statement)).finally(
    () => ended.abort(),
  )
  const watching = async () => {
    for (;;) {
      await sleep(CHECK_EVERY_MS, undefined, { signal: ended.signal }).catch(() => {})
      if (ended.signal.aborted) return
      onProgress(await progressOf(readRows, index, startedMs))
    }
  }
  const [worked, watched] = await Promise.allSettled([working, watching()])
  if (worked.status === 'rejected') throw worked.reason
  if (watched.status === 'rejected') throw watched.reason
}

/** The server tells nothing of a distributed table, where others do the work, and nothing before the index has its place in the catalog. */
async function progressOf(readRows: ReadRows, index: string, startedMs: number): Promise<IndexProgress> {
  const [row] = await readRows<{ phase: string; pid: bigint; done: number | null }>(
    `select phase, current_locker_pid as pid,
       case when phase like '%loading tuples%' then tuples_done::float8 / nullif(tuples_total, 0)
         else blocks_done::float8 / nullif(blocks_total, 0) end as done
     from pg_stat_progress_create_index where index_relid = to_regclass(?)`,
    index,
  )
  const seconds = (performance.now() - startedMs) / 1_000
  if (row === undefined) return { index, seconds }
  const { phase, pid, done } = row
  const waits = phase.startsWith('waiting') && Number(pid) > 0 ? { waitsForPid: Number(pid) } : {}
  return { index, seconds, phase, ...waits, ...(done !== null && { done }) }
}
