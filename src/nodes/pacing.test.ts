import { expect, it } from 'vitest'
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
