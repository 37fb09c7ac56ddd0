import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { Address } from '../../src/domain/address.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { Logger } from '../../src/domain/logger.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { silentLogger } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'
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

const TIMEOUT_MS = 2_000
const WALLET = freshAddress('wallet')
const wallets = (count: number) => Array.from({ length: count }, (_, i) => freshAddress(`wallet ${i}`))

let chain: TestChain
let first: RpcProxy
let second: RpcProxy
let headSec: number

beforeAll(async () => {
  chain = await startTestChain()
  ;[first, second] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  for (const wallet of [WALLET, ...wallets(32)]) await chain.fund(chain.tokens.USDC, wallet, 1_000_000_000n)
  headSec = (await chain.client.head()).timestampSec
})
afterAll(async () => {
  await Promise.all([first.stop(), second.stop()])
  await chain.stop()
})
afterEach(() => {
  for (const proxy of [first, second]) {
    proxy.behave(passOn)
    proxy.bodies.length = 0
  }
})

interface ServedRouting extends TestRouting {
  readonly paymentReference: Hex
  /** Messages logged about nodes. */
  readonly said: string[]
  /** Moves the clock forward. */
  wait(ms: number): void
  ask(wallet?: Address, signal?: AbortSignal): ReturnType<TestRouting['find']>
}

/** A new routing with its own clock. */
function newRouting(overrides: Partial<Omit<ChainConfig, 'tokens'>> = {}): ServedRouting {
  let nowMs = headSec * 1_000
  const said: string[] = []
  const log: Logger['warn'] = (fields, message) => {
    if ('node' in fields) said.push(message)
  }
  const routing = createTestRouting([configOf(chain, 'ETHEREUM', { rpcUrls: [first.url], ...overrides })], {
    chainTimeoutMs: TIMEOUT_MS,
    clock: () => nowMs,
    logger: { ...silentLogger, warn: log, info: log },
  })
  const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM' }
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const paymentReference = routing.addRequest({ ...terms, ...currency })
  return {
    ...routing,
    paymentReference,
    said,
    wait(ms) {
      nowMs += ms
    },
    ask: (wallet = WALLET, signal = new AbortController().signal) =>
      routing.find({ paymentReference, wallet }, { signal }),
  }
}

const bothUrls = () => ({ rpcUrls: [first.url, second.url] })
/** HTTP requests so far, by URL. */
const counts = () => [first.bodies.length, second.bodies.length]
const hang: ProxyBehaviour = () => {}
const reset: ProxyBehaviour = (_, response) => void response.destroy()
const methodsIn = (body: string) => (JSON.parse(body) as { method: string }[]).map(({ method }) => method)
const walletsIn = (body: string) => methodsIn(body).filter((method) => method === 'eth_getCode').length

async function isServed(answer: ReturnType<TestRouting['find']>): Promise<boolean> {
  const { routes, degraded } = await answer
  return routes.length === 1 && !degraded
}

const FAILS = 'the node fails and is left alone for a while'
const ANSWERS = 'the node answers again'

