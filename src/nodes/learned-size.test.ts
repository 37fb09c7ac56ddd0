import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'

/** Asks a node with a limit for `total`, piece by piece. @param hint - what it says its limit is */
function read(
  total: number,
  limit: number,
  { first = 2_000, hint }: { first?: number; hint?: number | undefined } = {},
) {
  let known: LearnedSize = startSize(first, 100_000)
  let refused = 0
  let asked = 0
  for (let left = total; left > 0; ) {
    const size = Math.min(known.size, left)
    asked += 1
    if (size > limit) {
      refused += 1
      known = sizeAfterRefused(known, size, hint)
    } else {
      left -= size
      known = sizeAfterTaken(known, size)
    }
  }
  return { asked, refused, known }
}

describe('a size that is learned', () => {
  it.each<[string, limit: number, hint: number | undefined, mostRefused: number]>([
    ['is halved, then found between what was taken and what was refused', 10, undefined, 10],
    ['is the hint at once', 10, 10, 1],
    ['goes below a hint that is wrong', 10, 100, 7],
    ['doubles while nothing is refused', 100_000, undefined, 0],
  ])('%s', (_, limit, hint, most) => {
    const { refused, known } = read(limit * 40, limit, { hint })
    expect(refused).toBeLessThanOrEqual(most)
    expect(known.taken).toBeGreaterThanOrEqual(Math.min(0.9 * limit, 64_000))
  })

  it('never costs more than 1.3 times the questions of one who knew it, over a long way', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 200, max: 2_000 }), (limit, questions) => {
        const { asked } = read(limit * questions, limit)
        return asked <= 1.3 * questions
      }),
    )
  })

  it('is probed ever more seldom while probes are refused', () => {
    let known = startSize(8, 100)
    known = sizeAfterRefused(known, 8, 4)
    const probes: number[] = []
    for (let slot = 0; probes.length < 3; slot++) {
      if (known.size > 4) {
        probes.push(slot)
        known = sizeAfterRefused(known, known.size)
      } else known = sizeAfterTaken(known, known.size)
    }
    expect(probes.map((slot, at) => slot - (probes[at - 1] ?? -1))).toEqual([51, 101, 201])
  })

  it('grows by a quarter with each probe that is taken, ever faster', () => {
    let known = sizeAfterRefused(startSize(8, 100), 8, 4)
    for (let slot = 0; slot < 200; slot++) known = sizeAfterTaken(known, known.size)
    expect(known.taken).toBeGreaterThan(12)
  })

  it('shrinks where what was taken is refused later', () => {
    const taken = sizeAfterTaken(startSize(50, 100), 50)
    expect(sizeAfterRefused(taken, 50).size).toBe(25)
  })

  it('learns nothing from less than it allows', () => {
    const known = startSize(50, 100)
    expect(sizeAfterTaken(known, 3)).toBe(known)
  })
})
