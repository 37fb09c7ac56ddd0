import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Hex } from '../../src/domain/hex.ts'
import type { RoutesAnswer } from '../../src/domain/route.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { silentLogger } from '../support/logs.ts'
import {
  changeResults,
  configOf,
  createTestRouting,
  freshAddress,
  type ProxyBehaviour,
  passOn,
  type RpcProxy,
  startRpcProxy,
  type TestRouting,
} from '../support/routing.ts'

/** Long enough for a loaded machine, short enough to wait for. */
const TIMEOUT_MS = 800

const WALLET = freshAddress('wallet')
let ethereum: TestChain
let base: TestChain
let proxies: { ethereum: RpcProxy; base: RpcProxy }

beforeAll(async () => {
  ;[ethereum, base] = await Promise.all([startTestChain(), startTestChain({ chainId: 31_338, addressSeed: 1 })])
  const [first, second] = await Promise.all([startRpcProxy(ethereum.rpcUrl), startRpcProxy(base.rpcUrl)])
  proxies = { ethereum: first, base: second }
  await ethereum.fund(ethereum.tokens.USDC, WALLET, 1_000_000_000n)
  await ethereum.setNativeBalance(WALLET, 10n ** 18n)
})
afterAll(async () => {
  await Promise.all([proxies.ethereum.stop(), proxies.base.stop()])
  await Promise.all([ethereum.stop(), base.stop()])
})
afterEach(() => {
  proxies.ethereum.behave(passOn)
  proxies.base.behave(passOn)
  proxies.ethereum.bodies.length = 0
  proxies.base.bodies.length = 0
})

/** A new routing for each test: what it learns about a URL must not reach the next test. */
function newRouting(options: Parameters<typeof createTestRouting>[1] = {}): TestRouting & { paymentReference: Hex } {
  const configs = [
    configOf(ethereum, 'ETHEREUM', { rpcUrls: [proxies.ethereum.url] }),
    configOf(base, 'BASE', { rpcUrls: [proxies.base.url] }),
  ]
  const routing = createTestRouting(configs, { chainTimeoutMs: TIMEOUT_MS, ...options })
  const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  return { ...routing, paymentReference: routing.addRequest({ ...terms, ...currency }) }
}

const find = (routing: ReturnType<typeof newRouting>, options = {}) =>
  routing.find({ paymentReference: routing.paymentReference, wallet: WALLET }, options)

const wholeChains = (answer: RoutesAnswer) => answer.unavailable.filter((entry) => entry.token === undefined)

describe('requests to the nodes', () => {
  it('are one for each chain and call; the first also checks the chain id', async () => {
    const routing = newRouting()
    const methods = (body: string | undefined) =>
      (JSON.parse(body ?? '[]') as { method: string }[]).map((call) => call.method)
    for (let call = 1; call <= 3; call++) {
      expect((await find(routing)).routes.length).toBe(1)
      expect([proxies.ethereum.bodies.length, proxies.base.bodies.length]).toEqual([call, call])
    }
    const usual = ['eth_call', 'eth_feeHistory', 'eth_maxPriorityFeePerGas', 'eth_getCode']
    expect(methods(proxies.ethereum.bodies[0])).toEqual([...usual, 'eth_chainId'])
    expect(methods(proxies.ethereum.bodies[2])).toEqual(usual)
  })

  // In a call geth has a base fee of 0, and Arbitrum the block number of its parent chain. anvil shows neither.
  it('never ask a contract for the base fee or the number of the block', async () => {
    await find(newRouting())
    const asked = [...proxies.ethereum.bodies, ...proxies.base.bodies].join()
    const balanceOf = '70a08231'
    expect(asked).toContain(balanceOf)
    const getBasefee = '3e64a696'
    const getBlockNumber = '42cbb15c'
    for (const selector of [getBasefee, getBlockNumber]) expect(asked).not.toContain(selector)
  })

  it('are none when the answer needs no chain', async () => {
    const routing = newRouting()
    const tron = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
    await routing.find({ paymentReference: routing.paymentReference, wallet: tron })
    expect([proxies.ethereum.bodies.length, proxies.base.bodies.length]).toEqual([0, 0])
  })

  const refusals: [string, ProxyBehaviour][] = [
    ['one error object', (_, response) => void response.end(error(-32600, 'batch not supported'))],
    ['status 400', (_, response) => void response.writeHead(400).end('no batches')],
    ['status 405', (_, response) => void response.writeHead(405).end()],
  ]
  it.each(refusals)('hold single calls at a node that answers batches with %s', async (_, refuse) => {
    const routing = newRouting()
    proxies.ethereum.behave((exchange, response) =>
      exchange.body.startsWith('[') ? refuse(exchange, response) : passOn(exchange, response),
    )
    expect((await find(routing)).routes.length).toBe(1)
    expect(proxies.ethereum.bodies.length).toBe(6)
    const again = await find(routing)
    expect([again.routes.length, again.degraded]).toEqual([1, false])
    // It has learned that the node takes no batches.
    expect(proxies.ethereum.bodies.slice(6).filter((body) => body.startsWith('['))).toEqual([])
    expect(proxies.ethereum.bodies.length).toBe(10)
  })

  it('are asked again alone where a node without batches refuses one of them for its rate', async () => {
    const routing = newRouting({ limits: createNodeLimits([], { sleep: async () => {} }) })
    let refused = 0
    proxies.ethereum.behave((exchange, response) => {
      if (exchange.body.startsWith('[')) return void response.end(error(-32600, 'invalid request'))
      const isRefused = exchange.body.includes('eth_getCode') && refused++ === 0
      return isRefused ? void response.writeHead(429).end() : passOn(exchange, response)
    })
    const answer = await find(routing)
    expect([answer.routes.length, answer.degraded, refused]).toEqual([1, false, 2])
    await find(routing)
    expect(proxies.ethereum.bodies.filter((body) => body.startsWith('['))).toHaveLength(1)
  })

  it('go to the next URL of a chain when the first fails', async () => {
    const configs = [configOf(ethereum, 'ETHEREUM', { rpcUrls: [proxies.base.url, proxies.ethereum.url] })]
    const routing = createTestRouting(configs)
    const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, ...currency })
    const answer = await routing.find({ paymentReference, wallet: WALLET })
    expect([answer.routes.length, answer.degraded]).toEqual([1, false])
  })
})

