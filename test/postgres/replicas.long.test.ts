import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { runCancellable } from '../../src/postgres/cancellable.ts'
import {
  createReadPools,
  probeServer,
  type ReadPools,
  type ReadPoolsOptions,
} from '../../src/postgres/replicas/read-pools.ts'
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
    probeEveryMs: 20,
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
const whereFrom = async (from: ReadPools) => ((await from.read(isReplica)) ? 'replica' : 'primary')
const write = (n: number) => db.primary('notes').insert({ n })
const countOf = (n: number) => async (pool: Knex) => (await pool('notes').where({ n })).length

const untilUsed = (from: ReadPools) =>
  vi.waitFor(async () => expect(await whereFrom(from)).toBe('replica'), { timeout: 20_000, interval: 20 })

describe('a replica', () => {
  beforeEach(() => untilUsed(pools))

  test('serves reads, also while nothing is written', async () => {
    expect(await whereFrom(pools)).toBe('replica')
    expect(await whereFrom(pools)).toBe('replica')
  })

  test('that lags serves reads as long as it is allowed to, and none after that', async () => {
    const logs = recordLogs()
    const strict = open({ maxLagMs: 300, logger: logs })
    await strict.start()
    await untilUsed(strict)
    await db.pauseReplay()
    try {
      await write(1)
      expect(await pools.read(countOf(1))).toBe(0)
      await vi.waitFor(async () => expect(await whereFrom(strict)).toBe('primary'), 5_000)
      expect(await strict.read(countOf(1))).toBe(1)
      const messages = () => logs.records.map(({ message }) => message)
      await vi.waitFor(() => expect(messages()).toContain('replica not in use; reads go to the primary'), 5_000)
    } finally {
      await db.resumeReplay()
    }
    await untilUsed(strict)
  })

  test('whose answer is older than what the caller has seen is replaced by the primary, and stays in use', async () => {
    await db.pauseReplay()
    try {
      await write(2)
      const isTooOld = (count: number) => count < 1
      expect(await pools.read(countOf(2), { isTooOld })).toBe(1)
      expect(await whereFrom(pools)).toBe('replica')
    } finally {
      await db.resumeReplay()
    }
  })

  test('on which work fails is replaced by the primary for a while, unnoticed by the caller', async () => {
    const once = open()
    await once.start()
    await untilUsed(once)
    const asked: boolean[] = []
    const read = async (pool: Knex) => {
      asked.push(await isReplica(pool))
      if (asked.length === 1) await pool.raw('select * from nothing')
      return 'answered'
    }
    expect(await once.read(read)).toBe('answered')
    expect(asked).toEqual([true, false])
    expect(await whereFrom(once)).toBe('primary')
  })

  test('that fails between two pieces is replaced by the primary, which resumes after the last one', async () => {
    const once = open()
    await once.start()
    await untilUsed(once)
    async function* count(pool: Knex, _: AbortSignal | undefined, last = 0) {
      const from = (await isReplica(pool)) ? 'replica' : 'primary'
      for (let n = last + 1; n <= 4; n++) {
        if (from === 'replica' && n === 3) await pool.raw('select * from nothing')
        pieces.push(`${n} ${from}`)
        yield n
      }
    }
    const pieces: string[] = []
    const read: number[] = []
    for await (const piece of once.readPieces(count)) read.push(piece)
    expect(read).toEqual([1, 2, 3, 4])
    expect(pieces).toEqual(['1 replica', '2 replica', '3 primary', '4 primary'])
  })

  test('may refuse a request as the primary does', async () => {
    const asked: boolean[] = []
    const refuse = async (pool: Knex) => {
      asked.push(await isReplica(pool))
      throw waybillError('PAYMENT_NOT_FOUND', { value: 'x' })
    }
    await expect(pools.read(refuse)).rejects.toMatchObject({ reason: 'PAYMENT_NOT_FOUND' })
    expect(asked).toEqual([true])
  })

  test('ends its work when the signal of the caller fires', async () => {
    const controller = new AbortController()
    const reason = new Error('the caller hung up')
    const work = async (_: Knex, signal: AbortSignal | undefined) => {
      controller.abort(reason)
      signal?.throwIfAborted()
      return 'continued'
    }
    await expect(pools.read(work, { signal: controller.signal })).rejects.toBe(reason)
  })
})

test('the primary is not used as its own replica', async () => {
  const wrong = open({ replicas: [{ name: 'itself', connection: db.primaryConnection }] })
  await wrong.start()
  expect(await whereFrom(wrong)).toBe('primary')
})

test('the primary takes over in time from a replica that hangs, work in progress included', async () => {
  const impatient = open({ probeTimeoutMs: 200 })
  await impatient.start()
  await untilUsed(impatient)
  let begun = 0
  let release = () => {}
  const read = async (pool: Knex, signal: AbortSignal | undefined) => {
    begun += 1
    const here = await isReplica(pool)
    if (begun === 1) {
      release = await db.freezeReplica()
      await runCancellable(pool, pool.raw('select 1'), signal)
    }
    return here ? 'replica' : 'primary'
  }
  const stuck = impatient.read(read)
  expect(await stuck).toBe('primary')
  expect(await whereFrom(impatient)).toBe('primary')
  release()
  await untilUsed(impatient)
})

test('the primary takes over from a replica that dies; the replica is used again when it is back', async () => {
  await untilUsed(pools)
  let begun = 0
  const read = async (pool: Knex) => {
    begun += 1
    if (begun === 1) {
      void db.killReplica()
      await pool.raw('select pg_sleep(60)')
    }
    return (await isReplica(pool)) ? 'replica' : 'primary'
  }
  const dying = pools.read(read)
  expect(await dying).toBe('primary')
  expect(await whereFrom(pools)).toBe('primary')
  await db.startReplica()
  await untilUsed(pools)
})

test('a replica of another cluster serves nobody, whatever its position, and is logged', async () => {
  const another = await startReplicatedDatabase()
  const logs = recordLogs()
  const foreign = open({ replicas: [{ name: 'foreign', connection: another.replicaConnection }], logger: logs })
  try {
    const { position: ours } = await probeServer(db.primary)
    await another.primary.raw('create table notes (n int)')
    await vi.waitFor(
      async () => {
        // each switch skips the rest of a WAL segment
        await another.primary.raw('insert into notes values (0)')
        await another.primary.raw('select pg_switch_wal()')
        expect((await probeServer(another.replica())).position).toBeGreaterThan(ours + 2n ** 26n)
      },
      { timeout: 20_000, interval: 20 },
    )
    await foreign.start()
    expect(await whereFrom(foreign)).toBe('primary')
    const fault = 'it belongs to another database cluster'
    expect(logs.records.map(({ fields }) => fields)).toEqual([{ replica: 'foreign', fault }])
  } finally {
    await foreign.stop()
    await another.stop()
  }
}, 60_000)

test('a promoted replica serves nobody, and work on it is ended', async () => {
  await untilUsed(pools)
  const asked: boolean[] = []
  const read = async (pool: Knex, signal: AbortSignal | undefined) => {
    asked.push(await isReplica(pool))
    if (asked.length === 1) {
      await db.replica().raw('select pg_promote()')
      // from here on its data are no longer the primary's
      await runCancellable(pool, pool.raw('select pg_sleep(60)'), signal)
    }
    return 'answered'
  }
  expect(await pools.read(read)).toBe('answered')
  expect(asked).toEqual([true, false])
  expect(await whereFrom(pools)).toBe('primary')
  const anew = open()
  await anew.start()
  expect(await whereFrom(anew)).toBe('primary')
})
