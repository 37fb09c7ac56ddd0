import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { createReadPools, type ReadPools, type ReadPoolsOptions } from '../../src/postgres/replicas/read-pools.ts'
import { type ReplicatedDatabase, startReplicatedDatabase } from '../support/data/replica.ts'
import { recordLogs, silentLogger } from '../support/logs.ts'

let db: ReplicatedDatabase
let pools: ReadPools
const opened: ReadPools[] = []

function open(options: Partial<ReadPoolsOptions> = {}): ReadPools {
  const made = createReadPools({
    primary: db.primary,
    replicas: [{ name: 'replica', connection: db.replicaConnection }],
    database: {},
    logger: silentLogger,
    monotonicMs: () => performance.now(),
    lookEveryMs: 20,
    ...options,
  })
  opened.push(made)
  return made
}

beforeAll(async () => {
  db = await startReplicatedDatabase()
  await db.primary.raw('create table notes (n int)')
  pools = open()
  await pools.start()
}, 60_000)

afterAll(async () => {
  await Promise.all(opened.map((each) => each.stop()))
  await db.stop()
})

const isReplica = async (pool: Knex) => {
  const { rows } = await pool.raw('select pg_is_in_recovery() as here')
  return rows[0].here as boolean
}
const whereFrom = async (from: ReadPools, accountId: number) =>
  (await from.read({ accountId }, isReplica)) ? 'replica' : 'primary'
const hold = () => db.replica().raw('select pg_wal_replay_pause()')
const goOn = () => db.replica().raw('select pg_wal_replay_resume()')
const write = (n: number) => db.primary('notes').insert({ n })
const countOf = (n: number) => async (pool: Knex) => (await pool('notes').where({ n })).length

/** Each attempt writes, because positions just before and after the end of a WAL page differ although nothing is missing. */
const untilUsed = (from: ReadPools, accountId = 1) =>
  vi.waitFor(
    async () => {
      await write(0)
      expect(await whereFrom(from, accountId)).toBe('replica')
    },
    { timeout: 20_000, interval: 20 },
  )

describe('a replica', () => {
  beforeEach(() => untilUsed(pools))

  test('serves accounts that have seen no newer state', async () => {
    expect(await whereFrom(pools, 1)).toBe('replica')
    expect(await pools.read({ accountId: 1 }, countOf(0))).toBeGreaterThan(0)
  })

  test('gives the work its position, which then counts as seen by the account', async () => {
    const position = await pools.read({ accountId: 10 }, async (pool, _, positionOfPool) => {
      expect(await isReplica(pool)).toBe(true)
      return positionOfPool()
    })
    expect(position).toBeGreaterThan(0n)
    expect(pools.seenBy(10)).toBe(position)
  })

  test('that lags does not serve an account that has seen more, but serves others', async () => {
    await hold()
    try {
      await write(1)
      pools.noteSeen(2, await pools.positionOf(db.primary))
      expect(await pools.read({ accountId: 2 }, countOf(1))).toBe(1)
      expect(await whereFrom(pools, 2)).toBe('primary')
      expect(await whereFrom(pools, 3)).toBe('replica')
      expect(await pools.read({ accountId: 3 }, countOf(1))).toBe(0)
    } finally {
      await goOn()
    }
    await untilUsed(pools, 2)
    expect(await pools.read({ accountId: 2 }, countOf(1))).toBe(1)
  })

  test('that lags does not serve a caller with a newer position from another process', async () => {
    const elsewhere = open({ replicas: [] })
    await hold()
    try {
      await write(2)
      expect(await elsewhere.read({ accountId: 4 }, countOf(2))).toBe(1)
      const atLeast = elsewhere.seenBy(4)
      expect(await pools.read({ accountId: 4 }, countOf(2))).toBe(0)
      expect(await pools.read({ accountId: 4, atLeast }, countOf(2))).toBe(1)
      expect(await pools.read({ accountId: 4 }, countOf(2))).toBe(1)
    } finally {
      await goOn()
    }
  })

  test('is not waited for when a position comes from a server that the database has left', async () => {
    const atLeast = 2n ** 62n
    const startedMs = performance.now()
    expect(await pools.read({ accountId: 14, atLeast }, isReplica)).toBe(false)
    pools.noteSeen(14, atLeast)
    expect(await whereFrom(pools, 14)).toBe('primary')
    expect(performance.now() - startedMs).toBeLessThan(1_000)
    expect(await whereFrom(pools, 1)).toBe('replica')
  })

  test('never shows an account an older state, however reads and writes interleave', async () => {
    for (let n = 100; n < 160; n++) {
      await write(n)
      if (n % 2 === 0) pools.noteSeen(5, await pools.positionOf(db.primary))
      const seen = await pools.read({ accountId: 5 }, async (pool) => (await pool('notes').max('n as n'))[0]?.n)
      expect(seen).toBeGreaterThanOrEqual(n % 2 === 0 ? n : n - 1)
    }
  })

  test('that lags more than allowed serves nobody', async () => {
    const strict = open({ maxLagMs: 300 })
    await strict.start()
    await untilUsed(strict)
    await hold()
    try {
      await write(3)
      await vi.waitFor(async () => expect(await whereFrom(strict, 6)).toBe('primary'), 5_000)
    } finally {
      await goOn()
    }
    await untilUsed(strict, 6)
  })

  test('on which work fails is replaced by the primary, unnoticed by the caller', async () => {
    const once = open()
    await once.start()
    await untilUsed(once)
    const asked: boolean[] = []
    const answer = await once.read({ accountId: 7 }, async (pool) => {
      asked.push(await isReplica(pool))
      if (asked.length === 1) await pool.raw('select * from nothing')
      return 'answered'
    })
    expect(answer).toBe('answered')
    expect(asked).toEqual([true, false])
    expect(await whereFrom(once, 7)).toBe('primary')
  })

  test('may refuse a request as the primary does', async () => {
    const asked: boolean[] = []
    const refused = pools.read({ accountId: 8 }, async (pool) => {
      asked.push(await isReplica(pool))
      throw waybillError('PAYMENT_NOT_FOUND', { value: 'x' })
    })
    await expect(refused).rejects.toMatchObject({ reason: 'PAYMENT_NOT_FOUND' })
    expect(asked).toEqual([true])
  })

  test('ends its work when the signal of the caller fires', async () => {
    const controller = new AbortController()
    const reason = new Error('the caller hung up')
    const reading = pools.read({ accountId: 9, signal: controller.signal }, async (_, signal) => {
      controller.abort(reason)
      signal?.throwIfAborted()
      return 'continued'
    })
    await expect(reading).rejects.toBe(reason)
  })
})

