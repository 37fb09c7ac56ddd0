import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Detection, DetectionOptions } from '../../src/detection/detection.ts'
import { listChains } from '../../src/detection/report/list-chains.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { configOf, detect } from '../support/detection.ts'
import { PATIENCE } from '../support/patience.ts'

const NOW = new Date('2026-03-01T12:00:00Z')

let chain: TestChain
let database: TestDatabase
let knex: Knex
let running: Detection[]

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_440, automine: false, genesisTimeSec: NOW.getTime() / 1_000 - 3_600 })
})
afterAll(() => chain?.stop())
beforeEach(async () => {
  database = await createTestDatabase()
  knex = database.knex
  running = []
})
afterEach(async () => {
  await Promise.all(running.map((each) => each.stop()))
  await database.drop()
})

const config = () => configOf(chain, 'BASE')

function newProcess(options: Partial<DetectionOptions> = {}): Detection {
  const detection = detect(knex, [config()], { clock: () => NOW, ...options })
  running.push(detection)
  return detection
}

async function listed() {
  const [only] = await listChains(knex, [config()], { now: NOW })
  if (only === undefined) throw new Error('no chain is listed')
  return only
}

it('a chain that no process has followed yet is listed with what is known: its name', async () => {
  expect(await listed()).toMatchObject({ network: 'BASE', chainId: 'eip155:31440', state: 'NOT_STARTED', nodes: [] })
})

it('any process tells how far a chain is read, and the reorgs, those that earlier processes saw included', async () => {
  const first = newProcess({ leaseTtlMs: 200 })
  await chain.mine({ blocks: 5 })
  await first.scanOnce()
  await chain.reorg(2)
  await chain.mine()
  await first.scanOnce()
  const head = Number((await chain.client.head()).number)
  expect(await listed()).toMatchObject({
    state: 'FOLLOWING',
    heights: { scanned: head, head, final: head - 3 },
    lag: { blocks: 0 },
    reorgs: { count: 1, deepest: 2, lastAt: NOW.toISOString() },
    follower: { process: expect.stringMatching(/\/\d+$/), since: NOW, reportedAt: NOW, isStale: false },
  })
  // The lease of the first ends.
  await expect.poll(async () => (await listed()).state, PATIENCE).toBe('NOT_FOLLOWED')
  const second = newProcess()
  await second.scanOnce()
  await chain.reorg(1)
  await second.scanOnce()
  expect((await listed()).reorgs).toMatchObject({ count: 2, deepest: 2 })
})

it('a process that stops leaves a last report', async () => {
  const detection = newProcess()
  detection.start()
  await expect.poll(async () => (await listed()).heights !== undefined, PATIENCE).toBe(true)
  await detection.stop()
  expect(await listed()).toMatchObject({ state: 'NOT_FOLLOWED', follower: { reportedAt: NOW } })
})

it('a chain that was stopped says why', async () => {
  const detection = newProcess()
  await chain.mine({ blocks: 8 })
  await detection.scanOnce()
  await chain.reorg(6)
  await chain.mine()
  await detection.scanOnce()
  expect(await listed()).toMatchObject({ state: 'STOPPED', alarm: expect.stringContaining('final') })
})
