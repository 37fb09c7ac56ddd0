import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { withConnection } from '../cancellable.ts'
import { runWithoutTimeouts } from '../without-timeouts.ts'
import { type IndexBuild, type IndexChange, statementOf } from './migration.ts'

const CHECK_EVERY_MS = 250

/**
 * Builds and drops indexes without stopping writes. What an earlier call left is continued: a valid index of the name counts as built, an
 * invalid one is dropped and built again, a build that still runs on the server after its process was killed is waited for.
 *
 * @throws Error of the database; the index may then exist and not be valid
 */
export async function changeIndexes(knex: Knex, changes: readonly IndexChange[], signal?: AbortSignal): Promise<void> {
  const run = (change: IndexChange) =>
    withConnection(knex, signal, (connection) => runWithoutTimeouts(knex, connection, statementOf(change)))
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
