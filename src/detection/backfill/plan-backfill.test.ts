import { describe, expect, it } from 'vitest'
import type { DeclaredLimits } from '../../nodes/url-limits.ts'
import { estimateTime } from './plan-backfill.ts'

const DAY = 86_400
const WORK = { calls: 2_000_000, requests: 1_000_000 }

/** Following a chain of 12 s takes 43,200 looks and two requests for each of 7,200 blocks a day: 57,600, of which 1.2 times is kept. */
function estimate(
  declared: DeclaredLimits,
  { unit = 'REQUESTS', batch = 100 }: { unit?: 'REQUESTS' | 'CALLS'; batch?: number } = {},
) {
  return estimateTime(WORK, {
    config: { blockTimeSeconds: 12 },
    requestsPerSecond: 25,
    limits: {
      declared,
      rate: () => ({ perSecond: 25, unit, isDeclared: true }),
      batchSize: () => batch,
    },
  })
}

describe('the time of a back-fill', () => {
  it.each<[string, ReturnType<typeof estimate>, ReturnType<typeof estimate>]>([
    ['by the rate', estimate({}), { boundBy: 'RATE', seconds: 40_000 }],
    ['by the rate of calls', estimate({}, { unit: 'CALLS' }), { boundBy: 'RATE', seconds: 80_000 }],
    [
      'by what following leaves of the daily budget',
      estimate({ requestsPerDay: 169_120 }),
      { requestsPerDay: 100_000, boundBy: 'BUDGET', seconds: 10 * DAY },
    ],
    [
      'by the rate, where the budget of a day is enough',
      estimate({ requestsPerDay: 5_000_000 }),
      { requestsPerDay: 4_930_880, boundBy: 'RATE', seconds: 40_000 },
    ],
    [
      'by a budget of which single calls use more',
      estimate({ requestsPerDay: 220_960 }, { batch: 1 }),
      { requestsPerDay: 100_000, boundBy: 'BUDGET', seconds: 10 * DAY },
    ],
    [
      'never, where following uses the budget',
      estimate({ requestsPerDay: 60_000 }),
      { requestsPerDay: 0, boundBy: 'BUDGET' },
    ],
  ])('is estimated %s', (_, time, expected) => {
    expect(time).toEqual(expected)
  })
})
