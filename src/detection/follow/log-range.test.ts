import { describe, expect, it } from 'vitest'
import { RpcError } from '../../nodes/rpc-error.ts'
import { hasTooManyLogs, isRangeTooWide, rangeAfterRead, rangeAfterTooMuch } from './log-range.ts'

describe('a range of logs', () => {
  it.each<[string, range: number, logs: number, tookMs: number, next: number]>([
    ['grows while it has few logs', 2_000, 3_999, 100, 4_000],
    ['grows up to the widest', 60_000, 0, 100, 100_000],
    ['stays where it has many logs', 2_000, 4_000, 100, 2_000],
    ['shrinks where it took long, however few logs it has', 2_000, 0, 10_001, 1_000],
    ['may take ten seconds', 2_000, 0, 10_000, 4_000],
    ['never shrinks to nothing', 1, 0, 60_000, 1],
  ])('%s', (_, range, logs, tookMs, next) => {
    expect(rangeAfterRead(range, { logs, tookMs })).toBe(next)
  })

  it.each<[blocks: number, next: number]>([
    [2_000, 1_000],
    [3, 1],
    [1, 1],
  ])('of %i blocks that was too much becomes %i', (blocks, next) => {
    expect(rangeAfterTooMuch(blocks)).toBe(next)
  })

  it.each<[string, error: unknown, blocks: number, isTooWide: boolean]>([
    ['the node says so', new RpcError('TOO_LARGE', 'range too wide'), 2, true],
    ['the node does not answer in time', new RpcError('TIMEOUT', 'slow'), 2, true],
    ['not where one block alone is too much', new RpcError('TOO_LARGE', 'range too wide'), 1, false],
    ['not where the node is unreachable', new RpcError('UNREACHABLE', 'gone'), 2_000, false],
    ['not for errors of ours', new Error('oops'), 2_000, false],
  ])('is too wide where %s', (_, error, blocks, isTooWide) => {
    expect(isRangeTooWide(error, blocks)).toBe(isTooWide)
  })

  it.each<[logs: number, blocks: number, isTooMuch: boolean]>([
    [20_000, 2, false],
    [20_001, 2, true],
    [20_001, 1, false],
  ])('with %i logs in %i blocks is too much: %o', (logs, blocks, isTooMuch) => {
    expect(hasTooManyLogs(logs, blocks)).toBe(isTooMuch)
  })
})
