import { describe, expect, it } from 'vitest'
import type { Hex } from '../../domain/hex.ts'
import { judgeHeads, type NodeHead } from './node-trust.ts'

const hash = (digit: string): Hex => `0x${digit.repeat(64)}`
const good: NodeHead = { chainId: 8453, number: 1_000, timestampSec: 50_000, finalHash: hash('a') }
const known = { chainId: 8453, final: { number: 900, hash: hash('a') }, blockTimeSeconds: 2, nowSec: 50_010 }

describe('of two nodes, the second', () => {
  it.each<[string, Partial<NodeHead> | undefined, string]>([
    ['is as good as the first', {}, ''],
    ['does not answer', undefined, ''],
    ['is some blocks behind', { number: 990, timestampSec: 49_900 }, ''],
    ['is blocks behind that came within a minute', { number: 980, timestampSec: 49_950 }, ''],
    ['lags', { number: 989, timestampSec: 49_940 }, 'STALE its head 989 is 11 blocks behind that of another node'],
    ['has stood still', { number: 995, timestampSec: 49_709 }, 'STALE its head 995 is 301 s old'],
    ['does not have the final block', { number: 899, finalHash: undefined }, ''],
    ['serves another chain', { chainId: 1 }, 'OTHER_CHAIN it serves chain 1, not 8453'],
    [
      'is on another branch',
      { finalHash: hash('b') },
      `OTHER_CHAIN its block 900 is ${hash('b')}; that of the chain is ${hash('a')}`,
    ],
  ])('%s', (_, change, said) => {
    const found = judgeHeads([good, change && { ...good, ...change }], known).get(1)
    expect(found === undefined ? '' : `${found.fault} ${found.reason}`).toBe(said)
  })

  it('is on another branch like the first: the chain replaced a final block, and no node is at fault', () => {
    const replaced = { ...good, finalHash: hash('b') }
    expect(judgeHeads([replaced, replaced], known)).toEqual(new Map())
  })
})
