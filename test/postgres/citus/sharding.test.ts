/** What is particular about Citus. The other tests run on it too: `npm run test:citus`. */
import type { Knex } from 'knex'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../../src/domain/account.ts'
import { classifyDatabaseError } from '../../../src/postgres/database-error.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { MIGRATIONS } from '../../../src/postgres/migrations/list.ts'
import { migrate } from '../../../src/postgres/migrations/migrate.ts'
import { distributeTables, planDistribution } from '../../../src/postgres/sharding/distribute.ts'
import { readCluster } from '../../../src/postgres/sharding/read-cluster.ts'
import { SHARDED_TABLES } from '../../../src/postgres/sharding/table-kinds.ts'
import { checkAccount, type Difference } from '../../../src/store/proof/check-account.ts'
import type { TestWorker } from '../../support/data/citus-cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/data/database.ts'
import { testedServer } from '../../support/data/tested-server.ts'
import { type Cut, startTcpProxy } from './tcp-proxy.ts'
import { type Writer, writeUntil } from './writers.ts'

let database: TestDatabase
let knex: Knex
let accounts: readonly Account[]
const proxies: Cut[] = []

async function open(...given: Parameters<typeof createTestDatabase>): Promise<void> {
  database = await createTestDatabase(...given)
  knex = database.knex
  const repository = createApiKeyRepository(knex)
  const made: Account[] = []
  for (const name of ['ann', 'bob', 'cyd', 'dan', 'eve', 'fay']) made.push(await repository.ensureAccount(name))
  accounts = made
}

const END_DOOMED = `
  select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'doomed' and datname = current_database()`

const events = { onWaiting: () => {}, onTable: () => {} }

/** Shards the database, with few shards. */
const shard = async (on = knex) => distributeTables(on, await planDistribution(on, 4), events, undefined)

/** The port of the worker that has each account. */
async function placesOf(): Promise<number[]> {
  const { rows } = await knex.raw<{ rows: { nodeport: number }[] }>(
    `select p.nodeport from unnest(?::int[]) with ordinality as a (id, nth)
     join pg_dist_shard_placement p on p.shardid = get_shard_id_for_distribution_column('payments', a.id) order by a.nth`,
    [accounts.map(({ id }) => id)],
  )
  return rows.map(({ nodeport }) => nodeport)
}

/** Whatever `waybill check` would tell of all accounts, beside the number of payments of each. */
async function proveAll(): Promise<{ differences: Difference[]; payments: number[] }> {
  const differences: Difference[] = []
  const payments: number[] = []
  for (const { id } of accounts) {
    const terms = { onProgress: () => {}, onDifference: (each: Difference) => void differences.push(each) }
    payments.push(Number((await checkAccount(knex, id, terms)).payments))
  }
  return { differences, payments }
}

