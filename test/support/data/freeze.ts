import type { Knex } from 'knex'
import { connectionsOf } from '../../../src/postgres/knex.ts'

/** Stops processes as a machine that hangs does: their sockets stay open and nothing answers. @returns continues them */
export function freeze(pids: readonly number[]): () => void {
  let isFrozen = true
  // a process that is named twice may end between the two signals that continue it
  const frozen = new Set(pids)
  for (const pid of frozen) process.kill(pid, 'SIGSTOP')
  return () => {
    if (!isFrozen) return
    isFrozen = false
    for (const pid of frozen) process.kill(pid, 'SIGCONT')
  }
}

/** Opens every connection of a pool. @returns the server processes that serve it, the one that the next query gets last */
export async function fillPool(knex: Knex): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: connectionsOf(knex) }, () => knex.transaction()))
  const pids: number[] = []
  for (const trx of held) pids.push(await pidOf(trx))
  for (const trx of held) await trx.rollback()
  return pids
}

/** The server process that runs a statement. */
export async function pidOf(knex: Knex): Promise<number> {
  const { rows } = await knex.raw<{ rows: [{ pid: number }] }>('select pg_backend_pid() as pid')
  return rows[0].pid
}

/** The server processes of the clients of a database, but for the one that asks and those that nodes of Citus open to each other. */
export async function clientPids(knex: Knex): Promise<number[]> {
  const { rows } = await knex.raw<{ rows: { pid: number }[] }>(
    `select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
      and application_name not like 'citus%'`,
  )
  return rows.map(({ pid }) => pid)
}