describe('requests to a node', () => {
  it('are one for all calls of a wallet at the same time', async () => {
    const routing = newRouting()
    const served = await Promise.all(Array.from({ length: 20 }, () => isServed(routing.ask())))
    expect([served.every(Boolean), first.bodies.length]).toEqual([true, 1])
  })

  it('are one for calls that come while it is under way', async () => {
    const routing = newRouting()
    const later: Promise<boolean>[] = []
    first.behave(async (exchange, response) => {
      later.push(isServed(routing.ask()), isServed(routing.ask()))
      await new Promise((resolve) => setImmediate(resolve))
      await passOn(exchange, response)
    })
    expect(await isServed(routing.ask())).toBe(true)
    expect([await Promise.all(later), first.bodies.length]).toEqual([[true, true], 1])
  })

  it('are two for 32 wallets that ask at once', async () => {
    const routing = newRouting()
    const answers = await Promise.all(wallets(32).map((wallet) => routing.ask(wallet)))
    expect(answers.every(({ routes, degraded }) => routes.length === 1 && !degraded)).toBe(true)
    expect(first.bodies.map(walletsIn)).toEqual([16, 16])
  })

  it('are one with the quotes of every provider in it', async () => {
    const codeHash: Hex = `0x${'7'.repeat(64)}`
    const [router, factory, quoter] = ['router', 'factory', 'quoter'].map((name) => freshAddress(name))
    if (router === undefined || factory === undefined || quoter === undefined) throw new TypeError('three were made')
    const swapToPay = {
      kind: 'ERC20_SWAP_TO_PAY',
      version: '0.4.0',
      address: freshAddress('swap'),
      fromBlock: 0,
    } as const
    const routing = newRouting({
      contracts: [...configOf(chain, 'ETHEREUM').contracts, swapToPay],
      swapV2: { router, factory, pairCodeHash: codeHash, feeBps: 30, through: ['DAI'] },
      swapV3: { factory, quoter, router, poolCodeHash: codeHash, fees: [100, 500, 3000, 10_000] },
    })
    const { routes, unavailable, degraded } = await routing.ask()
    expect([routes.length, degraded, first.bodies.length]).toEqual([1, false, 1])
    expect(new Set(unavailable.map(({ provider }) => provider))).toEqual(new Set(['uniswap-v2', 'uniswap-v3']))
  })

  it('give several wallets the same answers as each alone', async () => {
    const [poor, rich] = [freshAddress('poor'), WALLET]
    const alone = [await newRouting().ask(poor), await newRouting().ask(rich)]
    const routing = newRouting()
    expect(await Promise.all([routing.ask(poor), routing.ask(rich)])).toEqual(alone)
    expect(first.bodies.map(walletsIn)).toEqual([1, 1, 2])
  })

  it('are divided where they are too large for a node, and smaller from then on', async () => {
    const tooMuch: [string, ProxyBehaviour][] = [
      ['a batch of five calls', (_, response) => void response.writeHead(413).end()],
      ['an eth_call for more than two', outOfGas],
    ]
    for (const [what, refuse] of tooMuch) {
      const routing = newRouting()
      first.bodies.length = 0
      first.behave((exchange, response) => (walletsIn(exchange.body) > 2 ? refuse : passOn)(exchange, response))
      const ask = () => Promise.all(wallets(8).map((wallet) => isServed(routing.ask(wallet))))
      expect([what, (await ask()).every(Boolean)]).toEqual([what, true])
      expect(first.bodies.map(walletsIn).toSorted((a, b) => a - b)).toEqual([2, 2, 2, 2, 4, 4, 8])
      expect((await ask()).every(Boolean)).toBe(true)
      expect(first.bodies.slice(7).map(walletsIn)).toEqual([2, 2, 2, 2])
    }
  })

  it('wait for the rate limit of the URL, and are then sent together', async () => {
    const routing = newRouting({ requestsPerSecond: 2 })
    for (let call = 1; call <= 2; call++) expect(await isServed(routing.ask())).toBe(true)
    const later = wallets(3).map(async (wallet, i) => {
      for (let pass = 0; pass < i; pass++) await new Promise((resolve) => setImmediate(resolve))
      return isServed(routing.ask(wallet))
    })
    expect(await Promise.all(later)).toEqual([true, true, true])
    expect(first.bodies.map(walletsIn)).toEqual([1, 1, 3])
  })
})

describe('a caller who leaves', () => {
  it('ends nothing that others wait for', async () => {
    const routing = newRouting()
    const caller = new AbortController()
    const reason = new Error('hung up')
    first.behave(async (exchange, response) => {
      caller.abort(reason)
      await passOn(exchange, response)
    })
    const [gone, ...others] = await Promise.allSettled([
      routing.ask(WALLET, caller.signal),
      isServed(routing.ask()),
      isServed(routing.ask(wallets(1)[0])),
    ])
    expect(gone).toEqual({ status: 'rejected', reason })
    expect(others.map((each) => each.status === 'fulfilled' && each.value)).toEqual([true, true])
    expect(first.bodies.length).toBe(1)
  })

  it('does not end the scan of the next caller', async () => {
    const routing = newRouting()
    const caller = new AbortController()
    first.behave((_, response) => {
      response.on('close', () => first.behave(passOn))
      caller.abort(new Error('hung up'))
    })
    await expect(routing.ask(WALLET, caller.signal)).rejects.toThrow('hung up')
    first.behave(passOn)
    expect(await isServed(routing.ask())).toBe(true)
  })

  it('does not count as a failure of the node', async () => {
    const routing = newRouting()
    for (let call = 1; call <= 5; call++) {
      const caller = new AbortController()
      first.behave(() => caller.abort(new Error('hung up')))
      await expect(routing.ask(WALLET, caller.signal)).rejects.toThrow('hung up')
    }
    first.behave(passOn)
    expect([await isServed(routing.ask()), routing.said]).toEqual([true, []])
  })
})