const error = (code: number, message: string) => JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } })
const TOO_MUCH = ' '.repeat(1_100_000)
const hang: ProxyBehaviour = () => {}
const word = (value: number | bigint) => value.toString(16).padStart(64, '0')

/** Faults, each with the reason and a part of the message that the answer gives for it. */
const faults: [string, ProxyBehaviour, string, string | RegExp][] = [
  ['hangs', hang, 'CHAIN_UNREACHABLE', `within ${TIMEOUT_MS} ms`],
  ['hangs in the middle', (_, response) => void response.writeHead(200).write('[{'), 'CHAIN_UNREACHABLE', 'within'],
  ['resets', (_, response) => void response.destroy(), 'CHAIN_UNREACHABLE', /did not answer: [A-Z_]+$/],
  ['answers 500', (_, response) => void response.writeHead(500).end('oops'), 'CHAIN_UNREACHABLE', 'HTTP status 500'],
  ['answers 429', (_, response) => void response.writeHead(429).end('slow down'), 'CHAIN_UNREACHABLE', 'status 429'],
  ['answers HTML', (_, response) => void response.end('<html>'), 'CHAIN_INCONSISTENT', 'not JSON'],
  ['answers nothing', (_, response) => void response.end(), 'CHAIN_INCONSISTENT', 'not JSON'],
  ['answers a number', (_, response) => void response.end('7'), 'CHAIN_INCONSISTENT', 'something else'],
  ['answers too much', (_, response) => void response.end(TOO_MUCH), 'CHAIN_INCONSISTENT', 'larger than'],
  ['answers packed, which it was not asked for', packed, 'CHAIN_INCONSISTENT', 'not JSON'],
  ['goes on and on', chunks, 'CHAIN_INCONSISTENT', 'larger than'],
  [
    'redirects',
    (_, response) => void response.writeHead(307, { location: base.rpcUrl }).end(),
    'CHAIN_UNREACHABLE',
    '',
  ],
  ['answers errors', errorsOnly, 'CHAIN_INCONSISTENT', 'eth_call failed with code -32000'],
  ['answers half', halfAnswer, 'CHAIN_INCONSISTENT', 'no answer to eth_getCode'],
  ['cuts off', cutOff, 'CHAIN_INCONSISTENT', 'not JSON'],
  ['is another chain', replace('eth_chainId', '0x1'), 'CHAIN_INCONSISTENT', 'chain id is 1, not 31338'],
  ['says no chain id', replace('eth_chainId', 'mainnet'), 'CHAIN_INCONSISTENT', 'chain id is none'],
  ['has no Multicall3', replace('eth_call', '0x'), 'CHAIN_INCONSISTENT', 'no Multicall3'],
  ['returns words', replace('eth_call', 'hello'), 'CHAIN_INCONSISTENT', 'not hexadecimal bytes'],
  ['returns null', replace('eth_call', null), 'CHAIN_INCONSISTENT', 'no data'],
  ['returns cut data', changeCall((data) => data.slice(0, -64)), 'CHAIN_INCONSISTENT', 'cut off'],
  ['returns other counts', changeCall((data) => `0x${word(32)}${word(1)}${data.slice(130)}`), 'CHAIN_INCONSISTENT', ''],
  ['points outside', replace('eth_call', `0x${word(2n ** 60n)}`), 'CHAIN_INCONSISTENT', 'points outside'],
  ['has no fee history', replace('eth_feeHistory', null), 'CHAIN_INCONSISTENT', 'no fee history'],
  ['has no tips', replace('eth_feeHistory', { baseFeePerGas: ['0x1'], reward: [[]] }), 'CHAIN_INCONSISTENT', 'tips'],
  ['has no code', replace('eth_getCode', 7), 'CHAIN_INCONSISTENT', 'no code'],
]