test('the primary is not used as its own replica', async () => {
  const wrong = open({ replicas: [{ name: 'itself', connection: db.primaryConnection }] })
  await wrong.start()
  expect(await whereFrom(wrong, 1)).toBe('primary')
})

test('the primary takes over in time from a replica that hangs, work in progress included', async () => {
  const impatient = open({ lookTimeoutMs: 200 })
  await impatient.start()
  await untilUsed(impatient)
  let begun = 0
  let release = () => {}
  const stuck = impatient.read({ accountId: 1 }, async (pool) => {
    begun += 1
    const here = await isReplica(pool)
    if (begun === 1) {
      release = await db.freezeReplica()
      await isReplica(pool)
    }
    return here ? 'replica' : 'primary'
  })
  expect(await stuck).toBe('primary')
  expect(await whereFrom(impatient, 1)).toBe('primary')
  release()
  await untilUsed(impatient)
})

test('the primary takes over from a replica that dies; the replica is used again when it is back', async () => {
  await untilUsed(pools)
  let begun = 0
  const dying = pools.read({ accountId: 1 }, async (pool) => {
    begun += 1
    if (begun === 1) {
      void db.killReplica()
      await pool.raw('select pg_sleep(60)')
    }
    return (await isReplica(pool)) ? 'replica' : 'primary'
  })
  expect(await dying).toBe('primary')
  expect(await whereFrom(pools, 1)).toBe('primary')
  await db.startReplica()
  await untilUsed(pools)
})

test('a replica of another cluster serves nobody, whatever its position, and is logged once', async () => {
  const another = await startReplicatedDatabase()
  const logs = recordLogs()
  const foreign = open({ replicas: [{ name: 'foreign', connection: another.replicaConnection }], logger: logs })
  try {
    const ours = await pools.positionOf(db.primary)
    await another.primary.raw('create table notes (n int)')
    await vi.waitFor(
      async () => {
        // each switch skips the rest of a WAL segment
        await another.primary.raw('insert into notes values (0)')
        await another.primary.raw('select pg_switch_wal()')
        const { rows } = await another.replica().raw(`select (pg_last_wal_replay_lsn() - '0/0')::text as at`)
        expect(BigInt(rows[0].at)).toBeGreaterThan(ours + 2n ** 26n)
      },
      { timeout: 20_000, interval: 20 },
    )
    await foreign.start()
    expect(await whereFrom(foreign, 1)).toBe('primary')
    const line = 'the replica belongs to another database cluster and is not used'
    expect(await whereFrom(foreign, 2)).toBe('primary')
    expect(logs.records.filter(({ message }) => message === line)).toHaveLength(1)
  } finally {
    await foreign.stop()
    await another.stop()
  }
}, 60_000)

test('nothing from a promoted replica reaches a caller, work in progress included', async () => {
  await untilUsed(pools)
  const asked: boolean[] = []
  const answer = await pools.read({ accountId: 1 }, async (pool) => {
    asked.push(await isReplica(pool))
    if (asked.length === 1) {
      await db.replica().raw('select pg_promote()')
      // from here on its data are no longer the primary's
      await pool('notes').insert({ n: 777 })
    }
    return countOf(777)(pool)
  })
  expect(asked).toEqual([true, false])
  expect(answer).toBe(0)
  expect(await whereFrom(pools, 1)).toBe('primary')
  const anew = open()
  await anew.start()
  expect(await whereFrom(anew, 1)).toBe('primary')
})
