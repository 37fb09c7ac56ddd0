import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { inTransaction } from '../cancellable.ts'
import { classifyDatabaseError } from '../database-error.ts'
import { liftTimeouts } from '../without-timeouts.ts'
import { findLostWorkers, nameOfPlace } from './lost-workers.ts'
import { type CitusCluster, readCluster } from './read-cluster.ts'
import { SHARDED_TABLES, type ShardedTable } from './table-kinds.ts'

/** What sharding a database will do. */
export interface DistributionPlan {
  readonly cluster: CitusCluster
  /** Tables that are not sharded yet. */
  readonly tables: readonly PlannedTable[]
  /** Sharded tables of which the coordinator still has the rows from before. */
  readonly leftovers: readonly string[]
  /** Shards of each table. */
  readonly shards: number
}

export interface PlannedTable extends ShardedTable {
  /** What the planner last knew; may be some minutes old. */
  readonly rows: number
  /** With indexes. */
  readonly bytes: number
}

/** The versions with which the tests of the service have passed. */
const OLDEST_MAJOR = 13

/** The number that Citus itself takes. More than workers, so that workers can be added later. */
const DEFAULT_SHARDS = 32

/** Writers of payments lock their account first, so that they wait here and hold nothing that the sharding needs. */
const GATE = 'account_changes'
const GATE_TIMEOUT_MS = 5_000

/** Who passed the gate before, or stores requests, may wait for the gate while it holds other tables: then the sharding gives way, before the server looks for deadlocks. */
const LOCK_TIMEOUT_MS = 400
const LOCK_RETRY_MS = 250

/**
 * Finds out what is to be done.
 *
 * @param shards - undefined: the number of the tables that are sharded already, or Citus's own
 * @throws Error why the database cannot be sharded, and what to do
 */
export async function planDistribution(knex: Knex, shards: number | undefined): Promise<DistributionPlan> {
  const cluster = await requireCoordinator(knex)
  const ours = SHARDED_TABLES.flatMap((table) => {
    const found = cluster.distributed.get(table.name)
    return found === undefined ? [] : [{ ...table, found }]
  })
  const wrong = ours.find(
    ({ column, found }) =>
      found.column !== column || (column === 'account_id' && found.colocation !== ours[0]?.found.colocation),
  )
  if (wrong !== undefined) {
    throw new Error(
      `the table ${wrong.name} is not sharded by ${wrong.column} beside the others: undo it with undistribute_table('${wrong.name}')`,
    )
  }
  const present = ours[0]?.found.shards
  if (shards !== undefined && present !== undefined && shards !== present) {
    throw new Error(
      `the tables have ${present} shards, not ${shards}: leave --shards out, or change all of them with alter_distributed_table('payments', shard_count := ${shards}, cascade_to_colocated := true)`,
    )
  }
  const sizes = await readSizes(knex)
  const isSharded = ({ name }: ShardedTable) => cluster.distributed.has(name)
  return {
    cluster,
    shards: shards ?? present ?? DEFAULT_SHARDS,
    tables: SHARDED_TABLES.filter((table) => !isSharded(table)).map((table) => ({
      ...table,
      rows: sizes.get(table.name)?.rows ?? 0,
      bytes: sizes.get(table.name)?.bytes ?? 0,
    })),
    leftovers: SHARDED_TABLES.filter((table) => isSharded(table) && (sizes.get(table.name)?.heap ?? 0) > 0).map(
      ({ name }) => name,
    ),
  }
}

async function requireCoordinator(knex: Knex): Promise<CitusCluster> {
  const cluster = await readCluster(knex)
  if (cluster === undefined) {
    throw new Error(
      'the database has no Citus: install it on every node, then run "create extension citus" in this database on each of them',
    )
  }
  const { version, shardNodes } = cluster
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new Error(`Citus ${version} is too old: ${OLDEST_MAJOR} or later is needed`)
  }
  if (shardNodes.length === 0) {
    throw new Error(
      `the coordinator knows no workers: add each with select citus_add_node('HOST', PORT) in this database`,
    )
  }
  const lost = shardNodes.find(({ isActive }) => !isActive)
  if (lost !== undefined) {
    throw new Error(
      `the worker ${lost.host}:${lost.port} is disabled: bring it back with citus_activate_node, or remove it with citus_remove_node`,
    )
  }
  return cluster
}

/** @throws Error where a worker does not answer the coordinator */
export async function requireWorkers(knex: Knex, { shardNodes }: CitusCluster): Promise<void> {
  const lost = await findLostWorkers(knex, shardNodes)
  if (lost.length === 0) return
  const names = lost.map(nameOfPlace).join(', ')
  throw new Error(
    `the coordinator gets no answer from ${lost.length === 1 ? 'the worker' : 'the workers'} ${names}: bring ${lost.length === 1 ? 'it' : 'them'} back, then run the command again`,
  )
}

