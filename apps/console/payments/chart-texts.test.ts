import { expect, it } from 'vitest'
import { ticksFor, tickText } from './chart-texts.ts'

it.each([
  [0, 0.01, [0, 0.01]],
  [571_901, 0.01, [0, 200_000, 400_000, 600_000]],
  [200, 1, [0, 50, 100, 150, 200]],
  [1, 1, [0, 1]],
  [3, 1, [0, 1, 2, 3]],
  [0.3, 0.01, [0, 0.1, 0.2, 0.3]],
])('has round ticks up to %d', (highest, unit, ticks) => {
  const found = ticksFor(highest, unit)
  expect(found).toHaveLength(ticks.length)
  for (const [index, tick] of ticks.entries()) expect(found[index]).toBeCloseTo(tick)
})

it('writes a tick short', () => {
  expect(tickText(200_000, 'usd')).toBe('$200K')
  expect(tickText(1500, 'count')).toBe('1.5K')
})
