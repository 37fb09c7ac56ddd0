import { describe, expect, it } from 'vitest'
import { createBackfillMeter, describeDuration, describeRate } from './backfill-progress.ts'

const span = (from: number, next: number, until: number) => ({ addresses: [], from, next, until })

function begin() {
  let atMs = 0
  const progress = createBackfillMeter(() => atMs)
  const at = (seconds: number, ...spans: ReturnType<typeof span>[]) => {
    atMs = seconds * 1_000
    progress.note(spans)
    return progress.progress()
  }
  return { at }
}

describe('the progress of a back-fill', () => {
  it('has a rate and a time once two scans differ, and ends', () => {
    const { at } = begin()
    expect(at(0, span(1, 1, 1_000))).toEqual({ done: 0, left: 1_000 })
    const later = at(2, span(1, 201, 1_000))
    expect(later).toEqual({ done: 200, left: 800, blocksPerSecond: 100, secondsLeft: 8 })
    expect(at(10)).toBeUndefined()
  })

  it('goes by the last minute', () => {
    const { at } = begin()
    at(0, span(1, 1, 10_000))
    at(1, span(1, 5_001, 10_000))
    expect(at(61, span(1, 5_061, 10_000))?.blocksPerSecond).toBe(1)
  })

  it('has no time left to tell where nothing moves', () => {
    const { at } = begin()
    at(0, span(1, 1, 10))
    expect(at(5, span(1, 1, 10))).toMatchObject({ blocksPerSecond: 0, secondsLeft: undefined })
  })

  it('begins to measure anew when a span is added', () => {
    const { at } = begin()
    at(0, span(1, 1, 10))
    at(1, span(1, 6, 10))
    expect(at(2, span(1, 6, 10), span(20, 20, 29))).toMatchObject({
      left: 15,
      blocksPerSecond: undefined,
    })
  })

  it('has a decimal below ten', () => {
    expect([5_310.4, 0.34].map(describeRate)).toEqual(['5,310', '0.3'])
  })
})

it.each([
  [0.2, '1 s'],
  [59, '59 s'],
  [61, '2 min'],
  [3_600, '1 h 0 min'],
  [11_400, '3 h 10 min'],
  [200_000, '2 d 8 h'],
])('tells %d seconds as %s', (seconds, text) => {
  expect(describeDuration(seconds)).toBe(text)
})
