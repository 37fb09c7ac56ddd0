import { describe, expect, it } from 'vitest'
import type { DeclaredLimits } from '../../nodes/url-limits.ts'
import { reckonTime } from './plan-backfill.ts'

const DAY = 86_400
const WORK = { calls: 2_000_000, requests: 1_000_000 }

/** Following a chain of 12 s takes 43,200 looks and two requests for each of 7,200 blocks a day: 57,600, of which 1.2 times is kept. */
function reckon(
  declared: DeclaredLimits,
  { unit = 'REQUESTS', batch = 100 }: { unit?: 'REQUESTS' | 'CALLS'; batch?: number } = {},
) {
  return reckonTime(WORK, {
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
  it.each<[string, ReturnType<typeof reckon>, ReturnType<typeof reckon>]>([
    ['by the rate', reckon({}), { boundBy: 'RATE', seconds: 40_000 }],
    ['by the rate of calls', reckon({}, { unit: 'CALLS' }), { boundBy: 'RATE', seconds: 80_000 }],
    [
      'by what following leaves of the daily budget',
      reckon({ requestsPerDay: 169_120 }),
      { requestsPerDay: 100_000, boundBy: 'BUDGET', seconds: 10 * DAY },
    ],
    [
      'by the rate, where the budget of a day is enough',
      reckon({ requestsPerDay: 5_000_000 }),
      { requestsPerDay: 4_930_880, boundBy: 'RATE', seconds: 40_000 },
    ],
    [
      'by a budget of which single calls use more',
      reckon({ requestsPerDay: 220_960 }, { batch: 1 }),
      { requestsPerDay: 100_000, boundBy: 'BUDGET', seconds: 10 * DAY },
    ],
    [
      'never, where following uses the budget',
      reckon({ requestsPerDay: 60_000 }),
      { requestsPerDay: 0, boundBy: 'BUDGET' },
    ],
  ])('is reckoned %s', (_, time, expected) => {
    expect(time).toEqual(expected)
  })
})
