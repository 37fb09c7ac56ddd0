import { describe, expect, it } from 'vitest'
import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockHeader, ChainView } from '../read/chain-reader.ts'
import {
  afterBlocks,
  afterRewind,
  chooseStep,
  decideFork,
  type ForkDecision,
  isForked,
  linkHeaders,
  type NextStep,
  type Position,
  takeBlocksRead,
  withHeights,
} from './next-step.ts'

/** Block `number` of branch a, b, …; a block's parent is on the same branch unless reported. */
const hash = (branch: string, number: number): Hex => `0x${branch}${number}`
const block = (number: number, branch = 'a', parent = branch): BlockHeader => ({
  number,
  hash: hash(branch, number),
  parentHash: hash(parent, number - 1),
  timestampSec: number,
})
const stored = (number: number, branch = 'a') => ({ number, hash: hash(branch, number) })

/** Read up to `scanned`, with all blocks from the final one on. */
function positionAt(scanned: number, heights: { head?: number; final?: number; lowest?: number } = {}): Position {
  const { head = scanned, final = scanned - 2 } = heights
  const { lowest = final } = heights
  const blocks = Array.from({ length: scanned - lowest + 1 }, (_, index) => stored(lowest + index))
  return { scanned: stored(scanned), blocks, headBlock: head, finalBlock: final }
}

const view = (head: BlockHeader, atTip?: BlockHeader): ChainView => ({ head, atTip })

describe('a chain is forked', () => {
  it.each<[string, ChainView, boolean]>([
    ['not when the last block is still there', view(block(12), block(10)), false],
    ['when another block is at its number', view(block(12, 'b'), block(10, 'b')), true],
    ['when it became shorter and its head is another block', view(block(9, 'b')), true],
    ['not when the node is behind on the same branch', view(block(9)), false],
    ['not when the node is behind the stored blocks: that cannot be decided', view(block(3, 'b')), false],
  ])('%s', (_, seen, forked) => {
    expect(isForked(positionAt(10), seen)).toBe(forked)
  })
})

describe('the step after a look at the chain', () => {
  const follow = (from: number, count: number): NextStep => ({
    kind: 'FOLLOW',
    numbers: Array.from({ length: count }, (_, index) => from + index),
  })
  it.each<[string, Position, head: number, NextStep]>([
    ['stays where there is no new block', positionAt(10), 10, { kind: 'STAY' }],
    ['reads one new block by its hash', positionAt(10, { head: 11 }), 11, follow(11, 1)],
    ['reads at most 50 blocks by their hash', positionAt(10, { head: 500 }), 500, follow(11, 50)],
    [
      'reads final blocks as a range',
      positionAt(10, { head: 500, final: 450, lowest: 10 }),
      500,
      { kind: 'CATCH_UP', from: 11, until: 450 },
    ],
    [
      'reads 500 final blocks before it goes on',
      positionAt(10, { head: 511, final: 510, lowest: 10 }),
      511,
      { kind: 'CATCH_UP', from: 11, until: 510 },
    ],
    [
      'leaves more than 500 final blocks to back-fill',
      positionAt(10, { head: 600, final: 511, lowest: 10 }),
      600,
      { kind: 'JUMP', to: 511 },
    ],
    ['reads by hash above the final block', positionAt(450, { head: 500, final: 450 }), 500, follow(451, 50)],
    [
      'waits for a node that is behind, also where finality has moved',
      positionAt(10, { final: 12, lowest: 10 }),
      8,
      { kind: 'NODE_BEHIND', reason: 'the node is at block 8, below block 10' },
    ],
  ])('%s', (_, position, head, step) => {
    expect(chooseStep(position, view(block(head)))).toEqual(step)
  })

  it.each<[string, heights: { head: number; finalBlock: number }, headBlock: number, finalBlock: number]>([
    ['follow the chain', { head: 12, finalBlock: 9 }, 12, 9],
    ['do not go back with a node that is behind', { head: 7, finalBlock: 5 }, 10, 8],
  ])('takes heights that %s', (_, heights, headBlock, finalBlock) => {
    expect(withHeights(positionAt(10), heights)).toMatchObject({ headBlock, finalBlock })
  })
})

