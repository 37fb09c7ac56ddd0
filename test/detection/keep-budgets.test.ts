/** What was spent of nodes' daily budgets outlives the process, and is shared by all processes of a database. */
import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createBudgetKeeper } from '../../src/detection/limits/keep-budgets.ts'
import type { DeclaredLimits } from '../../src/nodes/node-limits.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { recordLogs, silentLogger } from '../support/logs.ts'

const URL_OF_NODE = 'https://rpc.example/v3/s3cret-key'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  await database.knex('node_limits').delete()
})
afterAll(() => database?.drop())

/** A process with one chain of one URL. */
function startProcess(declared: DeclaredLimits = {}, { logger = silentLogger } = {}) {
  const clock = { nowMs: Date.parse('2026-11-22T12:00:00Z') }
  const chain = { name: 'BASE', chainId: 8453, rpcUrls: [URL_OF_NODE], nodeLimits: { [URL_OF_NODE]: declared } }
  const limits = createNodeLimits([chain], { clock: () => clock.nowMs })
  const keeper = createBudgetKeeper({ knex: database.knex, chains: [chain], limits, logger })
  return { clock, keeper, limits, ofUrl: limits.of(URL_OF_NODE) }
}

it('spends one daily budget in all processes, also after a restart', async () => {
  const [first, second] = [startProcess({ requestsPerDay: 10 }), startProcess({ requestsPerDay: 10 })]
  for (let sent = 0; sent < 4; sent++) first.ofUrl.take(1)
  for (let sent = 0; sent < 6; sent++) second.ofUrl.take(1)
  await Promise.all([first.keeper.store(), second.keeper.store()])
  const third = startProcess({ requestsPerDay: 10 })
  await Promise.all([first.keeper.store(), third.keeper.store()])
  const rows = await database.knex('node_limits')
  expect(rows).toMatchObject([{ chain_id: 'eip155:8453', host: 'rpc.example' }])
  expect(inspect(rows)).not.toContain('s3cret')
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
    await keeper.store()
    await keeper.store()
  } finally {
    await database.knex.raw('alter table gone rename to node_limits')
  }
  expect(logger.records).toMatchObject([{ level: 'warn' }])
  await keeper.store()
  expect(await database.knex('node_limits').pluck('used')).toEqual([1n])
})