describe('a node that fails', () => {
  it('is tried again although another answered first when both were due', async () => {
    const routing = newRouting(bothUrls())
    for (const proxy of [first, second]) proxy.behave(reset)
    for (let call = 1; call <= 3; call++) expect(await isServed(routing.ask())).toBe(false)
    for (const proxy of [first, second]) proxy.behave(passOn)
    routing.wait(1_000)
    expect(await isServed(routing.ask())).toBe(true)
    first.behave(reset)
    // The second is asked beside the first, and serves once it has answered.
    await vi.waitFor(async () => expect(await isServed(routing.ask())).toBe(true), PATIENCE)
  })

  it('costs the full timeout once when it is silent, then no time, and is tried again', async () => {
    const routing = newRouting()
    first.behave(hang)
    expect((await routing.ask()).unavailable[0]).toMatchObject({ reason: 'CHAIN_UNREACHABLE' })
    for (let call = 1; call <= 5; call++) {
      const { unavailable, degraded } = await routing.ask()
      expect([degraded, unavailable.length]).toEqual([true, 1])
      expect(unavailable[0]).toMatchObject({ chain: 'ETHEREUM', reason: 'CHAIN_UNREACHABLE' })
      expect(unavailable[0]?.message).toMatch(/left alone for a moment$/)
    }
    expect([first.bodies.length, routing.said]).toEqual([1, [FAILS]])

    routing.wait(1_000)
    first.behave(passOn)
    expect([await isServed(routing.ask()), routing.said]).toEqual([true, [FAILS, ANSWERS]])
  })

  it('is probed by one call at a time, at growing intervals, and logged once', async () => {
    const routing = newRouting()
    first.behave((_, response) => void response.writeHead(429, { 'retry-after': '1' }).end())
    await routing.ask()
    let waitedSec = 0
    while (first.bodies.length < 7) {
      routing.wait(1_000)
      waitedSec += 1
      await Promise.all(wallets(3).map((wallet) => routing.ask(wallet)))
    }
    // After 1, 2, 4, 8, 16 and 30 seconds.
    expect([waitedSec, routing.said]).toEqual([61, [FAILS]])
  })

  it('is left alone for as long as it asks', async () => {
    const routing = newRouting()
    first.behave((_, response) => void response.writeHead(429, { 'retry-after': '20' }).end())
    await routing.ask()
    first.behave(passOn)
    routing.wait(19_999)
    expect((await routing.ask()).unavailable[0]).toMatchObject({ reason: 'CHAIN_UNREACHABLE' })
    expect(first.bodies.length).toBe(1)
    routing.wait(1)
    expect([await isServed(routing.ask()), first.bodies.length]).toEqual([true, 2])
  })

  it.each([
    ['resets', reset],
    ['500', (_, response) => void response.writeHead(500).end()],
    ['garbage', (_, response) => void response.end('<html>')],
  ] as [string, ProxyBehaviour][])('is left alone after three quick failures in a row: %s', async (_, fault) => {
    const routing = newRouting()
    for (const behaviour of [fault, fault, passOn, fault, fault, fault]) {
      first.behave(behaviour)
      await routing.ask()
    }
    const asked = first.bodies.length
    await routing.ask()
    expect([first.bodies.length - asked, routing.said]).toEqual([0, [FAILS]])
  })
})

it('a closed idle connection is not a failure of the node', async () => {
  const routing = newRouting()
  expect(await isServed(routing.ask())).toBe(true)
  first.behave((_, response) => {
    first.behave(passOn)
    response.destroy()
  })
  expect([await isServed(routing.ask()), first.bodies.length]).toEqual([true, 3])
})

