import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { findLostWorkers, nameOfPlace } from './lost-workers.ts'
import { SHARDED_TABLES } from './table-kinds.ts'

/** A database in which the extension Citus is installed. */
export interface CitusCluster {
  /** Such as `13.2-1`. */
  readonly version: string
  /** Whether this is a worker, on which the service cannot run. */
  readonly isWorker: boolean
  /** Nodes that take shards; the coordinator itself may be one. */
  readonly shardNodes: readonly ClusterNode[]
  /** Tables that are sharded or replicated, by name. */
  readonly distributed: ReadonlyMap<string, DistributedTable>
}

interface ClusterNode {
  readonly host: string
  readonly port: number
  readonly isActive: boolean
}

interface DistributedTable {
  readonly name: string
  /** Null for a replicated table. */
  readonly column: string | null
  /** Equal for tables whose shards are placed together. */
  readonly colocation: number
  readonly shards: number
}

/** Reads what a database tells of its cluster; undefined where the extension is not installed in it. */
export async function readCluster(knex: Knex): Promise<CitusCluster | undefined> {
  const { rows: installed } = await knex.raw<{ rows: { extversion: string }[] }>(
    `select extversion from pg_extension where extname = 'citus'`,
  )
  const [extension] = installed
  if (extension === undefined) return undefined
  const { rows: groups } = await knex.raw<{ rows: { groupid: number }[] }>('select groupid from pg_dist_local_group')
  const { rows: nodes } = await knex.raw<{ rows: ClusterNode[] }>(
    `select nodename as host, nodeport as port, isactive as "isActive" from pg_dist_node
     where noderole = 'primary' and shouldhaveshards order by nodename, nodeport`,
  )
  const { rows: tables } = await knex.raw<{ rows: DistributedTable[] }>(
    `select c.relname as name, column_to_column_name(p.logicalrelid, p.partkey) as column, p.colocationid as colocation,
       (select count(*)::int from pg_dist_shard s where s.logicalrelid = p.logicalrelid) as shards
     from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid where pg_table_is_visible(c.oid)`,
  )
  return {
    version: extension.extversion,
    isWorker: groups.some(({ groupid }) => groupid !== 0),
    shardNodes: nodes,
    distributed: new Map(tables.map((table) => [table.name, table])),
  }
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
  const { rows } = await knex.raw<{ rows: { place: string; success: boolean; result: string }[] }>(
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
