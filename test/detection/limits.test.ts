/**
 * Nodes as they are sold: whatever a node limits, back-fill and following end with every payment, at not much more calls than a client needs
 * that knew the limits. test/detection/limits.long.test.ts has the whole table.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type LimitsOutcome,
  type LimitsStage,
  MAX_OVERHEAD,
  openLimitsStage,
  overheadOf,
} from '../support/chains/limits-stage.ts'
import { NODE_PROFILES } from '../support/chains/node-profiles.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let database: TestDatabase
let stage: LimitsStage
let unlimited: LimitsOutcome

beforeAll(async () => {
  database = await createTestDatabase()
  stage = await openLimitsStage(database.knex, 31_491, { blocks: 100, payments: 6 })
  unlimited = await stage.run({})
})
afterAll(async () => {
  await stage?.stop()
  await database?.drop()
})

const CHOSEN = new Set([
  'dRPC, each item',
  'QuickNode, items count',
  '429 without Retry-After',
  'no batches, a rate',
  'ids as strings',
])
const PROFILES = NODE_PROFILES.filter(({ name }) => CHOSEN.has(name))

describe('a node with limits', () => {
  it.each(PROFILES)('$name ($source) hides no payment', async ({ terms }) => {
    const outcome = await stage.run(terms)
    expect(outcome.found).toBe(outcome.made)
    expect(overheadOf(unlimited, outcome, terms)).toBeLessThanOrEqual(MAX_OVERHEAD)
  })
})