describe('a chain with two URLs', () => {
  it('answers in full while the first is silent, at once from then on, and returns to it', async () => {
    const routing = newRouting(bothUrls())
    first.behave(hang)
    expect([await isServed(routing.ask()), counts()]).toEqual([true, [1, 1]])
    for (let call = 1; call <= 5; call++) expect(await isServed(routing.ask())).toBe(true)
    expect([counts(), routing.said]).toEqual([[1, 6], [FAILS]])

    first.behave(passOn)
    routing.wait(1_000)
    expect(await isServed(routing.ask())).toBe(true)
    await expect.poll(() => routing.said).toEqual([FAILS, ANSWERS])
    second.bodies.length = 0
    expect([await isServed(routing.ask()), second.bodies.length]).toEqual([true, 0])
  })

  it('asks the second sooner for a call with little time', async () => {
    const routing = newRouting(bothUrls())
    first.behave(hang)
    const { paymentReference } = routing
    // 50 ms of the deadline are kept back for the answer itself.
    const deadlineAtMs = headSec * 1_000 + TIMEOUT_MS / 2 + 50
    const { routes, degraded } = await routing.find({ paymentReference, wallet: WALLET }, { deadlineAtMs })
    expect([routes.length, degraded, counts()]).toEqual([1, false, [1, 1]])
    for (let call = 1; call <= 3; call++) await routing.find({ paymentReference, wallet: WALLET }, { deadlineAtMs })
    // It was silent three times in a row, however briefly.
    expect([counts(), routing.said]).toEqual([[3, 4], [FAILS]])
  })

  const faults: [string, ProxyBehaviour][] = [
    ['resets', reset],
    ['500', (_, response) => void response.writeHead(500).end()],
    ['429', (_, response) => void response.writeHead(429, { 'retry-after': '9' }).end()],
    ['garbage', (_, response) => void response.end('<html>')],
    ['half an answer', halfAnswer],
    ['another chain', changeResults((method, result) => (method === 'eth_chainId' ? '0x1' : result))],
    ['no Multicall3', changeResults((method, result) => (method === 'eth_call' ? '0x' : result))],
  ]
  it.each(faults)('answers in full in spite of the first: %s', async (_, fault) => {
    const routing = newRouting(bothUrls())
    first.behave(fault)
    for (let call = 1; call <= 5; call++) expect(await isServed(routing.ask())).toBe(true)
    // A reset of an idle connection is tried once more.
    expect(counts()[0]).toBeLessThanOrEqual(4)
    expect([counts()[1], routing.said]).toEqual([5, [FAILS]])
  })

  it('asks the second when the head of the first seems old, and takes the newer head', async () => {
    const routing = newRouting(bothUrls())
    first.behave(olderBy(200))
    for (let call = 1; call <= 4; call++) expect(await isServed(routing.ask())).toBe(true)
    // Once beside the second, once to be found out to be behind.
    expect([counts(), routing.said]).toEqual([[2, 4], [FAILS]])
  })

  it('accepts an old head when the second has no newer one', async () => {
    const routing = newRouting(bothUrls())
    routing.wait(200_000)
    for (let call = 1; call <= 4; call++) expect(await isServed(routing.ask())).toBe(true)
    expect([counts(), routing.said]).toEqual([[4, 1], []])
  })

  it('accepts an old head when the second is silent', async () => {
    const routing = newRouting(bothUrls())
    routing.wait(200_000)
    second.behave(hang)
    for (let call = 1; call <= 3; call++) expect(await isServed(routing.ask())).toBe(true)
    expect([counts(), routing.said]).toEqual([[3, 1], []])
  })

  it('tells why the first failed when all fail', async () => {
    const routing = newRouting(bothUrls())
    first.behave((_, response) => void response.writeHead(503).end())
    second.behave((_, response) => void response.writeHead(500).end())
    const { unavailable, degraded } = await routing.ask()
    expect([degraded, unavailable[0]?.message]).toEqual([true, 'ETHEREUM did not answer: HTTP status 503'])
    expect(counts()).toEqual([1, 1])
  })
})

async function outOfGas({ body, next }: { body: string; next: () => Promise<string> }, response: ServerResponse) {
  const place = methodsIn(body).indexOf('eth_call')
  const answers = JSON.parse(await next()) as { id: number }[]
  const error = { code: -32_000, message: 'out of gas' }
  response.end(JSON.stringify(answers.map(({ id, ...rest }) => (id === place ? { id, error } : { id, ...rest }))))
}

async function halfAnswer({ next }: { next: () => Promise<string> }, response: { end(body: string): unknown }) {
  response.end(JSON.stringify((JSON.parse(await next()) as unknown[]).slice(0, 2)))
}

/** The node with its newest block some seconds older. */
function olderBy(seconds: number): ProxyBehaviour {
  const word = (value: number) => value.toString(16).padStart(64, '0')
  return changeResults((method, result) =>
    method === 'eth_call' ? (result as string).replaceAll(word(headSec), word(headSec - seconds)) : result,
  )
}
