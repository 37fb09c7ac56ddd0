import { describe, expect, it } from 'vitest'
import type { Hex } from '../../domain/hex.ts'
import type { DetectedPayment, DetectedRefund, Findings } from '../match/detected.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { accountsByBlock, blocksToStore, finalisedBlockOf, findCanonical, judgeRestart } from './block-rules.ts'

const hash = (number: number, branch = 'a'): Hex => `0x${branch}${number}`
const block = (number: number, branch = 'a'): StoredBlock => ({ number, hash: hash(number, branch) })
const header = (number: number) => ({ ...block(number), parentHash: hash(number - 1), timestampSec: number })

describe('payments become final', () => {
  it.each<[string, finalBlock: number, scannedBlock: number, settled: number]>([
    ['up to the final block', 90, 100, 90],
    ['up to the last block that was read, while final blocks are read', 5_000, 100, 100],
  ])('%s', (_, finalBlock, scannedBlock, settled) => {
    expect(finalisedBlockOf({ finalBlock, scannedBlock })).toBe(settled)
  })
})

describe('of blocks that were read', () => {
  it.each<[string, read: number[], finalBlock: number, stored: number[]]>([
    ['those from the final one on are stored', [8, 9, 10, 11], 9, [9, 10, 11]],
    ['the last one is stored even where all are final', [8, 9], 20, [9]],
    ['none is stored where none was read', [], 20, []],
  ])('%s', (_, read, finalBlock, stored) => {
    expect(blocksToStore(read.map(header), finalBlock).map(({ number }) => number)).toEqual(stored)
  })

  it('each knows the accounts that have something in it, once', () => {
    const at = (blockNumber: number) => ({ blockNumber }) as DetectedPayment & DetectedRefund
    const accounts: Findings['accounts'] = new Map([
      [1, { payments: [at(8), at(8)], refunds: [at(9)] }],
      [2, { payments: [at(8)], refunds: [] }],
    ])
    expect(accountsByBlock({ accounts } as Findings)).toEqual(
      new Map([
        [8, [1, 2]],
        [9, [1]],
      ]),
    )
    expect(accountsByBlock(undefined)).toEqual(new Map())
  })
})

describe('a transaction that was read again is canonical', () => {
  const chain = { scannedBlock: 12, finalBlock: 9 }
  const blocks = [block(9), block(10), block(11), block(12)]
  it.each<[string, StoredBlock, isCanonical: boolean]>([
    ['in a stored block', block(11), true],
    ['not in a block that was replaced', block(11, 'b'), false],
    ['in a block below the stored ones, which is final', block(3, 'b'), true],
    ['not in a block that was not read yet', block(13), false],
  ])('%s', (_, at, isCanonical) => {
    expect(findCanonical(chain, blocks, new Map([['0x01', at]]))).toEqual(new Set(isCanonical ? ['0x01'] : []))
  })

  it('not in a block that is missing among those that are not final', () => {
    expect(findCanonical(chain, [block(9), block(12)], new Map([['0x01', block(10)]]))).toEqual(new Set())
  })
})

describe('a chain is read anew', () => {
  const blocks = [block(9), block(10), block(11)]
  it.each<[string, readonly StoredBlock[], StoredBlock, ReturnType<typeof judgeRestart>]>([
    ['from a stored block', blocks, block(10), 'STORED'],
    ['not from a block that was replaced', blocks, block(10, 'b'), 'REPLACED'],
    ['from any lower block, which is final', blocks, block(3), 'FINAL'],
    ['not from a block that was not read', blocks, block(12), 'NOT_READ'],
    ['from any block where none is stored', [], block(12), 'FINAL'],
  ])('%s', (_, stored, from, verdict) => {
    expect(judgeRestart(stored, from)).toBe(verdict)
  })
})
