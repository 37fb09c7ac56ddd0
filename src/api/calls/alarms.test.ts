import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAlarms } from './alarms.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it.each([1, 5, 39, 40, 1_000, 30_000])('rings once after %i ms', (delayMs) => {
  const setAlarm = createAlarms()
  setAlarm(60_000, () => {})
  vi.advanceTimersByTime(13)
  const ring = vi.fn<() => void>()
  setAlarm(delayMs, ring)
  vi.advanceTimersByTime(delayMs - 1)
  expect(ring).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(ring).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(100_000)
  expect(ring).toHaveBeenCalledTimes(1)
})

it.each([0, 10, 20, 50, 999])('does not ring when it was cancelled after %i ms', (afterMs) => {
  const ring = vi.fn<() => void>()
  const callOff = createAlarms()(1_000, ring)
  vi.advanceTimersByTime(afterMs)
  callOff()
  vi.advanceTimersByTime(10_000)
  expect(ring).not.toHaveBeenCalled()
  expect(vi.getTimerCount()).toBe(0)
})

it('makes one timer for all alarms that are cancelled soon', () => {
  const setAlarm = createAlarms()
  const callsOff = Array.from({ length: 100 }, () => setAlarm(30_000, () => {}))
  expect(vi.getTimerCount()).toBe(1)
  for (const callOff of callsOff) callOff()
  vi.advanceTimersByTime(20)
  expect(vi.getTimerCount()).toBe(0)
})

it('takes a delay that is longer than the longest timer', () => {
  const ring = vi.fn<() => void>()
  createAlarms()(2 ** 33, ring)
  vi.advanceTimersByTime(100)
  expect(ring).not.toHaveBeenCalled()
})
