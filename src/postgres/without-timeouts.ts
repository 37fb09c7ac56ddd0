import type { Knex } from 'knex'
import type { SessionClient } from './session.ts'

/** `transaction_timeout` came with PostgreSQL 17. */
const TIMEOUTS = `select name from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

/** Lifts the timeouts of the role, the database and the pool for the rest of a transaction, and ours on the silence of the server. */
export async function liftTimeouts(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`select set_config(name, '0', true) from (${TIMEOUTS}) t`)
  // the client of a transaction gives its own connection; the pool sets the limit again
  const connection: SessionClient = await trx.client.acquireConnection()
  connection.limitSilence(undefined)
}

/** Runs one statement outside of a transaction without timeouts. There settings last as long as the connection, which nobody gets afterwards. */
export async function runWithoutTimeouts(knex: Knex, connection: SessionClient, statement: string): Promise<void> {
  connection.__knex__disposed = 'it has no timeouts'
  connection.limitSilence(undefined)
  await knex.raw(`select set_config(name, '0', false) from (${TIMEOUTS}) t`).connection(connection)
  await knex.raw(statement).connection(connection)
}
