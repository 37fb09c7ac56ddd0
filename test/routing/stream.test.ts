import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { RoutesEvent } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  configOf,
  createTestRouting,
  freshAddress,
  passOn,
  type RpcProxy,
  startRpcProxy,
  type TestRouting,
} from '../support/routing.ts'

const WALLET = freshAddress('wallet')
const FIXED_TIME = Date.now()

describe('streamed routes', () => {
  let ethereum: TestChain
  let base: TestChain
  let slow: RpcProxy
  let routing: TestRouting
  let question: { paymentReference: string; wallet: string }
  beforeAll(async () => {
    ;[ethereum, base] = await Promise.all([startTestChain(), startTestChain({ chainId: 31_338, addressSeed: 1 })])
    slow = await startRpcProxy(base.rpcUrl)
    routing = createTestRouting([configOf(ethereum, 'ETHEREUM'), configOf(base, 'BASE', { rpcUrls: [slow.url] })], {
      clock: () => FIXED_TIME,
      chainTimeoutMs: 5_000,
    })
    await ethereum.fund(ethereum.tokens.USDC, WALLET, 10n ** 9n)
    await ethereum.setNativeBalance(WALLET, 10n ** 18n)
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const terms = { payee: freshAddress('payee'), amount: '10', network: 'ETHEREUM', ...currency }
    question = { paymentReference: routing.addRequest(terms), wallet: WALLET }
  })
  afterEach(() => slow.behave(passOn))
  afterAll(async () => {
    await slow.stop()
    await Promise.all([ethereum.stop(), base.stop()])
  })

  async function readAll(events: AsyncIterable<RoutesEvent>): Promise<RoutesEvent[]> {
    const all: RoutesEvent[] = []
    for await (const event of events) all.push(event)
    return all
  }

  it('are sent while a slower chain is still silent, and end with the whole answer', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    slow.behave(async (exchange, response) => {
      await released
      await passOn(exchange, response)
    })
    const events = routing.stream(question)
    const early: RoutesEvent[] = []
    while (early.length < 4) early.push((await events.next()).value as RoutesEvent)
    const route = early.find(({ kind }) => kind === 'ROUTE')
    expect(route).toMatchObject({ rank: 1, route: { id: 'REQUEST_NETWORK_PAYMENT', tags: ['CHEAPEST', 'FASTEST'] } })
    const others = early.flatMap((event) => (event.kind === 'UNAVAILABLE' ? [event.unavailable.chain] : []))
    expect(others).toEqual(['ETHEREUM', 'ETHEREUM', 'ETHEREUM'])
    release()
    const rest = await readAll(events)
    expect(rest.at(-1)).toEqual({ kind: 'ANSWER', answer: await routing.find(question) })
    expect(rest.filter(({ kind }) => kind === 'UNAVAILABLE')).toHaveLength(4)
  })

  it('report a chain that fails once', async () => {
    slow.behave((_, response) => void response.writeHead(500).end())
    const events = await readAll(routing.stream(question))
    const ofBase = events.filter((event) => event.kind === 'UNAVAILABLE' && event.unavailable.chain === 'BASE')
    expect(ofBase).toMatchObject([{ unavailable: { reason: 'CHAIN_UNREACHABLE' } }])
    expect(events.at(-1)).toMatchObject({ kind: 'ANSWER', answer: { degraded: true } })
  })

  it('leave out routes above the caller’s maxima, or of other chains and tokens than wanted', async () => {
    const reasons = async (preferences: object) => {
      const { routes, unavailable } = await routing.find({ ...question, ...preferences })
      return [routes.map(({ id }) => id), unavailable.map(({ chain, token, reason }) => `${chain} ${token} ${reason}`)]
    }
    expect(await reasons({ tokens: ['USDC'], chains: ['ETHEREUM'] })).toEqual([['REQUEST_NETWORK_PAYMENT'], []])
    expect(await reasons({ tokens: ['USDC-ETHEREUM'], maxFeeRate: '0' })).toEqual([
      [],
      ['ETHEREUM USDC FEE_ABOVE_MAXIMUM'],
    ])
    expect(await reasons({ tokens: ['dai-base'] })).toEqual([[], ['BASE DAI NO_CROSSCHAIN_PROVIDER']])
    const words = async (preferences: object) => {
      const { routes, unavailable, warnings } = await routing.find({ ...question, ...preferences })
      return [routes.length, unavailable.length, warnings.map(({ reason }) => reason)]
    }
    expect(await words({ chains: ['POLYGON'] })).toEqual([0, 0, ['FILTER_MATCHES_NOTHING']])
    expect(await words({ chains: ['BASE'], tokens: ['USDC-ETHEREUM'] })).toEqual([0, 0, ['FILTER_MATCHES_NOTHING']])
    expect(await words({ chains: ['POLYGON', 'ETHEREUM'], tokens: ['USDC'] })).toEqual([
      1,
      0,
      ['FILTER_MATCHES_NOTHING'],
    ])
    const last = (await readAll(routing.stream({ ...question, chains: ['TRON'] }))).at(-1)
    expect(last).toMatchObject({
      kind: 'ANSWER',
      answer: { routes: [], warnings: [{ reason: 'FILTER_MATCHES_NOTHING' }] },
    })
    await expect(reasons({ tokens: ['USDX'] })).rejects.toMatchObject({ reason: 'UNKNOWN_CURRENCY' })
    await expect(reasons({ chains: ['BASED'] })).rejects.toMatchObject({
      reason: 'UNKNOWN_NETWORK',
      message: expect.stringContaining('did you mean "BASE"?') as string,
    })
    await expect(readAll(routing.stream({ ...question, maxFeeRate: '-1' }))).rejects.toMatchObject({
      reason: 'INVALID_FRACTION',
    })
  })

  it('fail for the same reason as a call without a stream, where several values are invalid', async () => {
    const invalid = { ...question, wallet: '0x12', maxFeeRate: '-1' }
    for (const ask of [() => routing.find(invalid), () => readAll(routing.stream(invalid))]) {
      await expect(ask()).rejects.toMatchObject({ reason: 'INVALID_ADDRESS' })
    }
  })
})
