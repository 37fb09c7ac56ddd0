/** Screening: what oracles list gets no route on any chain, and what they do not say is no pass. */
import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { encodeListing } from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { RoutesEvent } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  canonical,
  configOf,
  createTestRouting,
  type EvmAddress,
  freshAddress,
  type ProxyBehaviour,
  passOn,
  type RpcProxy,
  startRpcProxy,
  type TestRouting,
} from '../support/routing.ts'

const CHAIN_TIMEOUT_MS = 1_000

let ethereum: TestChain
let base: TestChain
let proxies: readonly [RpcProxy, RpcProxy]
let wallet: EvmAddress
let wallets = 0

beforeAll(async () => {
  ;[ethereum, base] = await Promise.all([startTestChain(), startTestChain({ chainId: 31_338, addressSeed: 1 })])
  proxies = [await startRpcProxy(ethereum.rpcUrl), await startRpcProxy(base.rpcUrl)]
})
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.stop()))
  await Promise.all([ethereum.stop(), base.stop()])
})
beforeEach(async () => {
  wallet = freshAddress(`screened ${wallets++}`)
  await ethereum.fund(ethereum.tokens.USDC, wallet, 10n ** 9n)
  await ethereum.setNativeBalance(wallet, 10n ** 18n)
})
afterEach(() => {
  for (const proxy of proxies) {
    proxy.behave(passOn)
    proxy.bodies.length = 0
  }
})

async function eventsOf(stream: AsyncIterable<RoutesEvent>): Promise<RoutesEvent[]> {
  const events: RoutesEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** The beginning of an answer that does not end. */
function trickle(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 1_000)
  response.write('[')
  response.once('close', () => clearInterval(timer))
}

const oracleOf = ({ deployed }: TestChain) => ({ oracle: canonical(deployed.screeningOracle) })

/** @param screening - of ETHEREUM, where the request is, and of BASE */
function open(...screening: readonly [ChainConfig['screening'], ChainConfig['screening']]): {
  routing: TestRouting
  question: { paymentReference: string; wallet: string }
} {
  const configs = [configOf(ethereum, 'ETHEREUM'), configOf(base, 'BASE')].map((config, place) => ({
    ...config,
    rpcUrls: [proxies[place]?.url ?? ''],
    screening: screening[place],
  }))
  const routing = createTestRouting(configs, { chainTimeoutMs: CHAIN_TIMEOUT_MS })
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM', ...currency }
  return { routing, question: { paymentReference: routing.addRequest(terms), wallet } }
}

const list = (chain: TestChain, isListed: boolean) =>
  chain.send(chain.deployer, encodeListing(chain.deployed.screeningOracle, [wallet], isListed))

async function answer(opened: ReturnType<typeof open>, more: object = {}) {
  const { routing, question } = opened
  const { routes, warnings, unavailable, degraded } = await routing.find({ ...question, ...more })
  const closed = unavailable.filter(({ token }) => token === undefined)
  return {
    routes: routes.map(({ id }) => id),
    warnings: warnings.map(({ reason }) => reason),
    closed: closed.map(({ chain, reason }) => `${chain} ${reason}`),
    degraded,
  }
}

const DIRECT = { routes: ['REQUEST_NETWORK_PAYMENT'], warnings: [], closed: [], degraded: false }

describe('a wallet that an oracle lists', () => {
  it.each(['ETHEREUM', 'BASE'] as const)('of %s has no routes on any chain, and cannot pay', async (name) => {
    const opened = open(oracleOf(ethereum), oracleOf(base))
    const chain = name === 'BASE' ? base : ethereum
    expect(await answer(opened)).toEqual(DIRECT)
    await list(chain, true)
    const { routing, question } = opened
    for (const more of [{}, { chains: ['ETHEREUM'] }, { tokens: ['USDC-ETHEREUM'] }]) {
      const { routes, unavailable, warnings, degraded } = await routing.find({ ...question, ...more })
      expect([routes, unavailable, degraded]).toEqual([[], [], false])
      expect(warnings.map(({ reason }) => reason)).toEqual(['PAYER_SCREENED'])
      expect(warnings[0]?.metadata).toMatchObject({ chain: name, at: expect.stringMatching(/^\d{4}-.*Z$/) })
    }
    const payments = [{}, { route: 'REQUEST_NETWORK_PAYMENT' }, { chain: 'ETHEREUM', token: 'DAI' }]
    for (const more of payments) {
      await expect(routing.prepare({ ...question, ...more })).rejects.toMatchObject({
        reason: 'PAYER_SCREENED',
        violations: [{ field: 'wallet' }],
      })
    }
    await list(chain, false)
    expect(await answer(opened)).toEqual(DIRECT)
  })

  it('is sent no route in a stream, however late the oracle answers', async () => {
    const { routing, question } = open(oracleOf(ethereum), oracleOf(base))
    await list(base, true)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    proxies[1].behave(async (exchange, response) => {
      await released
      await passOn(exchange, response)
    })
    setTimeout(release, 300)
    const events = await eventsOf(routing.stream(question))
    expect(events.map(({ kind }) => kind)).toEqual(['ANSWER'])
    expect(events[0]).toMatchObject({ answer: { routes: [], warnings: [{ reason: 'PAYER_SCREENED' }] } })
  })

  it('costs no request more: one for each chain', async () => {
    const opened = open(oracleOf(ethereum), oracleOf(base))
    for (const more of [{}, {}, { chains: ['ETHEREUM'] }]) {
      for (const proxy of proxies) proxy.bodies.length = 0
      await answer(opened, more)
      expect(proxies.map(({ bodies }) => bodies.length)).toEqual([1, 1])
    }
  })
})

