import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { withConnection } from '../cancellable.ts'
import { runWithoutTimeouts } from '../without-timeouts.ts'
import { type IndexBuild, type IndexChange, statementOf } from './migration.ts'
import type { IndexProgress, MigrationReport } from './migration-report.ts'

const CHECK_EVERY_MS = 250

interface ChangeOptions {
  readonly report?: MigrationReport
  readonly reportEveryMs?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Builds and drops indexes without stopping writes. What an earlier call left is continued: a valid index of the name counts as built, an
 * invalid one is dropped and built again, a build that still runs on the server after its process was killed is waited for.
 *
 * @throws Error of the database; the index may then exist and not be valid
 */
export async function changeIndexes(
  knex: Knex,
  changes: readonly IndexChange[],
  { report, reportEveryMs = 10_000, signal }: ChangeOptions,
): Promise<void> {
  async function run(change: IndexChange): Promise<void> {
    const reporting = setInterval(() => void reportBuilds(knex, report), reportEveryMs)
    await withConnection(knex, signal, (connection) =>
      runWithoutTimeouts(knex, connection, statementOf(change)),
    ).finally(() => clearInterval(reporting))
  }
  for (const change of changes) {
    if ('build' in change) {
      await untilOrphanEnds(knex, change, signal)
      const isValid = await validity(knex, change.build)
      if (isValid === true) continue
      // of a sharded table perhaps only some shards have it
      if (isValid === false) await run({ drop: change.build, table: change.table })
    }
    await run(change)
  }
}

/** Reports what is built now. The server tells nothing of a distributed table, where others do the work. */
async function reportBuilds(knex: Knex, report: MigrationReport | undefined): Promise<void> {
  const percent = 'floor(100.0 * ?? / nullif(??, 0))::int'
  const { rows } = await knex
    .raw<{ rows: IndexProgress[] }>(
      `select index_relid::regclass::text as index, phase,
         case when phase like '%loading tuples%' then ${percent} else ${percent} end as percent
       from pg_stat_progress_create_index where datname = current_database()`,
      ['tuples_done', 'tuples_total', 'blocks_done', 'blocks_total'],
    )
    .catch(() => ({ rows: [] }))
  for (const building of rows) report?.builds(building)
}

/** undefined: there is no such index */
async function validity(knex: Knex, name: string): Promise<boolean | undefined> {
  const sql = 'select indisvalid from pg_index where indexrelid = to_regclass(?)'
  const { rows } = await knex.raw<{ rows: { indisvalid: boolean }[] }>(sql, [name])
  return rows[0]?.indisvalid
}

/** The server goes on building when the process that asked for it is killed. It shows the beginning of the statement. */
async function untilOrphanEnds(knex: Knex, index: IndexBuild, signal: AbortSignal | undefined): Promise<void> {
  for (;;) {
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `select 1 from pg_stat_activity where datname = current_database() and state = 'active'
         and query like 'create %index concurrently %' and starts_with(?, query)`,
      [statementOf(index)],
    )
    if (rows.length === 0) return
    await sleep(CHECK_EVERY_MS, undefined, { signal })
  }
}