interface Size {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly heap: number
}

async function readSizes(knex: Knex): Promise<ReadonlyMap<string, Size>> {
  const { rows } = await knex.raw<{ rows: Size[] }>(
    `select t.name, greatest(c.reltuples, 0)::float8 as rows, pg_total_relation_size(c.oid)::float8 as bytes,
       pg_relation_size(c.oid)::float8 as heap
     from unnest(?::text[]) as t (name) join pg_class c on c.oid = to_regclass(t.name)`,
    [SHARDED_TABLES.map(({ name }) => name)],
  )
  return new Map(rows.map((row) => [row.name, row]))
}

export interface DistributionEvents {
  /** Called when the sharding waits for a transaction of the service, again and again. */
  readonly onWaiting: () => void
  /** Called before a table is copied to the workers. */
  readonly onTable: (table: PlannedTable) => void
}

/**
 * Shards the tables of a plan, all in one transaction: a statement that joins tables needs all of them sharded or none. Until it ends, readers see
 * the tables as they were and writers wait. A killed run leaves nothing; run again, it does what is left.
 */
export async function distributeTables(
  knex: Knex,
  plan: DistributionPlan,
  { onWaiting, onTable }: DistributionEvents,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { tables, shards } = plan
  if (tables.length > 0) {
    await withLockedTables(
      knex,
      tables.map(({ name }) => name),
      { mode: 'exclusive', onWaiting, signal },
      async (trx) => {
        // Another run may have been faster.
        for (const table of (await planDistribution(trx, shards)).tables) {
          onTable(table)
          await shardTable(trx, table, shards)
        }
      },
    )
  }
  const { leftovers } = await planDistribution(knex, undefined)
  for (const name of leftovers) {
    await withLockedTables(knex, [name], { mode: 'access exclusive', onWaiting, signal }, async (trx) => {
      await trx.raw('select truncate_local_data_after_distributing_table(?::regclass)', [name])
    })
  }
  // Each worker's planner needs its own statistics before autovacuum comes by.
  if (tables.length > 0) await knex.raw(`analyze ${tables.map(({ name }) => name).join(', ')}`)
}

interface Locking {
  readonly mode: 'exclusive' | 'access exclusive'
  readonly onWaiting: () => void
  readonly signal: AbortSignal | undefined
}

/** Takes the locks of all tables at once, or gives way and tries again, so that it never waits in the way of a writer that waits for it. */
async function withLockedTables(
  knex: Knex,
  tables: readonly string[],
  { mode, onWaiting, signal }: Locking,
  work: (trx: Knex.Transaction) => Promise<void>,
): Promise<void> {
  for (;;) {
    const isDone = await inTransaction(knex, signal, async (trx) => {
      await liftTimeouts(trx)
      await trx.raw(`set local lock_timeout = ${GATE_TIMEOUT_MS}`)
      await trx.raw(`lock table ${GATE} in ${mode} mode`)
      await trx.raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await trx.raw(`lock table ${tables.join(', ')} in ${mode} mode`)
      await trx.raw('set local lock_timeout = 0')
      // One connection to each worker: Citus refuses to shard several tables in one transaction over several.
      await trx.raw(`set local citus.multi_shard_modify_mode = 'sequential'`)
      await work(trx)
      return true
    }).catch((error: unknown) => {
      const kind = classifyDatabaseError(error)
      if ((error as { code?: unknown }).code === '55P03' || kind === 'serialization') return false
      throw error
    })
    if (isDone) return
    onWaiting()
    await sleep(LOCK_RETRY_MS, undefined, { signal })
  }
}

/** Shards one table, and copies its rows to the workers. */
async function shardTable(trx: Knex.Transaction, { name, column }: ShardedTable, shards: number): Promise<void> {
  const first = SHARDED_TABLES[0]?.name ?? ''
  const isWithFirst = column === 'account_id' && name !== first
  const placed = isWithFirst ? 'colocate_with => ?' : `colocate_with => 'none', shard_count => ?::int`
  const bindings = [name, column, isWithFirst ? first : shards]
  await trx.raw(`select create_distributed_table(?::regclass, ?, ${placed})`, bindings)
}

/** Shards the tables that a migration has just created, where the others are sharded. They are empty. */
export async function distributeNewTables(trx: Knex.Transaction): Promise<void> {
  const cluster = await readCluster(trx)
  const present = cluster?.distributed.get(SHARDED_TABLES[0]?.name ?? '')
  if (cluster === undefined || present === undefined) return
  const sizes = await readSizes(trx)
  for (const table of SHARDED_TABLES) {
    if (cluster.distributed.has(table.name) || !sizes.has(table.name)) continue
    await shardTable(trx, table, present.shards)
  }
}
