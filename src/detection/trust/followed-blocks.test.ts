import { expect, it } from 'vitest'
import { createFollowedBlocks } from './trusted-nodes.ts'

it('remembers as many blocks as a fast chain makes before one is final', () => {
  const followed = createFollowedBlocks()
  // Arbitrum: four blocks a second, final after about 20 minutes.
  for (let number = 1; number <= 4_800; number++) followed.note(number, { hash: `0x${number}`, node: 0, logs: [] })
  expect(followed.lowestOf(0)).toBe(1)
  expect(followed.upTo(2).map(([number]) => number)).toEqual([1, 2])
})