describe('the position', () => {
  it.each<[string, Position, readonly BlockHeader[], kept: number[]]>([
    ['keeps the final block and those above it', positionAt(10, { final: 9, lowest: 8 }), [block(11)], [9, 10, 11]],
    ['keeps the last block of a range of final blocks', positionAt(10, { final: 400, lowest: 8 }), [block(300)], [300]],
    ['drops blocks as they become final', positionAt(10, { final: 10, lowest: 8 }), [], [10]],
  ])('after blocks %s', (_, position, blocks, kept) => {
    const after = afterBlocks(position, blocks)
    expect(after.blocks.map(({ number }) => number)).toEqual(kept)
    expect(after.scanned).toEqual(after.blocks.at(-1))
  })

  it('after a reorg ends at the highest block that is left', () => {
    const { scanned, blocks } = afterRewind(positionAt(10), stored(9))
    expect([scanned, blocks]).toEqual([stored(9), [stored(8), stored(9)]])
  })
})

describe('on a fork', () => {
  it.each<[string, (BlockHeader | undefined)[], ForkDecision]>([
    [
      'the blocks above the highest common one go',
      [block(8), block(9, 'b'), block(10, 'b')],
      { kind: 'REWIND', to: stored(8) },
    ],
    ['a missing block counts as replaced', [block(8), block(9), undefined], { kind: 'REWIND', to: stored(9) }],
    [
      'nothing goes when the last block is there again',
      [block(8), block(9), block(10)],
      { kind: 'CAME_BACK', reason: 'block 10 was missing and is there again' },
    ],
    [
      'a node that lacks the final block is behind',
      [undefined, undefined, undefined],
      { kind: 'NODE_BEHIND', reason: 'the node does not have block 8, which was read before' },
    ],
    [
      'a final block that is another now is no reorg',
      [block(8, 'b'), block(9, 'b'), block(10, 'b')],
      { kind: 'FINAL_REPLACED', reason: 'block 8 was final with hash 0xa8, and is now 0xb8' },
    ],
  ])('%s', (_, headers, decision) => {
    expect(decideFork(positionAt(10), headers)).toEqual(decision)
  })
})

describe('headers', () => {
  it.each<[string, (BlockHeader | undefined)[], linked: number]>([
    ['are taken while each is the child of the one before', [block(11), block(12), block(13)], 3],
    ['end at one that is missing', [block(11), undefined, block(13)], 1],
    ['end at one with another parent', [block(11), block(12, 'b'), block(13, 'b')], 1],
    ['are none where the first has another parent', [block(11, 'b')], 0],
  ])('%s', (_, headers, linked) => {
    expect(linkHeaders(stored(10), headers)).toEqual(headers.slice(0, linked))
  })
})

describe('blocks whose logs were read', () => {
  const log = (name: string) => ({ data: name }) as unknown as RpcLog
  const refusal = new RpcError('REFUSED', 'unknown block')
  it.each<[string, (RpcLog[] | RpcError)[], blocks: number, logs: RpcLog[], RpcError | undefined]>([
    ['are all where none is refused', [[log('x')], [], [log('y')]], 3, [log('x'), log('y')], undefined],
    ['end before the first that is refused', [[log('x')], refusal, [log('y')]], 1, [log('x')], refusal],
    ['are none where the first is refused', [refusal, [], []], 0, [], refusal],
  ])('%s', (_, lists, count, logs, error) => {
    const blocks = [block(1), block(2), block(3)]
    expect(takeBlocksRead(blocks, lists)).toEqual({ blocks: blocks.slice(0, count), logs, refusal: error })
  })
})
