/**
 * Unusual answers of nodes and feeds: too large, empty, or nonsense.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { encodeCreation } from '../../demo/network/demo-contracts.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { RpcLog } from '../../src/contracts/decode-events.ts'
import { readBlockTimes } from '../../src/detection/follow/read-events.ts'
import { createPriceReader, type PriceQuery } from '../../src/detection/read/block-prices.ts'
import { createChainReader } from '../../src/detection/read/chain-reader.ts'
import { formatDecimal } from '../../src/domain/decimal.ts'
import { createRpcClient, type RpcClientOptions } from '../../src/nodes/rpc-client.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { configOf } from '../support/detection.ts'

let chain: TestChain
let proxy: RpcProxy

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_461 })
  proxy = await startRpcProxy(chain.rpcUrl)
})
afterEach(() => proxy.meddle())
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
})

const refuse = (message: string, code = -32000) => Promise.resolve({ rpcError: { code, message } })
const readChain = (options: Partial<RpcClientOptions> = {}) =>
  createChainReader(createRpcClient({ urls: [proxy.url], chainId: 31_461, clock: () => new Date(), ...options }), [])

describe('receipts that are too large', () => {
  async function payManyTimes(count: number) {
    const sent: `0x${string}`[] = []
    const payment = {
      kind: 'NATIVE',
      to: chain.wallets[2],
      amount: 1n,
      paymentReference: '0x1122334455667788',
    } as const
    for (let made = 0; made < count; made++) {
      sent.push((await chain.pay(chain.wallets[1], payment)).transactionHash)
    }
    return sent
  }

  it('are read in as many exchanges as it takes', async () => {
    const hashes = await payManyTimes(30)
    const before = proxy.exchanges()
    const receipts = await readChain({ maxAnswerBytes: 40_000 }).receipts(hashes)
    expect(receipts).toMatchObject(hashes.map((txHash) => ({ txHash })))
    expect(proxy.exchanges() - before).toBeGreaterThan(2)
  })

  it('are read one by one where a node answers only the first part of a batch', async () => {
    const hashes = await payManyTimes(5)
    let answered = 0
    proxy.meddle(({ method }) => {
      if (method !== 'eth_getTransactionReceipt') return undefined
      answered++
      return answered > 2 && answered <= hashes.length ? refuse('response too large', -32003) : undefined
    })
    const receipts = await readChain().receipts(hashes)
    expect(receipts).toMatchObject(hashes.map((txHash) => ({ txHash })))
  })
})

describe('block times', () => {
  it.each([null, '0x0', undefined])('come from the header where a log has %s', async (blockTimestamp) => {
    const log = { blockNumber: '0x5', blockTimestamp } as unknown as RpcLog
    const reader = readChain()
    const [header] = await reader.headers([5])
    const times = await readBlockTimes(reader, { numbers: [5], blocks: [], logs: [log] })
    expect(times.get(5)).toBe(header?.timestampSec)
    expect(times.get(5)).toBeGreaterThan(0)
  })
})

describe('a feed that misbehaves', () => {
  async function priceNow() {
    const { number, timestampSec } = await chain.client.head()
    const token = createTokenDirectory([configOf(chain, 'BASE')]).native('BASE') as PriceQuery['token']
    return createPriceReader(readChain()).pricesAt([{ token, blockNumber: Number(number), timestampSec }])
  }
  const word = (value: bigint) => value.toString(16).padStart(64, '0')
  const round = (roundId: bigint, updatedAt: bigint) => `0x${[roundId, 5n, 0n, updatedAt, roundId].map(word).join('')}`

  it.each([
    ['was updated after the block', (at: number) => round(1n, BigInt(at) + 1n), 8n],
    ['was updated in the far future', () => round(1n, 2n ** 200n), 8n],
    ['has too many decimals', (at: number) => round(1n, BigInt(at)), 255n],
    ['has an impossible number of decimals', (at: number) => round(1n, BigInt(at)), 2n ** 255n],
  ])('gives no price: one that %s', async (_, answer, decimals) => {
    const head = await chain.client.head()
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_call') return undefined
      const [{ data }] = params as [{ data: string }]
      return Promise.resolve(data === '0x313ce567' ? `0x${word(decimals)}` : answer(head.timestampSec))
    })
    expect(await priceNow()).toEqual([undefined])
  })

  it('is not searched without end: one with very many phases', async () => {
    const head = await chain.client.head()
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_call') return undefined
      const [{ data }, block] = params as [{ data: string }, string]
      if (block !== 'latest') return refuse('missing trie node')
      if (data === '0x313ce567') return Promise.resolve(`0x${word(8n)}`)
      if (data === '0xfeaf968c') return Promise.resolve(round(2n ** 79n + 1n, BigInt(head.timestampSec) + 60n))
      return refuse('execution reverted', 3)
    })
    proxy.calls.length = 0
    expect(await priceNow()).toEqual(['UNREAD'])
    expect(proxy.calls.length).toBeLessThan(100)
  })
})

describe('a feed that does not stay as it is', () => {
  const USD = 10n ** 8n
  /** The price of the coin at each block after `act`, all by one reader. */
  async function pricesAfter(...acts: readonly (() => Promise<unknown>)[]) {
    const token = createTokenDirectory([configOf(chain, 'BASE')]).native('BASE') as PriceQuery['token']
    const prices = createPriceReader(readChain())
    const found = []
    for (const act of acts) {
      await act()
      const { number, timestampSec } = await chain.client.head()
      const [price] = await prices.pricesAt([{ token, blockNumber: Number(number), timestampSec }])
      found.push(typeof price === 'object' ? formatDecimal(price.usd) : price)
    }
    return found
  }
  const round =
    (answer: bigint, ageSec = 0) =>
    async () => {
      const { timestampSec } = await chain.client.head()
      await chain.setFeed(chain.native.feed, { answer, ...(ageSec > 0 && { updatedAtSec: timestampSec - ageSec }) })
    }
  /** Gives the feed other decimals, as a new contract behind it would. */
  const decimals = (count: number) => async () => {
    const { rpc } = chain.client
    const data = encodeCreation('SettableFeed', ['another', count, 1n, 1n])
    const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 5_000_000n })
    const created = await rpc.call<{ contractAddress: string }>('eth_getTransactionReceipt', [transactionHash])
    const code = await rpc.call('eth_getCode', [created.contractAddress, 'latest'])
    await rpc.call('anvil_setCode', [chain.native.feed, code])
    await chain.mine()
  }

  it('is scaled by its decimals at the block', async () => {
    const change = async () => {
      await decimals(18)()
      await round(3_100n * 10n ** 18n)()
    }
    expect(await pricesAfter(round(3_000n * USD), change, round(3_200n * 10n ** 18n))).toEqual(['3000', '3100', '3200'])
    await decimals(8)()
    await round(3_000n * USD)()
  })

  it('keeps its own decimals in a round that was read before as the one by which the next is judged', async () => {
    await round(3_000n * USD)()
    const older = await chain.client.head()
    await decimals(18)()
    await round(3_100n * 10n ** 18n)()
    const newer = await chain.client.head()
    const token = createTokenDirectory([configOf(chain, 'BASE')]).native('BASE') as PriceQuery['token']
    const prices = createPriceReader(readChain())
    for (const [head, usd] of [
      [newer, undefined],
      [older, '3000'],
    ] as const) {
      const [price] = await prices.pricesAt([
        { token, blockNumber: Number(head.number), timestampSec: head.timestampSec },
      ])
      expect(typeof price === 'object' ? formatDecimal(price.usd) : price).toBe(usd)
    }
    await decimals(8)()
    await round(3_000n * USD)()
  })

  it('gives no price after a jump, until the next round says the same or a heartbeat has passed', async () => {
    const usual = round(3_000n * USD)
    expect(await pricesAfter(usual, usual, round(30_001n * USD), round(30_002n * USD))).toEqual([
      '3000',
      '3000',
      undefined,
      '30002',
    ])
    expect(await pricesAfter(usual, usual, round(30_001n * USD, 3_590), usual, round(30_001n * USD, 3_610))).toEqual([
      undefined,
      '3000',
      undefined,
      undefined,
      '30001',
    ])
    await usual()
    expect(await pricesAfter(usual)).toEqual(['3000'])
  })

  it('is judged by the round before also at a block whose state no node has any more', async () => {
    await round(3_000n * USD)()
    await round(90_000n * USD)()
    const { number, timestampSec } = await chain.client.head()
    await chain.mine({ blocks: 40 })
    const token = createTokenDirectory([configOf(chain, 'BASE')]).native('BASE') as PriceQuery['token']
    const query = { token, blockNumber: Number(number), timestampSec }
    expect(await createPriceReader(readChain()).pricesAt([query])).toEqual([undefined])
  })
})
