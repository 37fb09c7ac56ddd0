/**
 * The whole table of node limits: back-fill and following end with every payment, at not much more calls than a client needs that knew the
 * limits.
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
  stage = await openLimitsStage(31_492, { blocks: 300, payments: 14 })
  unlimited = await stage.run({})
}, 300_000)
afterAll(() => stage?.stop())

describe('a node with limits', () => {
  it.each(NODE_PROFILES)('$name ($source) hides no payment', async ({ terms }) => {
    const outcome = await stage.run(terms)
    expect(outcome.found).toBe(outcome.made)
    const ideal = idealOf(unlimited, outcome, terms)
    expect(sumOf(outcome.sizes)).toBeLessThanOrEqual(MAX_OVERHEAD * ideal.calls)
    if (ideal.requests !== undefined) {
      expect(outcome.sizes.length).toBeLessThanOrEqual(MAX_OVERHEAD * ideal.requests)
    }
  })
})
