import type { Knex } from 'knex'
import type { PooledConnection } from '../cancellable.ts'

/** `transaction_timeout` came with PostgreSQL 17. */
const TIMEOUTS = `select name, current_setting(name) as value from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

/** Lifts the timeouts of the role, the database and the pool for the rest of a transaction. */
export async function liftTimeouts(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`select set_config(name, '0', true) from (${TIMEOUTS}) t`)
}

/** Runs one statement outside of a transaction without timeouts. There settings last as long as the connection, so they are set back. */
export async function runWithoutTimeouts(knex: Knex, connection: PooledConnection, statement: string): Promise<void> {
  const { rows } = await knex.raw<{ rows: { name: string; value: string }[] }>(TIMEOUTS).connection(connection)
  const set = async (value: (row: { name: string; value: string }) => string) => {
    for (const row of rows) {
      await knex.raw('select set_config(?, ?, false)', [row.name, value(row)]).connection(connection)
    }
  }
  try {
    await set(() => '0')
    await knex.raw(statement).connection(connection)
  } finally {
    // a connection without timeouts must not go back to the pool
    await set(({ value }) => value).catch((error: unknown) => {
      connection.__knex__disposed = error
    })
  }
}
