import { expect, it } from 'vitest'
import { describeRun, withBlocks } from './chain.ts'

it('joins consecutive blocks, also with those that were added before', () => {
  const runs = withBlocks([], [7, 8, 10])
  expect(runs.map(describeRun)).toEqual(['blocks 7 to 8', 'block 10'])
  expect(withBlocks(runs, [11, 12, 14]).map(describeRun)).toEqual(['blocks 7 to 8', 'blocks 10 to 12', 'block 14'])
  expect(withBlocks(runs, [])).toEqual(runs)
})
