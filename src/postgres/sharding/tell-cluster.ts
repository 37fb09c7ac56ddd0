import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { findLostWorkers, nameOfPlace } from './lost-workers.ts'
import { readCluster } from './read-cluster.ts'
import { SHARDED_TABLES } from './table-kinds.ts'

interface WorkerRow {
  readonly place: string
  readonly success: boolean
  readonly result: string
}

/** Settings that the SQL of the service relies on. Its own connections set them, but Citus does not pass that on to the workers. */
const NEEDED = `current_setting('timezone') in ('UTC', 'Etc/UTC', 'GMT') and current_setting('bytea_output') = 'hex'`

/**
 * Logs at the start of the service that it is on Citus, whether its tables are sharded, and what is wrong with a worker.
 *
 * @returns whether it is on Citus
 */
export async function tellCluster(knex: Knex, logger: Logger): Promise<boolean> {
  const cluster = await readCluster(knex)
  if (cluster === undefined) return false
  const { version, shardNodes, distributed } = cluster
  const missing = SHARDED_TABLES.filter(({ name }) => !distributed.has(name)).map(({ name }) => name)
  const terms = { citus: version, nodes: shardNodes.length }
  if (missing.length === 0) logger.info(terms, 'accounts are sharded')
  else
    logger.warn(
      { ...terms, tables: missing },
      'the database has Citus, and tables are not sharded: run waybill migrate --distribute',
    )
  const lost = await findLostWorkers(knex, shardNodes)
  for (const worker of lost) {
    logger.warn({ worker: nameOfPlace(worker) }, 'a worker cannot be reached: its accounts are unavailable')
  }
  // the question goes to all workers, and would wait for those that hang
  if (lost.length === 0) await tellSettings(knex, logger)
  return true
}

async function tellSettings(knex: Knex, logger: Logger): Promise<void> {
  const { rows } = await knex.raw<{ rows: WorkerRow[] }>(
    `select nodename || ':' || nodeport as place, success, result from run_command_on_workers(?)`,
    [`select ${NEEDED}`],
  )
  for (const { place, success, result } of rows) {
    if (!success || result === 't') continue
    logger.warn(
      { worker: place },
      `a worker has settings that the service cannot use: set timezone = 'UTC', bytea_output = 'hex'`,
    )
  }
}
