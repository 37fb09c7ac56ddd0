import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { findRoundAt } from '../../src/detection/read/block-prices.ts'
import { createChainReader } from '../../src/detection/read/chain-reader.ts'
import type { Account } from '../../src/domain/account.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { createRpcClient, type RpcClientOptions } from '../../src/nodes/rpc-client.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'

let chain: TestChain
let first: RpcProxy
let second: RpcProxy
let nowMs = 0

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_431 })
  ;[first, second] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
})
afterEach(() => {
  for (const proxy of [first, second]) {
    proxy.meddle()
    proxy.fail()
    proxy.refuseBatches(false)
  }
})
afterAll(async () => {
  await Promise.all([first?.stop(), second?.stop()])
  await chain?.stop()
})

const client = (options: Partial<RpcClientOptions> = {}) =>
  createRpcClient({ urls: [first.url, second.url], chainId: 31_431, clock: () => new Date(nowMs), ...options })
const getNumber = { method: 'eth_blockNumber', params: [] }
const getBalance = { method: 'eth_getBalance', params: ['0x00000000000000000000000000000000000dead1', 'latest'] }

describe('calls to nodes', () => {
  it('go as one exchange, and their answers come in order', async () => {
    const rpc = client()
    await rpc.call('eth_blockNumber', [])
    const before = first.exchanges()
    const answers = await rpc.batch([getNumber, getBalance, getNumber])
    expect(first.exchanges() - before).toBe(1)
    expect(answers[1]).toEqual({ ok: true, result: '0x0' })
  })

  it('go one by one to a node that refuses batches, and it is asked only once', async () => {
    first.refuseBatches(true)
    const rpc = client()
    expect(await rpc.batch([getNumber, getBalance])).toMatchObject([{ ok: true }, { ok: true, result: '0x0' }])
    const before = first.exchanges()
    await rpc.batch([getNumber, getBalance])
    expect(first.exchanges() - before).toBe(2)
  })

  it('are cut into batches that a node takes', async () => {
    const limits = createNodeLimits([
      { name: 'BASE', rpcUrls: [first.url], nodeLimits: { [first.url]: { maxBatch: 2 } } },
    ])
    const rpc = client({ limits })
    await rpc.call('eth_blockNumber', [])
    const before = first.exchanges()
    expect(await rpc.batch([getNumber, getNumber, getBalance, getNumber, getNumber])).toHaveLength(5)
    expect(first.exchanges() - before).toBe(3)
  })

  it('go to the next URL where the first takes far fewer, and back when its rate has recovered', async () => {
    const limits = createNodeLimits([], { clock: () => nowMs })
    const rpc = client({ limits })
    await rpc.call('eth_blockNumber', [])
    const slow = limits.of(first.url)
    slow.noteRateRefusal({ request: slow.take(2), calls: 2, refused: 1, waitMs: 0, isQuota: false })
    const before = first.exchanges()
    await rpc.batch([getNumber, getBalance])
    expect([first.exchanges() - before, rpc.answeredLast()]).toEqual([0, 1])
    // Where no other works, it is asked all the same.
    second.fail(503)
    await rpc.call('eth_blockNumber', [])
    expect(rpc.answeredLast()).toBe(0)
    second.fail()
    nowMs += 400_000
    await rpc.call('eth_blockNumber', [])
    expect(rpc.answeredLast()).toBe(0)
  })

  it.each([
    ['an error page', 503, '<html>'],
    ['a rate limit', 429, ''],
    ['something that is not JSON', 200, '<html>'],
    ['an empty object', 200, '{}'],
    ['no key', 401, 'unauthorized'],
  ])('go to the next URL after %s, and stay there for a while', async (_, status, body) => {
    nowMs += 1_000_000
    const rpc = client()
    first.fail(status, body)
    expect(await rpc.call('eth_getBalance', getBalance.params)).toBe('0x0')
    first.fail()
    const before = first.exchanges()
    await rpc.call('eth_blockNumber', [])
    expect(first.exchanges()).toBe(before)
    nowMs += 2_001
    await rpc.call('eth_blockNumber', [])
    expect(first.exchanges()).toBeGreaterThan(before)
  })

  it('tell of a node once when it fails, and once when it answers again', async () => {
    nowMs += 1_000_000
    const reported: unknown[] = []
    const rpc = client({ onNodeChange: (node, { open }) => reported.push([node, open]) })
    const node = new URL(first.url).host
    first.fail(503)
    for (let n = 0; n < 4; n++) {
      expect(await rpc.call('eth_getBalance', getBalance.params)).toBe('0x0')
      nowMs += 40_000
    }
    expect(reported).toEqual([[node, true]])
    first.fail()
    await rpc.call('eth_blockNumber', [])
    expect(reported).toEqual([
      [node, true],
      [node, false],
    ])
  })

  it('do not go to a node that is doubted, whatever it still answers to what it was asked before', async () => {
    nowMs += 1_000_000
    const rpc = client()
    const answering = Promise.withResolvers<unknown>()
    first.meddle(({ method }) => (method === 'eth_getBalance' ? answering.promise : undefined))
    const underWay = rpc.call('eth_getBalance', getBalance.params)
    await rpc.call('eth_blockNumber', [])
    rpc.doubt('it tells of other blocks than before')
    answering.resolve('0x0')
    await underWay
    const before = first.exchanges()
    await rpc.call('eth_blockNumber', [])
    expect(first.exchanges()).toBe(before)
    nowMs += 31_000
    await rpc.call('eth_blockNumber', [])
    expect(first.exchanges()).toBeGreaterThan(before)
  })

  it('ask those that are left alone all the same where no other is left', async () => {
    const rpc = client()
    for (const node of [first, second]) node.fail(503)
    for (let n = 0; n < 2; n++) {
      const before = first.exchanges() + second.exchanges()
      await expect(rpc.call('eth_blockNumber', [])).rejects.toMatchObject({ kind: 'UNREACHABLE' })
      expect(first.exchanges() + second.exchanges()).toBe(before + 2)
    }
  })

  it('go to the next URL when a node does not answer in time', async () => {
    first.meddle(() => new Promise(() => {}))
    // The next one has no more time than the first.
    expect(await client({ timeoutMs: 300 }).call('eth_getBalance', getBalance.params)).toBe('0x0')
  })

  it('go to the next URL when a node serves another chain', async () => {
    first.meddle(({ method }) => (method === 'eth_chainId' ? Promise.resolve('0x1') : Promise.resolve('0xbad')))
    expect(await client().call('eth_getBalance', getBalance.params)).toBe('0x0')
    await expect(client({ urls: [first.url] }).call('eth_blockNumber', [])).rejects.toMatchObject({
      kind: 'WRONG_CHAIN',
    })
  })

  it('tell what the node refused without trying another', async () => {
    const answers = await client().batch([{ method: 'eth_noSuchThing', params: [] }, getNumber])
    expect(answers).toMatchObject([{ ok: false, error: { kind: 'REFUSED' } }, { ok: true }])
  })

  it.each([
    ['query returned more than 10000 results', -32005, 'TOO_LARGE'],
    ['block range is too wide', -32000, 'TOO_LARGE'],
    ['Log response size exceeded', -32602, 'TOO_LARGE'],
    ['eth_getLogs is limited to a 10,000 range', -32614, 'TOO_LARGE'],
    ['execution reverted: No data present', 3, 'REVERTED'],
    ['missing trie node', -32000, 'REFUSED'],
  ])('sort a node’s error: %s', async (message, code, kind) => {
    first.meddle(({ method }) =>
      method === 'eth_getLogs' ? Promise.resolve({ rpcError: { code, message } }) : undefined,
    )
    await expect(client().call('eth_getLogs', [])).rejects.toMatchObject({ kind })
  })

  it('refuse an answer that is too long', async () => {
    await expect(client({ maxAnswerBytes: 100 }).call('eth_getBlockByNumber', ['latest', false])).rejects.toMatchObject(
      {
        kind: 'TOO_LARGE',
      },
    )
  })

  it('end at once when the caller gives up', async () => {
    first.meddle(() => new Promise(() => {}))
    const ending = new AbortController()
    const reason = new Error('enough')
    const call = client().call('eth_blockNumber', [], ending.signal)
    ending.abort(reason)
    await expect(call).rejects.toBe(reason)
  })

  it('never show more of a URL than its host', async () => {
    const url = first.url.replace('http://', 'http://user:hunter2@') + '/v3/secret-key'
    first.fail(503)
    const error = await client({ urls: [url] })
      .call('eth_blockNumber', [])
      .catch((thrown: unknown) => thrown)
    expect(String(error)).not.toMatch(/hunter2|secret-key/)
  })
})

