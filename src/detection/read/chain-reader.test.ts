import { describe, expect, it } from 'vitest'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { type RpcAnswer, type RpcCall, refusalError } from '../../nodes/json-rpc.ts'
import { createNodeLimits } from '../../nodes/node-limits.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { createChainReader } from './chain-reader.ts'

const ADDRESSES = Array.from({ length: 10 }, (_, n) => `0x${String(n).repeat(40)}` as Address)
const BLOCKS: Hex[] = ['0xaa', '0xbb']
const HEADER = { number: '0x9', hash: '0xaa', parentHash: '0x99', timestamp: '0x1' }

/** A node with one log of each address in each block, which takes so many addresses in one filter. */
function nodeTaking(most: number) {
  const limits = createNodeLimits().of('https://rpc.example')
  const filters: number[] = []
  function answer({ method, params }: RpcCall): RpcAnswer {
    if (method === 'eth_getBlockByNumber') return { ok: true, result: HEADER }
    const [{ address, blockHash }] = params as [{ address: Address[]; blockHash?: Hex }]
    filters.push(address.length)
    if (address.length <= most) return { ok: true, result: address.map((each) => ({ address: each, blockHash })) }
    const error = { code: -32602, message: 'exceed max addresses or topics per search position' }
    return { ok: false, error: refusalError(error, method, 'rpc.example') }
  }
  const client: Pick<RpcClient, 'batchBy' | 'limitsOf'> = {
    batchBy: async (callsOf) => ({ node: 0, answers: callsOf(0).map(answer) }),
    limitsOf: () => limits,
  }
  return { filters, open: () => createChainReader(client as RpcClient, ADDRESSES) }
}

describe('a node that takes few addresses in one filter', () => {
  it.each([10, 9, 5, 3, 1])('%i: gives the logs of all contracts in a range, each once', async (most) => {
    const { logs } = await nodeTaking(most).open().logsInRange({ from: 1, to: 9 })
    expect(logs.map(({ address }) => address)).toEqual(ADDRESSES)
  })

  it.each([10, 9, 5, 3, 1])('%i: gives the logs of all contracts in each block, each once', async (most) => {
    const blocks = await nodeTaking(most).open().logsOfBlocks(BLOCKS)
    const expected = BLOCKS.map((blockHash) => ADDRESSES.map((address) => ({ address, blockHash })))
    expect(blocks).toEqual(expected)
  })

  it('is not asked for more of them again, whoever reads the chain', async () => {
    const { filters, open } = nodeTaking(5)
    await open().logsInRange({ from: 1, to: 9 })
    await open().logsInRange({ from: 1, to: 9 })
    await open().logsOfBlocks(['0xaa'])
    expect(filters).toEqual([10, 5, 5, 5, 5, 5, 5])
  })

  it('fails where it refuses one address alone', async () => {
    const { filters, open } = nodeTaking(0)
    await expect(open().logsInRange({ from: 1, to: 9 })).rejects.toMatchObject({ kind: 'TOO_MANY_ADDRESSES' })
    expect(await open().logsOfBlocks(['0xaa'])).toMatchObject([{ kind: 'TOO_MANY_ADDRESSES' }])
    expect(filters.at(-1)).toBe(1)
  })
})
