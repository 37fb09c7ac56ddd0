import { describe, expect, it } from 'vitest'
import { createPacing } from './pacing.ts'

it('allows a second’s worth at once, and then requests at the rate', () => {
  let nowMs = 5_000
  const pacing = createPacing(4, () => nowMs)
  for (let taken = 0; taken < 4; taken++) {
    expect(pacing.readyInMs()).toBe(0)
    pacing.take()
  }
  expect(pacing.readyInMs()).toBe(250)
  nowMs += 100
  expect(pacing.readyInMs()).toBe(150)
  nowMs += 150
  expect(pacing.readyInMs()).toBe(0)
  nowMs += 60_000
  for (let taken = 0; taken < 4; taken++) pacing.take()
  expect(pacing.readyInMs()).toBe(250)
})

it('counts requests that were made too early', () => {
  const pacing = createPacing(1, () => 0)
  pacing.take()
  pacing.take()
  expect(pacing.readyInMs()).toBe(2_000)
})

it('allows everything without a rate', () => {
  const pacing = createPacing(undefined, () => 0)
  for (let taken = 0; taken < 100; taken++) pacing.take()
  expect(pacing.readyInMs()).toBe(0)
})

describe('a learned rate', () => {
  function refusedOnce() {
    const clock = { nowMs: 0 }
    const pacing = createPacing(undefined, () => clock.nowMs)
    const refuse = () => pacing.noteRefusal({ request: pacing.take(), calls: 1, refused: 1, waitMs: 0 })
    pacing.noteServed(1)
    refuse()
    return { clock, pacing, refuse }
  }

  it('recovers while the URL is not asked', () => {
    const { clock, pacing } = refusedOnce()
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 2_499
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 15_001
    expect(pacing.rate()?.perSecond).toBeGreaterThan(10)
  })

  it('does not recover during the pause that a node asked for', () => {
    const { clock, pacing } = refusedOnce()
    pacing.noteRefusal({ request: pacing.take(), calls: 1, refused: 1, waitMs: 60_000 })
    clock.nowMs += 62_499
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 1
    expect(pacing.rate()?.perSecond).toBe(1.5)
  })

  it('is raised later and by less after each refused try, and as at first when none was refused for a minute', () => {
    const { clock, pacing, refuse } = refusedOnce()
    for (const growAfterMs of [10_000, 20_000, 40_000]) {
      clock.nowMs += (pacing.learned()?.growAfterMs ?? 0) + 1
      pacing.noteServed(1)
      refuse()
      expect(pacing.learned()).toMatchObject({ growAfterMs })
    }
    const low = pacing.rate()?.perSecond ?? 0
    clock.nowMs += 40_000
    expect(pacing.rate()?.perSecond).toBeCloseTo(low * 1.1)
    clock.nowMs += 60_000
    expect(pacing.rate()?.perSecond).toBeGreaterThan(10)
    expect(pacing.learned()).toMatchObject({ growAfterMs: 2_500 })
  })
})