describe.skipIf(!testedServer.isCitus)('on Citus', () => {
  beforeEach(async () => {
    proxies.length = 0
  })
  afterEach(async () => {
    for (const proxy of proxies) await proxy.stop()
    await database.drop()
  })

  it('sharding while accounts are written and read loses nothing, and no reader waits for long', async () => {
    await open({ poolMax: 12 }, { isSharded: false })
    const writers: Writer[] = accounts.map((account) => writeUntil(knex, account))
    await Promise.all(writers.map((writer) => writer.written(10)))
    let longestMs = 0
    const reading = new AbortController()
    const reader = (async () => {
      while (!reading.signal.aborted) {
        const startedMs = performance.now()
        await knex('payments').where({ account_id: accounts[0]?.id }).count()
        longestMs = Math.max(longestMs, performance.now() - startedMs)
      }
    })()
    await shard()
    await Promise.all(writers.map((writer) => writer.written(10)))
    reading.abort()
    await reader
    const stored = await Promise.all(writers.map((writer) => writer.stop()))
    expect(await proveAll()).toEqual({ differences: [], payments: stored })
    expect(new Set(await placesOf()).size).toBeGreaterThan(1)
    expect(await planDistribution(knex, undefined)).toMatchObject({ tables: [], leftovers: [], shards: 4 })
    expect(longestMs).toBeLessThan(5_000)
  })

  it('sharding that is killed leaves everything as it was, and is done by the next run', async () => {
    await open({}, { isSharded: false })
    const writer = writeUntil(knex, accounts[0] as Account)
    await writer.written(10)
    const stored = await writer.stop()
    const doomed = createDatabase(database.connection, { poolMax: 1, applicationName: 'doomed' })
    const killed = distributeTables(
      doomed,
      await planDistribution(doomed, 4),
      {
        ...events,
        onTable: ({ name }) => {
          if (name === 'requests') knex.raw(END_DOOMED).catch(() => {})
        },
      },
      undefined,
    )
    await expect(killed).rejects.toThrow(/terminat/i)
    await doomed.destroy()
    expect((await readCluster(knex))?.distributed.size).toBe(0)
    await shard()
    await shard()
    expect((await readCluster(knex))?.distributed.size).toBe(SHARDED_TABLES.length)
    expect(await proveAll()).toEqual({ differences: [], payments: [stored, 0, 0, 0, 0, 0] })
  })

  it('later migrations run, and a table that they create is sharded with the others', async () => {
    await open()
    await knex.raw('drop table accepted_events')
    const later = [
      ...MIGRATIONS,
      {
        name: '9001-later',
        async up(trx: Knex.Transaction) {
          await trx.raw('alter table payments add column later text')
          await trx.raw(`alter table payments add constraint later_is_short check (char_length(later) < 9) not valid`)
          await trx.raw('create table accepted_events (account_id int not null, id int, primary key (account_id, id))')
        },
      },
      {
        name: '9002-later',
        indexes: [{ build: 'payments_later', table: 'payments', definition: '(account_id, later)' }],
      },
    ]
    expect(await migrate(knex, { migrations: later })).toEqual(['9001-later', '9002-later'])
    const { distributed } = (await readCluster(knex)) ?? { distributed: new Map() }
    expect(distributed.get('accepted_events')).toEqual({ ...distributed.get('payments'), name: 'accepted_events' })
    const writer = writeUntil(knex, accounts[0] as Account)
    await writer.written(5)
    const stored = await writer.stop()
    expect(await proveAll()).toEqual({ differences: [], payments: [stored, 0, 0, 0, 0, 0] })
  })

  it('while a worker is lost its accounts are unavailable and the others are served; afterwards nothing is missing', async () => {
    const addressOf = async (worker: TestWorker) => {
      const proxy = await startTcpProxy(worker)
      proxies.push(proxy)
      return proxy.address
    }
    await open({}, { addressOf })
    const writers = accounts.map((account) => writeUntil(knex, account))
    await Promise.all(writers.map((writer) => writer.written(5)))
    const before = await Promise.all(writers.map((writer) => writer.stop()))
    const places = await placesOf()
    const [lost] = proxies
    lost?.cut()
    const ask = ({ id }: Account) =>
      knex('payments')
        .where({ account_id: id })
        .then(
          (rows) => rows.length,
          (error: unknown) => classifyDatabaseError(error),
        )
    const answers = await Promise.all(accounts.map(ask))
    const expected = before.map((count, at) => (places[at] === lost?.address.port ? 'unavailable' : count))
    expect(answers).toEqual(expected)
    expect(new Set(places).size).toBe(2)
    const held = accounts.findIndex((_, at) => places[at] !== lost?.address.port)
    const one = writeUntil(knex, accounts[held] as Account)
    await one.written(3)
    const more = await one.stop()
    lost?.mend()
    await expect.poll(() => ask(accounts[places.indexOf(lost?.address.port ?? 0)] as Account)).not.toBe('unavailable')
    const payments = before.map((count, at) => (at === held ? count + more : count))
    expect(await proveAll()).toEqual({ differences: [], payments })
  })

  it('moving shards to a new worker while accounts are written loses nothing', async () => {
    let newcomer: TestWorker = { host: '', port: 0 }
    await open(
      { poolMax: 12 },
      {
        addressOf: async (worker, nth) => {
          if (nth === 0) return worker
          newcomer = worker
          return undefined
        },
      },
    )
    expect(new Set(await placesOf()).size).toBe(1)
    const writers = accounts.map((account) => writeUntil(knex, account))
    await Promise.all(writers.map((writer) => writer.written(5)))
    await knex.raw('select citus_add_node(?, ?)', [newcomer.host, newcomer.port])
    await knex.raw('select rebalance_table_shards()')
    await Promise.all(writers.map((writer) => writer.written(5)))
    const stored = await Promise.all(writers.map((writer) => writer.stop()))
    expect(new Set(await placesOf()).size).toBe(2)
    expect(await proveAll()).toEqual({ differences: [], payments: stored })
  })
})
