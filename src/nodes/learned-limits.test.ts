import { describe, expect, it } from 'vitest'
import {
  type LogRange,
  rangeFromStored,
  readLearnedLimits,
  sizeFromStored,
  storedRangeOf,
  storedSizeOf,
} from './learned-limits.ts'
import { sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'

const START = startSize(2_000, 100_000)
/** A node that takes 10 blocks, and said so. */
const LEARNED = { ...sizeAfterTaken(sizeAfterRefused(START, 2_000, 10), 10), successes: 0 }
const START_RANGE: LogRange = { blocks: START, denseBlocks: Number.POSITIVE_INFINITY }
const overJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

describe('a size that is kept over a restart', () => {
  it('is asked for again, and a larger one only after as many successes as before', () => {
    let known = sizeFromStored(START, overJson(storedSizeOf(LEARNED)))
    for (let asked = 1; asked <= LEARNED.probeAfter; asked++) {
      expect(known.size).toBe(10)
      known = sizeAfterTaken(known, 10)
    }
    expect(known.size).toBe(12)
  })

  it('is what was taken, while a larger one is only being tried', () => {
    expect(storedSizeOf({ ...LEARNED, size: 12, isProbing: true })?.size).toBe(10)
  })

  it('is no larger than the chains file allows now', () => {
    expect(sizeFromStored(startSize(3, 3), storedSizeOf(LEARNED))).toMatchObject({ size: 3, taken: 3, max: 3 })
  })

  it('is that of the start where nothing was asked', () => {
    expect(storedSizeOf(START)).toBeUndefined()
    expect(sizeFromStored(START, undefined)).toBe(START)
  })
})

describe('a range that is kept over a restart', () => {
  it.each<[string, LogRange]>([
    ['of blocks', { blocks: LEARNED, denseBlocks: Number.POSITIVE_INFINITY }],
    ['of blocks with many logs', { blocks: LEARNED, denseBlocks: 4, mostLogs: 10_000 }],
  ])('%s', (_, range) => {
    expect(rangeFromStored(START_RANGE, overJson(storedRangeOf(range)))).toEqual({ mostLogs: undefined, ...range })
  })

  it('is that before a refusal which may have been for the logs', () => {
    const range = { ...START_RANGE, blocks: sizeAfterRefused(LEARNED, 10), before: LEARNED }
    expect(storedRangeOf(range).blocks?.size).toBe(10)
  })
})

describe('what is read of the stored JSON', () => {
  const size = { size: 10, taken: 10, refused: 11, probeAfter: 50 }
  const rate = { perSecond: 2.5, unit: 'CALLS', growAfterMs: 20_000 }

  it('is what was stored', () => {
    const learned = { rate, batch: size, logRange: { blocks: size, denseBlocks: 5, mostLogs: 100 } }
    expect(readLearnedLimits(overJson(learned))).toEqual(learned)
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['a text', 'ten'],
    ['a list', [rate]],
    ['a rate of 0', { rate: { ...rate, perSecond: 0 } }],
    ['a negative rate', { rate: { ...rate, perSecond: -1 } }],
    ['a rate as text', { rate: { ...rate, perSecond: '5' } }],
    ['an unknown unit', { rate: { ...rate, unit: 'BYTES' } }],
    ['a rate without its time', { rate: { ...rate, growAfterMs: undefined } }],
    ['a size of 0', { batch: { ...size, size: 0 } }],
    ['a size with a fraction', { batch: { ...size, size: 1.5 } }],
    ['a size that was refused at 0', { batch: { ...size, refused: 0 } }],
    ['a size without its tries', { batch: { ...size, probeAfter: null } }],
    ['no size at all', { batch: 7 }],
  ])('is nothing where it is %s', (_, json) => {
    expect(readLearnedLimits(overJson(json))).toEqual({})
  })

  it.each<[string, unknown]>([
    ['blocks', { blocks: 'many' }],
    ['negative', { denseBlocks: -3 }],
    ['endless', { denseBlocks: null, mostLogs: 0 }],
  ])('is no range where its numbers are %s', (_, logRange) => {
    expect(readLearnedLimits({ logRange })).toEqual({ logRange: {} })
  })
})
