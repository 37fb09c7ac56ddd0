/** What is known of nodes' limits outlives the process, and is shared by all processes of a database. */
import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createLimitsKeeper } from '../../src/detection/limits/keep-node-limits.ts'
import { startSize } from '../../src/nodes/learned-size.ts'
import type { DeclaredLimits } from '../../src/nodes/node-limits.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { acquireLease } from '../../src/store/leases-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { recordLogs, silentLogger } from '../support/logs.ts'

const URL_OF_NODE = 'https://rpc.example/v3/s3cret-key'
const LEASE = { name: 'follow:eip155:8453', owner: 'one' }

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  await database.knex('node_limits').delete()
  await database.knex('leases').delete()
})
afterAll(() => database?.drop())

/** A process with one chain of one URL. */
function startProcess(declared: DeclaredLimits = {}, { owner = LEASE.owner, logger = silentLogger } = {}) {
  const clock = { nowMs: Date.parse('2026-11-22T12:00:00Z') }
  const chain = { name: 'BASE', chainId: 8453, rpcUrls: [URL_OF_NODE], nodeLimits: { [URL_OF_NODE]: declared } }
  const limits = createNodeLimits([chain], { clock: () => clock.nowMs })
  const keeper = createLimitsKeeper({ knex: database.knex, chains: [chain], limits, logger, owner })
  return { clock, keeper, limits, ofUrl: limits.of(URL_OF_NODE) }
}

function learnFrom({ ofUrl }: ReturnType<typeof startProcess>): void {
  for (let sent = 0; sent < 5; sent++) {
    ofUrl.take(1)
    ofUrl.noteServed(1)
  }
  ofUrl.noteRateRefusal({ request: ofUrl.take(1), calls: 1, refused: 1, isQuota: false })
  ofUrl.batchRefused(100, 3)
}

const learnedOf = ({ ofUrl }: ReturnType<typeof startProcess>) => [ofUrl.rate()?.perSecond, ofUrl.batchSize()]

it('begins after a restart with the rate and the batches that were learned', async () => {
  const first = startProcess()
  await acquireLease(database.knex, LEASE, 60_000)
  learnFrom(first)
  await first.keeper.store()
  const second = startProcess()
  await second.keeper.recall()
  expect([learnedOf(first), learnedOf(second)]).toEqual([
    [5, 3],
    [5, 3],
  ])
  const rows = await database.knex('node_limits')
  expect(rows).toMatchObject([{ chain_id: 'eip155:8453', host: 'rpc.example' }])
  expect(inspect(rows)).not.toContain('s3cret')
})

it.each<[string, owner: string, DeclaredLimits, learned: [number | undefined, number]]>([
  ['a process without the lease wrote it', 'two', {}, [undefined, 100]],
  ['the chains file states other limits since', 'one', { maxBatch: 50 }, [undefined, 50]],
])('begins anew where %s', async (_, owner, declared, learned) => {
  const first = startProcess({}, { owner })
  await acquireLease(database.knex, LEASE, 60_000)
  learnFrom(first)
  await first.keeper.store()
  const second = startProcess(declared)
  await second.keeper.recall()
  expect(learnedOf(second)).toEqual(learned)
})

it.each(['{}', '[]', '"ten"', '{"rate":{"perSecond":0},"learnedUnder":"[1,null,null,null]"}'])(
  'begins anew where another version wrote %s',
  async (learned) => {
    const first = startProcess()
    await acquireLease(database.knex, LEASE, 60_000)
    learnFrom(first)
    await first.keeper.store()
    await database.knex('node_limits').update({ learned })
    const second = startProcess()
    await second.keeper.recall()
    expect(learnedOf(second)).toEqual([undefined, 100])
  },
)

it('begins with the declared rate where the learned one had recovered', async () => {
  const declared = { requestsPerSecond: 10 }
  const { clock, ofUrl, keeper } = startProcess(declared)
  await acquireLease(database.knex, LEASE, 60_000)
  ofUrl.noteServed(1)
  ofUrl.noteRateRefusal({ request: ofUrl.take(1), calls: 1, refused: 1, isQuota: false })
  await keeper.store()
  clock.nowMs += 60_000
  expect(ofUrl.rate()?.perSecond).toBe(10)
  await keeper.store()
  const second = startProcess(declared)
  await second.keeper.recall()
  expect(second.ofUrl.rate()).toMatchObject({ perSecond: 10, isDeclared: true })
})

it('takes over the newest rate, though the one that it read first has grown meanwhile', () => {
  const clock = { nowMs: 0 }
  const ofUrl = createNodeLimits([], { clock: () => clock.nowMs }).of(URL_OF_NODE)
  const rate = (perMinute: number) =>
    ({ perMinute: { ...startSize(perMinute, 600_000), refused: perMinute + 1 }, unit: 'REQUESTS' }) as const
  ofUrl.recall({ rate: rate(300) })
  clock.nowMs = 20_000
  expect(ofUrl.rate()?.perSecond).toBeGreaterThan(5)
  ofUrl.recall({ rate: rate(180) })
  expect(ofUrl.rate()?.perSecond).toBe(3)
})

it('prefers what it has learned itself', async () => {
  const [first, second] = [startProcess(), startProcess()]
  await acquireLease(database.knex, LEASE, 60_000)
  learnFrom(first)
  await first.keeper.store()
  second.ofUrl.batchRefused(100, 7)
  await second.keeper.recall()
  expect(learnedOf(second)).toEqual([undefined, 7])
})

it('spends one daily budget in all processes, also after a restart', async () => {
  const [first, second] = [startProcess({ requestsPerDay: 10 }), startProcess({ requestsPerDay: 10 }, { owner: 'two' })]
  for (let sent = 0; sent < 4; sent++) first.ofUrl.take(1)
  for (let sent = 0; sent < 6; sent++) second.ofUrl.take(1)
  await Promise.all([first.keeper.store(), second.keeper.store()])
  const third = startProcess({ requestsPerDay: 10 })
  await Promise.all([first.keeper.store(), third.keeper.recall('eip155:8453')])
  for (const { limits } of [first, third]) {
    const [figures] = limits.figures()
    expect(figures).toMatchObject({ budgetLeft: 0, pausedUntilMs: Date.parse('2026-11-23T00:00:00Z') })
  }
  await expect(third.ofUrl.slot(1, { maxWaitMs: 60_000 })).rejects.toThrow(
    'rpc.example: its budget of 10 requests a day is used up: it is asked again at 2026-11-23 00:00 UTC',
  )
})

it('works without a table, says so once, and stores later what it could not', async () => {
  const logger = recordLogs()
  const { keeper, ofUrl } = startProcess({ requestsPerDay: 10 }, { logger })
  ofUrl.take(1)
  await database.knex.raw('alter table node_limits rename to gone')
  try {
    await keeper.recall()
    await keeper.store()
  } finally {
    await database.knex.raw('alter table gone rename to node_limits')
  }
  expect(logger.records).toMatchObject([{ level: 'warn' }])
  await keeper.store()
  expect(await database.knex('node_limits').pluck('used')).toEqual([1n])
})
