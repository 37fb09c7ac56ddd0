/**
 * Nodes as they are sold: whatever a node limits, back-fill and following end with every payment, at not much more calls than a client needs
 * that knew the limits. test/long/limits.test.ts has the whole table.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  idealOf,
  type LimitsOutcome,
  type LimitsStage,
  MAX_OVERHEAD,
  openLimitsStage,
  sumOf,
} from '../support/chains/limits-stage.ts'
import { NODE_PROFILES } from '../support/chains/node-profiles.ts'

let stage: LimitsStage
let unlimited: LimitsOutcome

beforeAll(async () => {
  stage = await openLimitsStage(31_491, { blocks: 100, payments: 6 })
  unlimited = await stage.run({})
})
afterAll(() => stage?.stop())

const CHOSEN = new Set([
  'dRPC, each item',
  'QuickNode, items count',
  '429 without Retry-After',
  'no batches, a rate',
  'ids as strings',
])
const PROFILES = NODE_PROFILES.filter(({ name }) => CHOSEN.has(name))

describe('a node with limits', () => {
  it('is not asked again after a restart what it refused before', async () => {
    const terms = NODE_PROFILES.find(({ name }) => name === 'unknown words')?.terms ?? {}
    const before = await stage.run(terms)
    const after = await stage.run(terms, { keepsLimits: true })
    expect(before.refused).toBeGreaterThan(0)
    expect([after.refused, after.found]).toEqual([0, after.made])
  })

  it.each(PROFILES)('$name ($source) hides no payment', async ({ terms }) => {
    const outcome = await stage.run(terms)
    expect(outcome.found).toBe(outcome.made)
    const ideal = idealOf(unlimited, outcome, terms)
    expect(sumOf(outcome.sizes)).toBeLessThanOrEqual(MAX_OVERHEAD * ideal.calls)
    if (ideal.requests !== undefined) {
      expect(outcome.sizes.length).toBeLessThanOrEqual(MAX_OVERHEAD * ideal.requests)
    }
  })
})
