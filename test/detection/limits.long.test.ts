/**
 * The whole table of node limits: back-fill and following end with every payment, at not much more calls than a client needs that knew the
 * limits.
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
  stage = await openLimitsStage(database.knex, 31_492, { blocks: 300, payments: 14 })
  unlimited = await stage.run({})
}, 300_000)
afterAll(async () => {
  await stage?.stop()
  await database?.drop()
})

describe('a node with limits', () => {
  it.each(NODE_PROFILES)('$name ($source) hides no payment', async ({ terms }) => {
    const outcome = await stage.run(terms)
    expect(outcome.found).toBe(outcome.made)
    expect(overheadOf(unlimited, outcome, terms)).toBeLessThanOrEqual(MAX_OVERHEAD)
  })
})
