import type { Knex } from 'knex'

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

export interface ClusterNode {
  readonly host: string
  readonly port: number
  readonly isActive: boolean
}

export interface DistributedTable {
  /** Undefined for a replicated table. */
  readonly column: string | undefined
  /** Equal for tables whose shards are placed together. */
  readonly colocation: number
  readonly shards: number
}

interface NodeRow {
  readonly nodename: string
  readonly nodeport: number
  readonly isactive: boolean
}

interface TableRow {
  readonly name: string
  readonly column: string | null
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
  const { rows: nodes } = await knex.raw<{ rows: NodeRow[] }>(
    `select nodename, nodeport, isactive from pg_dist_node where noderole = 'primary' and shouldhaveshards
     order by nodename, nodeport`,
  )
  const { rows: tables } = await knex.raw<{ rows: TableRow[] }>(
    `select c.relname as name, column_to_column_name(p.logicalrelid, p.partkey) as column, p.colocationid as colocation,
       (select count(*)::int from pg_dist_shard s where s.logicalrelid = p.logicalrelid) as shards
     from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid where pg_table_is_visible(c.oid)`,
  )
  return {
    version: extension.extversion,
    isWorker: groups.some(({ groupid }) => groupid !== 0),
    shardNodes: nodes.map(({ nodename, nodeport, isactive }) => ({
      host: nodename,
      port: nodeport,
      isActive: isactive,
    })),
    distributed: new Map(
      tables.map(({ name, column, colocation, shards }) => [name, { column: column ?? undefined, colocation, shards }]),
    ),
  }
}
