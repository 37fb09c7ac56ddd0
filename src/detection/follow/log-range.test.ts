import { describe, expect, it } from 'vitest'
import type { LogRange } from '../../nodes/node-limits.ts'
import { RpcError, type RpcErrorKind, type RpcRefusal } from '../../nodes/rpc-error.ts'
import {
  hasTooManyLogs,
  isRangeTooWide,
  rangeAfterRead,
  rangeAfterRefused,
  startLogRange,
  widthOf,
} from './read-final-blocks.ts'

const refused = (message: string, kind: RpcErrorKind = 'TOO_LARGE', refusal: RpcRefusal = { message }) =>
  new RpcError(kind, 'eth_getLogs failed', { refusal })
const read = (known: LogRange, logs = 0, tookMs = 100) =>
  rangeAfterRead(known, { blocks: widthOf(known), logs, tookMs })
/** @param density - logs in a block */
const readOften = (known: LogRange, times: number, density = 0) =>
  Array.from({ length: times }).reduce<LogRange>((range) => read(range, density * widthOf(range)), known)

describe('a range of logs', () => {
  it.each<[string, logs: number, tookMs: number, next: number]>([
    ['doubles while it has few logs', 3_999, 100, 4_000],
    ['stays where it has many logs', 4_000, 100, 2_000],
    ['shrinks where it took long, however few logs it has', 0, 10_001, 1_000],
    ['may take ten seconds', 0, 10_000, 4_000],
  ])('%s', (_, logs, tookMs, next) => {
    expect(widthOf(read(startLogRange(), logs, tookMs))).toBe(next)
  })

  it('grows up to the widest, or to what the chains file says', () => {
    expect(widthOf(readOften(startLogRange(), 20))).toBe(100_000)
    expect(widthOf(readOften(startLogRange(50), 20))).toBe(50)
  })

  it.each([
    ['range too wide', 1_000],
    ['limited to a 300 range', 300],
    ['limited to a 10,000 range', 1_000],
  ])('that is refused with %j becomes %i', (message, next) => {
    expect(widthOf(rangeAfterRefused(startLogRange(), 2_000, refused(message)))).toBe(next)
  })

  it('stays below what was refused', () => {
    const known = rangeAfterRefused(startLogRange(), 2_000, refused('limited to a 300 range'))
    expect(widthOf(readOften(known, 40))).toBe(300)
  })

  it('that was refused for its logs is wide again where there are none', () => {
    let known = startLogRange()
    for (let round = 0; round < 4; round++) {
      known = rangeAfterRefused(known, widthOf(known), refused('query returned more than 10000 results'))
    }
    expect(widthOf(known)).toBe(125)
    expect(widthOf(readOften(known, 20, 20))).toBeLessThan(450)
    expect(widthOf(readOften(known, 20))).toBe(100_000)
  })

  it('that was refused in unknown words is taken to be dense where its half has many logs', () => {
    const known = rangeAfterRefused(startLogRange(), 2_000, refused('nope', 'REFUSED'))
    expect(widthOf(known)).toBe(1_000)
    expect(widthOf(readOften(read(known, 600), 20))).toBe(100_000)
    expect(widthOf(readOften(read(known), 20))).toBeLessThan(2_000)
  })

  it.each<[string, error: unknown, blocks: number, isTooWide: boolean]>([
    ['the node says so', refused('range too wide'), 2, true],
    ['the node refuses it in words that nobody knows', refused('nope', 'REFUSED'), 2, true],
    ['not where the node wants an address', refused('Please specify an address', 'REFUSED'), 2, false],
    ['not where the node has removed those blocks', refused('pruned history unavailable', 'REFUSED'), 2, false],
    ['not where it does not know the method', refused('method not found', 'REFUSED'), 2, false],
    ['not where it is behind', refused('Unknown block', 'BEHIND'), 2, false],
    ['not where it limits the rate', refused('slow down', 'RATE_LIMITED'), 2, false],
    ['the node does not answer in time', new RpcError('TIMEOUT', 'slow'), 2, true],
    ['not where one block alone is too much', refused('range too wide'), 1, false],
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
