import { describe, expect, it } from 'vitest'
import { acceptableReasons, unmatchedReasons } from '../match/match-event.ts'
import { explainUnmatched } from './explain-unmatched.ts'

describe.each(unmatchedReasons)('%s', (reason) => {
  const { explanation, remedy, acceptableAs } = explainUnmatched(reason, {})

  it('says in sentences what happened and what to do', () => {
    for (const text of [explanation, remedy]) expect(text).toMatch(/^[A-Z].{20,}\.$/)
  })

  it('says how to accept it exactly where `unmatched accept` can take it', () => {
    const known = Object.entries(acceptableReasons).find(([, reasons]) => reasons.includes(reason))
    expect(acceptableAs).toBe(known?.[0])
    expect(/accept (?:the|this) event|event as a/.test(remedy)).toBe(acceptableAs !== undefined)
  })
})

it.each([
  [{ rateProblem: 'NO_PATH' }, /no conversion path/],
  [{ rateProblem: 'NO_RATE' }, /had no rate/],
  [{ rateProblem: 'TOO_LITTLE', expectedAmount: '98', amount: '50' }, /50 base units instead of 98/],
])('RATE_OFF with %j names its problem', (event, words) => {
  expect(explainUnmatched('RATE_OFF', event).explanation).toMatch(words)
})

it('STALE_RATE tells when the feed was last updated', () => {
  const { explanation } = explainUnmatched('STALE_RATE', { rateUpdatedAtSec: '1772366400', maxRateAgeSeconds: '3960' })
  expect(explanation).toContain('2026-03-01T12:00:00.000Z; 3960 seconds are allowed')
})
