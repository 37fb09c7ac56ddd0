import { describe, expect, it } from 'vitest'
import type { RpcLog } from '../../contracts/decode-events.ts'
import { inChainOrder } from './read-events.ts'

const log = (block: number, logIndex: number, transaction = block): RpcLog => ({
  address: '0x01',
  topics: [],
  data: '0x',
  blockNumber: `0x${block.toString(16)}`,
  blockHash: `0x${block}`,
  transactionHash: `0x${transaction}`,
  logIndex: `0x${logIndex.toString(16)}`,
})

describe('logs of a range', () => {
  it('are sorted by block and place, each once, in whatever order and how often a node gives them', () => {
    const [first, second, third] = [log(9, 10), log(16, 2), log(16, 11)]
    expect(inChainOrder([third, first, second, first, { ...second, logIndex: '0x02' }])).toEqual([first, second, third])
  })

  it('are refused where a transaction is in two blocks', () => {
    expect(() => inChainOrder([log(9, 0, 1), log(16, 0, 1)])).toThrow(
      'the node gives logs of transaction 0x1 in blocks 9 and 16',
    )
  })
})