describe('prices where the node no longer has the state of a block', () => {
  let database: TestDatabase
  let knex: Knex
  let account: Account
  beforeAll(async () => {
    database = await createTestDatabase()
    knex = database.knex
    account = await addAccount(knex, 'shop')
  })
  afterAll(() => database?.drop())

  it('are found in the rounds of the feed', async () => {
    const { feed } = chain.tokens.DAI
    const reader = createChainReader(client(), [])
    const { timestampSec } = await chain.client.head()
    const at = [10, 20, 30, 40, 50].map((offset) => timestampSec + offset)
    for (const [index, updatedAtSec] of at.entries()) {
      await chain.setFeed(feed, { answer: BigInt(index + 1), updatedAtSec })
    }
    const answers = []
    for (const time of [
      timestampSec + 10,
      timestampSec + 19,
      timestampSec + 30,
      timestampSec + 49,
      timestampSec + 99,
    ]) {
      answers.push((await findRoundAt(reader, canonical(feed), time))?.answer)
    }
    expect(answers).toEqual([1n, 1n, 3n, 4n, 5n])
    expect(await findRoundAt(reader, canonical(feed), 5)).toBeUndefined()
  })

  it('are those of the time of the payment', async () => {
    const wanted = makeRequest({ payee: canonical(chain.wallets[3]), network: 'BASE', paymentCurrency: 'ETH-BASE' })
    const request = await storeRequest(knex, account, wanted)
    await chain.setFeed(chain.native.feed, { answer: 2_000n * 10n ** 8n })
    const payment = { kind: 'NATIVE', to: chain.wallets[3], amount: 10n ** 18n } as const
    await chain.pay(chain.wallets[1], { ...payment, paymentReference: request.paymentReference })
    const { timestampSec } = await chain.client.head()
    await chain.setFeed(chain.native.feed, { answer: 9_000n * 10n ** 8n, updatedAtSec: timestampSec + 60 })
    // The node keeps the state of its last 32 blocks.
    await chain.mine({ blocks: 40 })
    await detect(knex, [configOf(chain, 'BASE', { rpcUrls: [first.url] })]).scanOnce()
    const [stored] = await paymentsOf(knex, account, request)
    expect(stored).toMatchObject({ amount: '1', amount_in_usd: '2000' })
    expect(first.calls.some(({ method, params }) => method === 'eth_call' && params[1] === 'latest')).toBe(true)
  })

  it('add the L1 fee of a second layer to the gas', async () => {
    const wanted = makeRequest({ payee: canonical(chain.wallets[4]), network: 'BASE', paymentCurrency: 'ETH-BASE' })
    const request = await storeRequest(knex, account, wanted)
    const payment = { kind: 'NATIVE', to: chain.wallets[4], amount: 10n ** 18n } as const
    const paid = await chain.pay(chain.wallets[1], { ...payment, paymentReference: request.paymentReference })
    second.meddle(({ method }, ask) =>
      method === 'eth_getTransactionReceipt'
        ? ask().then((receipt) => ({ ...(receipt as object), l1Fee: '0xde0b6b3a7640000' }))
        : undefined,
    )
    await knex('leases').delete()
    await detect(knex, [configOf(chain, 'BASE', { rpcUrls: [second.url] })]).scanOnce()
    const [stored] = await paymentsOf(knex, account, request)
    const wei = (paid.gasUsed ?? 0n) * (paid.effectiveGasPrice ?? 0n)
    expect(stored.gas.amount).toBe(`1.${wei.toString().padStart(18, '0').replace(/0+$/, '')}`)
  })

  it('leave out the gas where the node tells no gas price', async () => {
    const wanted = makeRequest({ payee: canonical(chain.wallets[4]), network: 'BASE', paymentCurrency: 'ETH-BASE' })
    const request = await storeRequest(knex, account, wanted)
    const payment = { kind: 'NATIVE', to: chain.wallets[4], amount: 10n ** 18n } as const
    await chain.pay(chain.wallets[1], { ...payment, paymentReference: request.paymentReference })
    second.meddle(({ method }, ask) =>
      method === 'eth_getTransactionReceipt'
        ? ask().then((receipt) => ({ ...(receipt as object), effectiveGasPrice: undefined }))
        : undefined,
    )
    await knex('leases').delete()
    await detect(knex, [configOf(chain, 'BASE', { rpcUrls: [second.url] })]).scanOnce()
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ amount: '1', gas: null }])
  })
})
