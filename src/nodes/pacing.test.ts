import { describe, expect, it } from 'vitest'
import { Pacing } from './pacing.ts'

it('allows a second’s worth at once, and then requests at the rate', () => {
  let nowMs = 5_000
  const pacing = new Pacing(4, () => nowMs)
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
  const pacing = new Pacing(1, () => 0)
  pacing.take()
  pacing.take()
  expect(pacing.readyInMs()).toBe(2_000)
})

it('allows everything without a rate', () => {
  const pacing = new Pacing(undefined, () => 0)
  for (let taken = 0; taken < 100; taken++) pacing.take()
  expect(pacing.readyInMs()).toBe(0)
})

describe('a learned rate', () => {
  function refusedOnce() {
    const clock = { nowMs: 0 }
    const pacing = new Pacing(undefined, () => clock.nowMs)
    const refuse = () => pacing.noteRefusal({ request: pacing.take(), calls: 1, refused: 1, waitMs: 0 })
    pacing.noteServed(1)
    refuse()
    return { clock, pacing, refuse }
  }

  it('recovers while the URL is not asked', () => {
    const { clock, pacing } = refusedOnce()
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 12_499
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 30_000
    expect(pacing.rate()?.perSecond).toBeGreaterThan(10)
  })

  it('does not recover during the pause that a node asked for', () => {
    const { clock, pacing } = refusedOnce()
    pacing.noteRefusal({ request: pacing.take(), calls: 1, refused: 1, waitMs: 60_000 })
    clock.nowMs += 72_499
    expect(pacing.rate()?.perSecond).toBe(1)
    clock.nowMs += 1
    expect(pacing.rate()?.perSecond).toBe(1.25)
  })

  it('is tried a quarter higher, ever later while that is refused, and then is as before', () => {
    const { clock, pacing, refuse } = refusedOnce()
    for (const triedAfterMs of [12_500, 25_000, 50_000]) {
      clock.nowMs += triedAfterMs - 1
      expect(pacing.rate()?.perSecond).toBe(1)
      clock.nowMs += 1
      expect(pacing.rate()?.perSecond).toBe(1.25)
      pacing.noteServed(1)
      refuse()
      expect(pacing.rate()?.perSecond).toBe(1)
    }
  })

  it('that is refused although it was kept is cut by a fifth', () => {
    const { pacing, refuse } = refusedOnce()
    pacing.noteServed(1)
    refuse()
    expect(pacing.rate()?.perSecond).toBe(0.8)
  })
})

describe('what a node counts', () => {
  /** A node that has served one batch of 100 calls and has refused it twice since. */
  function refusedTwice() {
    const clock = { nowMs: 0 }
    const pacing = new Pacing(undefined, () => clock.nowMs)
    const refuse = (calls: number, refused = calls) =>
      pacing.noteRefusal({ request: pacing.take(calls), calls, refused, waitMs: 0 })
    pacing.noteServed(100)
    refuse(100)
    expect(pacing.maxCalls()).toBe(Number.POSITIVE_INFINITY)
    refuse(100)
    return { clock, pacing, refuse }
  }

  it('is calls where it serves half of a batch and refuses the whole again', () => {
    const { pacing, refuse } = refusedTwice()
    expect(pacing.maxCalls()).toBe(50)
    refuse(50)
    expect(pacing.maxCalls()).toBe(25)
    pacing.noteServed(25)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([50, 'REQUESTS'])
    refuse(50)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([25, 'CALLS'])
  })

  it('is not calls where it refuses everything for some seconds', () => {
    const { pacing, refuse } = refusedTwice()
    for (const calls of [50, 25, 12, 6, 3, 1, 1]) refuse(calls)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([1, 'REQUESTS'])
    pacing.noteServed(1)
    expect(pacing.maxCalls()).toBe(3)
    pacing.noteServed(3)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([Number.POSITIVE_INFINITY, 'REQUESTS'])
  })

  it('is not learned from small batches that it serves, nor by a refusal a minute later', () => {
    const { clock, pacing, refuse } = refusedTwice()
    pacing.noteServed(2)
    expect(pacing.maxCalls()).toBe(50)
    pacing.noteServed(50)
    expect(pacing.maxCalls()).toBe(100)
    clock.nowMs += 60_000
    refuse(100)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([Number.POSITIVE_INFINITY, 'REQUESTS'])
  })

  it('is calls where it refuses a part of a batch', () => {
    const { pacing, refuse } = refusedTwice()
    pacing.noteServed(15)
    refuse(50, 35)
    expect([pacing.maxCalls(), pacing.rate()?.unit]).toEqual([15, 'CALLS'])
  })
})