describe('an oracle that does not say', () => {
  const code = (runtime: string) => async (chain: TestChain) => {
    const oracle = freshAddress(`oracle ${runtime} ${chain.chainId}`)
    await chain.client.rpc.call('anvil_setCode', [oracle, `0x${runtime}`])
    return { oracle }
  }
  const kinds: readonly [string, (chain: TestChain) => Promise<{ oracle: EvmAddress }>][] = [
    ['is no contract', async () => ({ oracle: freshAddress('no oracle') })],
    ['reverts', code('60006000fd')],
    ['answers nothing', code('00')],
    ['answers 2', code('600260005260206000f3')],
    ['answers with all bits', code('60001960005260206000f3')],
    ['answers a word too many', code('600160005260406000f3')],
    ['answers a byte too few', code('6001600052601f6000f3')],
  ]

  it.each(kinds)('and %s, closes its chain', async (_, deploy) => {
    const silent = { routes: [], warnings: [], degraded: true }
    // All routes end on ETHEREUM.
    const closed = ['ETHEREUM SCREENING_UNAVAILABLE', 'BASE SCREENING_UNAVAILABLE']
    expect(await answer(open(await deploy(ethereum), oracleOf(base)))).toEqual({ ...silent, closed })
    expect(await answer(open(oracleOf(ethereum), await deploy(base)))).toEqual({
      ...DIRECT,
      closed: ['BASE SCREENING_UNAVAILABLE'],
      degraded: true,
    })
    const opened = open(await deploy(ethereum), undefined)
    await expect(opened.routing.prepare(opened.question)).rejects.toMatchObject({ reason: 'ROUTE_NOT_QUOTED' })
  })

  it('and has a chain that does not answer, closes that', async () => {
    const opened = open(oracleOf(ethereum), oracleOf(base))
    proxies[1].behave((_, response) => void response.writeHead(500).end())
    expect(await answer(opened)).toEqual({ ...DIRECT, closed: ['BASE CHAIN_UNREACHABLE'], degraded: true })
  })

  /** What a call came to, which must not take longer than a chain may, with what a loaded machine needs. */
  async function inTime<T>(call: Promise<T>): Promise<T> {
    const began = performance.now()
    const outcome = await call
    expect(performance.now() - began).toBeLessThan(CHAIN_TIMEOUT_MS + 2_000)
    return outcome
  }

  it.each([
    ['whose node never answers', () => {}],
    ['whose node answers a byte a second', (_, response) => trickle(response)],
    ['that computes without an end', passOn],
  ] as const satisfies readonly [string, ProxyBehaviour][])(
    '%s holds nobody longer than its chain may take, and lets nobody pass',
    async (_, behave) => {
      const slow = behave === passOn ? await code('5b600056')(base) : oracleOf(base)
      // ETHEREUM, where all routes end, has no oracle of its own.
      const alone = open(undefined, slow)
      const both = open(oracleOf(ethereum), slow)
      proxies[1].behave(behave)
      const late = { routes: [], warnings: [], degraded: true }
      const { closed, ...found } = await inTime(answer(alone))
      expect([found, closed]).toEqual([
        late,
        expect.arrayContaining(['ETHEREUM SCREENING_UNAVAILABLE', expect.stringMatching(/^BASE CHAIN_/)]),
      ])
      const events = await inTime(eventsOf(alone.routing.stream(alone.question)))
      expect(events.filter(({ kind }) => kind === 'ROUTE')).toEqual([])
      for (const more of [{}, { route: 'REQUEST_NETWORK_PAYMENT' }, { chain: 'ETHEREUM', token: 'USDC' }]) {
        const prepared = alone.routing.prepare({ ...alone.question, ...more })
        const error = await inTime(prepared.catch((thrown: unknown) => thrown))
        expect(error).toMatchObject({
          reason: 'ROUTE_NOT_QUOTED',
          metadata: { why: expect.stringMatching(/^SCREENING_UNAVAILABLE/) },
        })
      }
      // A chain whose own oracle answered pays on, but waits as long: the other one may list the wallet.
      expect((await inTime(answer(both))).routes).toEqual(DIRECT.routes)
      const prepared = await inTime(both.routing.prepare(both.question))
      expect(prepared.route.id).toBe('REQUEST_NETWORK_PAYMENT')
    },
  )

  it('still lists a wallet that the other one lists', async () => {
    const opened = open({ oracle: freshAddress('no oracle') }, oracleOf(base))
    await list(base, true)
    expect(await answer(opened)).toEqual({ routes: [], warnings: ['PAYER_SCREENED'], closed: [], degraded: false })
  })
})

describe('a chain without an oracle', () => {
  it('goes by the oracles of other chains, and is closed where none of them says', async () => {
    expect(await answer(open(undefined, oracleOf(base)))).toEqual(DIRECT)
    expect(await answer(open(undefined, { oracle: freshAddress('no oracle') }))).toEqual({
      routes: [],
      warnings: [],
      closed: ['ETHEREUM SCREENING_UNAVAILABLE', 'BASE SCREENING_UNAVAILABLE'],
      degraded: true,
    })
    await list(base, true)
    expect((await answer(open(undefined, oracleOf(base)))).warnings).toEqual(['PAYER_SCREENED'])
  })

  it('asks nobody where no chain has one', async () => {
    await list(base, true)
    expect(await answer(open(undefined, undefined))).toEqual(DIRECT)
    expect(proxies.some(({ bodies }) => bodies.some((body) => body.includes('df592f7d')))).toBe(false)
  })
})

it('before a wallet is known, there are ways to pay', async () => {
  const { routing, question } = open(oracleOf(ethereum), oracleOf(base))
  const { routes, warnings } = await routing.findOptions(question.paymentReference)
  expect([routes[0]?.id, warnings]).toEqual(['REQUEST_NETWORK_PAYMENT', []])
})
