import type { Knex } from 'knex'
import type { Connection, ConnectionFactory } from '../../../src/postgres/embedded/embedded-connection.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { distributeTables, planDistribution } from '../../../src/postgres/sharding/distribute.ts'
import { readCluster } from '../../../src/postgres/sharding/read-cluster.ts'

/** A worker of the cluster on which the tests run. */
export interface TestWorker {
  readonly host: string
  readonly port: number
}

/** Few, because each costs every test file some time, and enough that both workers have accounts and topics. */
const SHARDS = 4

/** The workers that the coordinator knows in a database. */
export async function readWorkers(connection: Connection): Promise<TestWorker[]> {
  return withDatabase(connection, async (knex) => {
    const cluster = await readCluster(knex)
    if (cluster === undefined || cluster.shardNodes.length === 0) {
      throw new Error('CITUS_URL has to be a database with Citus that knows its workers')
    }
    return cluster.shardNodes.map(({ host, port }) => ({ host, port }))
  })
}

/** How a test database uses the cluster. */
export interface ClusterUse {
  /** Default true. */
  readonly isSharded?: boolean
  /** The address at which the coordinator finds a worker, undefined for one that it does not know yet; default its own. */
  readonly addressOf?: (worker: TestWorker, nth: number) => Promise<TestWorker | undefined>
}

/** Makes a database a part of the cluster: creates it on the workers, with the extension on every node. Its tables stay on the coordinator. */
export async function joinWorkers(
  connectionTo: ConnectionFactory,
  workers: readonly TestWorker[],
  name: string,
  { addressOf = async (worker) => worker }: ClusterUse,
): Promise<void> {
  const coordinator = connectionTo(name)
  await Promise.all(
    workers.map(async (worker) => {
      await run({ ...connectionTo(), ...worker }, `create database ${name}`)
      await run({ ...coordinator, ...worker }, 'create extension citus')
    }),
  )
  await withDatabase(coordinator, async (knex) => {
    await knex.raw('create extension citus')
    await knex.raw('select citus_set_coordinator_host(?, ?)', [coordinator.host, coordinator.port])
    await inOrder(connectionTo(), async () => {
      for (const [nth, worker] of workers.entries()) {
        const known = await addressOf(worker, nth)
        if (known !== undefined) await knex.raw('select citus_add_node(?, ?)', [known.host, known.port])
      }
    })
  })
}

/** Shards the tables of a joined database. */
export async function shardDatabase(connection: Connection): Promise<void> {
  await withDatabase(connection, async (knex) => {
    const ignore = () => {}
    await distributeTables(
      knex,
      await planDistribution(knex, SHARDS),
      { onWaiting: ignore, onTable: ignore },
      undefined,
    )
  })
}

/** Drops a database from every node. */
export async function dropEverywhere(
  connectionTo: ConnectionFactory,
  workers: readonly TestWorker[],
  name: string,
): Promise<void> {
  const drop = `drop database if exists ${name} with (force)`
  await run(connectionTo(), drop)
  await Promise.all(workers.map((worker) => run({ ...connectionTo(), ...worker }, drop)))
}

/** A node that is added gets the roles of the whole server, which two databases cannot give it at once. */
function inOrder(connection: Connection, work: () => Promise<void>): Promise<void> {
  return withDatabase(connection, (knex) =>
    knex.transaction(async (trx) => {
      await trx.raw('select pg_advisory_xact_lock(?)', [JOINING])
      await work()
    }),
  )
}

/** The key of an advisory lock. */
const JOINING = 130_410

function run(connection: Connection, statement: string): Promise<void> {
  return withDatabase(connection, async (knex) => void (await knex.raw(statement)))
}

async function withDatabase<T>(connection: Connection, work: (knex: Knex) => Promise<T>): Promise<T> {
  const knex = createDatabase(connection, { poolMax: 1 })
  try {
    return await work(knex)
  } finally {
    await knex.destroy()
  }
}