describe('a chain that goes wrong', () => {
  it.each(faults)(
    'is one entry of the answer, beside the routes of the other chain: %s',
    async (_, fault, reason, message) => {
      proxies.base.behave(fault)
      const answer = await find(newRouting())
      expect(answer.routes.map((route) => route.id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
      expect(answer.degraded).toBe(true)
      expect(answer.unavailable.filter((entry) => entry.chain === 'BASE')).toEqual([
        { chain: 'BASE', reason, message: expect.stringMatching(message), remedy: expect.stringMatching(/./) },
      ])
      expect(JSON.stringify(answer)).not.toContain('secret-key')
    },
  )

  it('loses the direct route when it is the chain of the request', async () => {
    proxies.ethereum.behave(hang)
    const answer = await find(newRouting())
    expect([answer.routes, answer.degraded, answer.amount]).toEqual([[], true, '10'])
    expect(wholeChains(answer).map((entry) => [entry.chain, entry.reason])).toEqual([['ETHEREUM', 'CHAIN_UNREACHABLE']])
    expect(answer.unavailable.filter((entry) => entry.chain === 'BASE').length).toBe(4)
  })

  it('fails a prepared payment with a reason that says to try again', async () => {
    const routing = newRouting()
    const question = { paymentReference: routing.paymentReference, route: 'REQUEST_NETWORK_PAYMENT' }
    const poor = routing.prepare({ ...question, wallet: freshAddress('poor') })
    await expect(poor).rejects.toMatchObject({ reason: 'ROUTE_UNAVAILABLE', message: expect.stringMatching('BALANCE') })
    proxies.ethereum.behave((_, response) => void response.destroy())
    const failing = routing.prepare({ ...question, wallet: WALLET })
    await expect(failing).rejects.toMatchObject({
      reason: 'ROUTE_NOT_QUOTED',
      message: expect.stringMatching('CHAIN_UNREACHABLE: ETHEREUM did not answer'),
    })
  })

  it('may be every chain', async () => {
    proxies.ethereum.behave((_, response) => void response.destroy())
    proxies.base.behave(hang)
    const answer = await find(newRouting())
    expect(wholeChains(answer).map((entry) => entry.reason)).toEqual(['CHAIN_UNREACHABLE', 'CHAIN_UNREACHABLE'])
    expect(answer.unavailable.length).toBe(2)
  })

  it('refuses connections', async () => {
    const gone = await startRpcProxy(base.rpcUrl)
    await gone.stop()
    const configs = [configOf(ethereum, 'ETHEREUM'), configOf(base, 'BASE', { rpcUrls: [gone.url] })]
    const routing = createTestRouting(configs)
    const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, ...currency })
    const answer = await routing.find({ paymentReference, wallet: WALLET })
    expect([answer.routes.length, wholeChains(answer)[0]?.message]).toEqual([1, 'BASE did not answer: ECONNREFUSED'])
  })

  it('gives routes again as soon as it answers', async () => {
    const routing = newRouting()
    proxies.ethereum.behave((_, response) => void response.destroy())
    expect((await find(routing)).degraded).toBe(true)
    proxies.ethereum.behave(passOn)
    const answer = await find(routing)
    expect([answer.routes.length, answer.degraded]).toEqual([1, false])
  })

  it('is logged as a warning once a minute, whoever asks', async () => {
    let nowMs = Date.now()
    const said: object[] = []
    const warn = (fields: object) => void ('reason' in fields && said.push(fields))
    const routing = newRouting({ clock: () => nowMs, logger: { ...silentLogger, warn } })
    proxies.base.behave((_, response) => void response.destroy())
    for (const times of [1, 1, 1, 2]) {
      nowMs += 20_000
      await find(routing)
      expect(said).toEqual(Array.from({ length: times }, () => ({ chain: 'BASE', reason: 'CHAIN_UNREACHABLE' })))
    }
  })

  it('is CHAIN_INCONSISTENT when its newest block is old by our clock', async () => {
    const { timestampSec } = await ethereum.client.head()
    const fresh = await find(newRouting({ clock: () => (timestampSec + 299) * 1000 }))
    const stale = await find(newRouting({ clock: () => (timestampSec + 400) * 1000 }))
    expect([fresh.routes.length, stale.routes.length, stale.degraded]).toEqual([1, 0, true])
    expect(wholeChains(stale)[0]).toMatchObject({ chain: 'ETHEREUM', reason: 'CHAIN_INCONSISTENT' })
    expect(wholeChains(stale)[0]?.message).toMatch(/its newest block is 400 seconds old$/)
  })

  it('may lack the contract of a token', async () => {
    const tokens = { USDC: { address: freshAddress('no contract') } }
    const routing = createTestRouting([configOf(ethereum, 'ETHEREUM', { tokens })])
    const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, ...currency })
    const answer = await routing.find({ paymentReference, wallet: WALLET })
    expect([answer.routes, answer.degraded]).toEqual([[], true])
    expect(answer.unavailable[0]).toMatchObject({ token: 'USDC', reason: 'CONTRACT_UNREADABLE' })
    expect(answer.unavailable[1]).toMatchObject({ token: 'ETH', reason: 'NO_SWAP_PROVIDER' })
  })

  it('may lack the contract of a feed, so the token has no price', async () => {
    const native = { symbol: 'ETH', decimals: 18, usdFeed: freshAddress('no feed'), heartbeatSeconds: 3600 }
    const routing = createTestRouting([configOf(ethereum, 'ETHEREUM', { native })])
    const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...terms, ...currency })
    const answer = await routing.find({ paymentReference, wallet: WALLET })
    expect(answer.routes[0]?.warnings.map((warning) => warning.reason)).toEqual(['GAS_UNPRICED'])
  })
})

