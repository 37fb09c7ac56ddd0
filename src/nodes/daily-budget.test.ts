import { describe, expect, it } from 'vitest'
import { createDailyBudget } from './daily-budget.ts'

const NOON = Date.parse('2026-11-22T12:00:00Z')
const HOUR_MS = 3_600_000
const TODAY = '2026-11-22'

function open(perDay: number) {
  const clock = { nowMs: NOON }
  return { clock, budget: createDailyBudget(perDay, () => clock.nowMs) }
}

describe('a daily budget', () => {
  it('goes on after a restart with what was stored that day', () => {
    const { budget } = open(100)
    budget.recall({ day: TODAY, amount: 100 })
    expect([budget.left(), budget.isUsedUp(), budget.readyInMs('LIVE')]).toEqual([0, true, 12 * HOUR_MS])
  })

  it('counts what other processes stored and what this one has not stored yet', () => {
    const { budget } = open(100)
    budget.take(5, 'LIVE')
    expect(budget.takeUnstored()).toEqual({ day: TODAY, amount: 5 })
    budget.take(2, 'LIVE')
    budget.recall({ day: TODAY, amount: 45 })
    expect(budget.left()).toBe(53)
    expect(budget.takeUnstored()).toEqual({ day: TODAY, amount: 2 })
    expect(budget.takeUnstored()).toBeUndefined()
  })

  it('keeps counting what could not be stored', () => {
    const { budget } = open(100)
    budget.take(5, 'BACKFILL')
    const use = budget.takeUnstored()
    budget.take(1, 'BACKFILL')
    if (use !== undefined) budget.giveBack(use)
    expect([budget.left(), budget.takeUnstored()]).toEqual([94, { day: TODAY, amount: 6 }])
  })

  it('begins anew at midnight UTC, and forgets what was stored of the day before', () => {
    const { budget, clock } = open(100)
    budget.take(100, 'LIVE')
    const use = budget.takeUnstored()
    clock.nowMs += 12 * HOUR_MS
    expect([budget.isUsedUp(), budget.left()]).toEqual([false, 100])
    budget.recall({ day: TODAY, amount: 100 })
    if (use !== undefined) budget.giveBack(use)
    expect([budget.left(), budget.takeUnstored()]).toEqual([100, undefined])
  })
})
