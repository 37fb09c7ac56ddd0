import type { Knex } from 'knex'
import type { SessionClient } from './session.ts'

/** `transaction_timeout` came with PostgreSQL 17. */
const TIMEOUTS = `select name, current_setting(name) as value from pg_settings
  where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

/** Lifts the timeouts of the role, the database and the pool for the rest of a transaction, and ours on the silence of the server. */
export async function liftTimeouts(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`select set_config(name, '0', true) from (${TIMEOUTS}) t`)
  // the client of a transaction gives its own connection; the pool sets the limit again
  const connection: SessionClient = await trx.client.acquireConnection()
  connection.limitSilence(undefined)
}

/**
 * Runs one statement outside of a transaction without timeouts. There settings last as long as the connection, so they are set back. Behind a
 * pooler they would reach its other clients, and perhaps not this statement.
 *
 * @throws Error when a pooler is between and the role has a timeout
 */
export async function runWithoutTimeouts(knex: Knex, connection: SessionClient, statement: string): Promise<void> {
  const timeouts = await limitsOf(knex, connection)
  const set = async (value: (timeout: Timeout) => string) => {
    for (const timeout of timeouts) {
      await knex.raw('select set_config(?, ?, false)', [timeout.name, value(timeout)]).connection(connection)
    }
  }
  try {
    await set(() => '0')
    connection.limitSilence(undefined)
    await knex.raw(statement).connection(connection)
  } finally {
    // a connection without timeouts must not go back to the pool
    await set(({ value }) => value).catch((error: unknown) => {
      connection.__knex__disposed = error
    })
  }
}

interface Timeout {
  readonly name: string
  readonly value: string
}

/** The timeouts that are in force. */
async function limitsOf(knex: Knex, connection: SessionClient): Promise<Timeout[]> {
  const { rows } = await knex
    .raw<{ rows: (Timeout & { pid: number })[] }>(`select t.*, pg_backend_pid() as pid from (${TIMEOUTS}) t`)
    .connection(connection)
  const limits = rows.filter(({ value }) => value !== '0')
  const [limit] = limits
  if (limit !== undefined && limit.pid !== connection.processID) {
    throw new Error(
      `${limit.name} is ${limit.value} behind a pooler, and might end the building of an index: run waybill migrate with a DATABASE_URL that leads to the server itself`,
    )
  }
  return limits
}
