import { expect, it } from 'vitest'
import { rereadRuns } from './reread-pending.ts'

const pending = (node: string, from: number, to: number, isWrong = false) => ({ node, from, to, isWrong })
const rangesOf = (runs: ReturnType<typeof rereadRuns>) =>
  runs.map(({ from, to, pending: of }) => `${from}-${to} ${of.map(({ node }) => node).join()}`)

it('reads blocks once that overlap or adjoin, those of wrong nodes first', () => {
  const queued = [pending('a', 1, 100), pending('b', 50, 60), pending('c', 80, 90, true), pending('b', 101, 120)]
  expect(rangesOf(rereadRuns([...queued, pending('a', 122, 130), pending('b', 125, 126, true)]))).toEqual([
    '80-90 c',
    '125-126 b',
    '1-120 a,b,b',
    '122-130 a',
  ])
  expect(rereadRuns([])).toEqual([])
})