describe('time', () => {
  it('ends at the deadline of the call, with what other chains have answered', async () => {
    proxies.base.behave(hang)
    const now = Date.now()
    const routing = newRouting({ chainTimeoutMs: 60_000, clock: () => now })
    const answer = await find(routing, { deadlineAtMs: now + 500 })
    expect(answer.routes.length).toBe(1)
    expect(wholeChains(answer)[0]?.message).toBe('BASE did not answer: nothing came within 450 ms')
  })

  it('ends when the caller hangs up, with the requests to the nodes', async () => {
    const caller = new AbortController()
    const reason = new Error('hung up')
    const closed = new Promise<void>((resolve) => {
      proxies.base.behave((_, response) => {
        response.on('close', resolve)
        caller.abort(reason)
      })
    })
    await expect(find(newRouting({ chainTimeoutMs: 60_000 }), { signal: caller.signal })).rejects.toBe(reason)
    await closed
  })

  it('does not begin for a caller who has hung up', async () => {
    const reason = new Error('gone')
    await expect(find(newRouting(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(proxies.ethereum.bodies).toEqual([])
  })
})

function replace(method: string, result: unknown): ProxyBehaviour {
  return changeResults((asked, given) => (asked === method ? result : given))
}

function changeCall(change: (data: string) => string): ProxyBehaviour {
  return changeResults((asked, given) => (asked === 'eth_call' ? change(given as string) : given))
}

async function halfAnswer({ next }: { next: () => Promise<string> }, response: { end(body: string): unknown }) {
  response.end(JSON.stringify((JSON.parse(await next()) as unknown[]).slice(0, 2)))
}

async function cutOff({ next }: { next: () => Promise<string> }, response: { end(body: string): unknown }) {
  response.end((await next()).slice(0, 500))
}

function errorsOnly({ body }: { body: string }, response: { end(body: string): unknown }) {
  const calls = JSON.parse(body) as { id: number }[]
  const failure = { code: -32_000, message: 'header not found at http://internal/secret-key' }
  response.end(JSON.stringify(calls.map(({ id }) => ({ jsonrpc: '2.0', id, error: failure }))))
}

/** In chunks, without a content-length. */
function chunks(_: unknown, response: { write(body: string): unknown; end(body: string): unknown }) {
  response.write(TOO_MUCH)
  response.end('more')
}

function packed(_: unknown, response: ServerResponse) {
  const body = gzipSync(TOO_MUCH)
  response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': body.length }).end(body)
}
