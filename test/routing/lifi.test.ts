import { encodeFunctionData, keccak256, parseAbi, zeroAddress } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { encodeApprove } from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { decodeAcrossDeposit } from '../../src/contracts/lifi-calldata.ts'
import { addDecimals, type Decimal, parseAmount, parseDecimal } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { Route, RoutesAnswer } from '../../src/domain/route.ts'
import { WaybillError } from '../../src/errors/waybill-error.ts'
import type { LossCap } from '../../src/routing/providers/lifi/lifi-costs.ts'
import type { QuoteCheck } from '../../src/routing/providers/lifi/lifi-question.ts'
import type { RoutingOptions } from '../../src/routing/routing.ts'
import { startTestChain, type TestChain, type TestToken } from '../support/chains/chain.ts'
import { deployLifi, lifiConfigOf, type TestLifi } from '../support/chains/lifi-contracts.ts'
import { takeRoute } from '../support/chains/take-route.ts'
import { type LifiBehaviour, type LifiServer, quoteWell, sendJson, startLifiServer } from '../support/lifi-server.ts'
import {
  canonical,
  configOf,
  createTestRouting,
  type EvmAddress,
  freshAddress,
  type TestRouting,
} from '../support/routing.ts'
import { LIES, type Lie } from './lifi-lies.ts'

const COIN = 10n ** 18n
const UNIT = 10n ** 6n
const API_KEY = 'a-key-that-nobody-sees'
const ID = 'ETHEREUM_BASE_USDT_USDC'

const EXECUTOR = parseAbi(['function deliver(bytes32 id, uint256 until, address token, uint256 amount, bytes message)'])
const encodeDelivered = (token: Hex, amount: bigint, message: Hex) =>
  encodeFunctionData({
    abi: EXECUTOR,
    functionName: 'deliver',
    args: [keccak256(message), 2n ** 40n, token, amount, message],
  })

describe('a payment from another chain', () => {
  let near: TestChain
  let far: TestChain
  let lifi: LifiServer
  let nearLifi: TestLifi
  let farLifi: TestLifi
  let payer: EvmAddress
  let payers = 0
  let nowMs = Date.now()
  let coupons: { address: Hex; symbol: string; decimals: number }[]
  beforeAll(async () => {
    near = await startTestChain({ chainId: 31_337 })
    far = await startTestChain({ chainId: 31_338, addressSeed: 7 })
    const usd = (value: bigint) => value * 10n ** 8n
    const known = (
      chain: TestChain,
      { address, symbol, decimals }: Pick<TestToken, 'address' | 'symbol' | 'decimals'>,
    ) => ({
      chainId: chain.chainId,
      address,
      symbol,
      decimals,
      usd: usd(1n),
    })
    const coin = { chainId: near.chainId, address: zeroAddress, symbol: 'ETH', decimals: 18, usd: usd(3_000n) }
    const { USDC, USDT, DAI } = near.tokens
    const symbols = Array.from({ length: 9 }, (_, i) => `COUPON${i}`)
    coupons = []
    for (const symbol of symbols)
      coupons.push({ ...(await near.deployToken({ symbol, decimals: 6 })), symbol, decimals: 6 })
    ;[nearLifi, farLifi] = await Promise.all([deployLifi(near), deployLifi(far)])
    lifi = await startLifiServer({
      tokens: [coin, ...[USDC, USDT, DAI, ...coupons].map((token) => known(near, token)), known(far, far.tokens.USDC)],
      diamonds: { [near.chainId]: nearLifi.diamond },
      feeForwarders: { [near.chainId]: nearLifi.feeForwarder },
      receivers: { [far.chainId]: farLifi.receiver },
    })
  })
  afterAll(() => Promise.all([near, far, lifi].map((each) => each?.stop())))
  beforeEach(async () => {
    payer = freshAddress(`payer lifi ${payers++}`)
    await near.setNativeBalance(payer, COIN / 100n)
    await near.client.rpc.call('anvil_impersonateAccount', [payer])
    await near.fund(near.tokens.USDT, payer, 1_000n * UNIT)
    lifi.behave(quoteWell)
    lifi.charge({})
  })
  afterEach(() => {
    nowMs = Date.now()
  })

  const configs = () => [
    configOf(near, 'ETHEREUM', lifiConfigOf(nearLifi)),
    configOf(far, 'BASE', lifiConfigOf(farLifi)),
  ]
  interface Opening extends Pick<RoutingOptions, 'chainTimeoutMs' | 'logger'> {
    readonly lossCap: LossCap
    readonly timeoutMs: number
    readonly apiKey: string
    readonly configs: ReturnType<typeof configs>
  }
  const open = (more: Partial<Opening> = {}) =>
    createTestRouting(more.configs ?? configs(), {
      clock: () => nowMs,
      ...(more.logger && { logger: more.logger }),
      ...(more.chainTimeoutMs && { chainTimeoutMs: more.chainTimeoutMs }),
      lifi: {
        url: lifi.url,
        timeoutMs: more.timeoutMs ?? 2_000,
        ...(more.apiKey && { apiKey: more.apiKey }),
        ...(more.lossCap && { lossCap: more.lossCap }),
      },
    })

  const ask = (routing: TestRouting, amount = '100', currency = 'USDC-BASE') => {
    const payee = freshAddress(`payee of ${payer}`)
    const currencies = { invoiceCurrency: currency, paymentCurrency: currency }
    const paymentReference = routing.addRequest({ payee, amount, network: 'BASE', ...currencies })
    return { paymentReference, wallet: payer as string, chains: ['ETHEREUM'] }
  }
  const questionsSince = (start: number) => lifi.asked.slice(start)
  const reasonOf = ({ unavailable }: RoutesAnswer, token = 'USDT') =>
    unavailable.find((entry) => entry.token === token && entry.provider === 'lifi')

  it('asks for exactly the amount that the call on the destination chain pays out', async () => {
    const start = lifi.asked.length
    const routing = open({ apiKey: API_KEY })
    const fee = { feePercentage: '0.5', feeAddress: freshAddress('platform') }
    const { routes } = await routing.find({ ...ask(routing), ...fee })
    expect(routes.map(({ id }) => id)).toEqual([ID])
    const [question, ...others] = questionsSince(start)
    expect(others).toEqual([])
    const proxy = far.contracts.erc20FeeProxy.toLowerCase()
    const usdc = far.tokens.USDC.address.toLowerCase()
    expect(question).toMatchObject({
      fromChain: 31_337,
      fromToken: near.tokens.USDT.address.toLowerCase(),
      fromAddress: payer,
      toChain: 31_338,
      toToken: usdc,
      toAmount: '100500000',
      toFallbackAddress: payer,
      slippage: '0.005',
      allowBridges: ['across'],
      allowExchanges: ['none'],
      contractCalls: [
        { fromAmount: '100500000', fromTokenAddress: usdc, toContractAddress: proxy, toApprovalAddress: proxy },
      ],
    })
    expect(lifi.headers.at(-1)).toMatchObject({ 'x-lifi-api-key': API_KEY })
  })

  it.each(['USDT', 'ETH'])(
    'spends exactly the quoted %s, and the call on the destination chain pays the request',
    async (token) => {
      await near.setNativeBalance(payer, COIN)
      lifi.charge({ bridgeFee: 1_000n, protocolFee: 2_500n, impact: 300n })
      const routing = open()
      const fee = { feePercentage: '0.5', feeAddress: freshAddress(`platform of ${payer}`) }
      const question = { ...ask(routing), ...fee }
      const prepared = await routing.prepare({ ...question, route: `ETHEREUM_BASE_${token}_USDC` })
      const { route } = prepared
      expect([route.atomic, route.readiness.steps]).toEqual([false, token === 'ETH' ? ['PAY'] : ['APPROVE', 'PAY']])
      const held = async () => [
        token === 'ETH' ? 0n : await near.balanceOf(near.tokens.USDT, payer),
        await near.nativeBalance(payer),
      ]
      const [tokensBefore = 0n, coinsBefore = 0n] = await held()
      const taken = await takeRoute(near, payer, prepared)
      const [tokens = 0n, coins = 0n] = await held()
      const gas = taken.reduce((sum, step) => sum + step.gasCost, 0n)
      const spent = parseAmount(route.sourceAmount, token === 'ETH' ? 18 : 6) ?? 0n
      const lost = [tokensBefore - tokens, coinsBefore - coins - gas]
      expect(lost).toEqual(token === 'ETH' ? [0n, spent] : [spent, 0n])

      const message = decodeAcrossDeposit(prepared.transactions.at(-1)?.data as Hex)?.across.message as Hex
      const relayer = far.wallets[1]
      const amount = (1005n * UNIT) / 10n
      await far.fund(far.tokens.USDC, relayer, amount)
      await far.send(relayer, encodeApprove(far.tokens.USDC.address, farLifi.receiver, amount))
      await far.send(relayer, { to: farLifi.receiver, data: encodeDelivered(far.tokens.USDC.address, amount, message) })
      expect(await far.balanceOf(far.tokens.USDC, freshAddress(`payee of ${payer}`))).toBe(100n * UNIT)
      expect(await far.balanceOf(far.tokens.USDC, fee.feeAddress)).toBe(UNIT / 2n)
    },
  )

  it('splits the cost into fees and price impact, which add up to what leaves the wallet', async () => {
    lifi.charge({ bridgeFee: 1_234n, protocolFee: 2_500n, impact: 777n, surplus: 500_000n })
    const routing = open()
    const { routes } = await routing.find({ ...ask(routing, '123.456789') })
    const [route] = routes as [Route]
    const lines = route.feeBreakdown.map(({ type, stage, provider, currency }) => [type, stage, provider, currency])
    expect(lines).toEqual([
      ['GAS', 'SENDING', undefined, 'ETH-ETHEREUM'],
      ['CROSSCHAIN', 'PROXYING', 'across', 'USDT-ETHEREUM'],
      ['PROTOCOL', 'SENDING', 'lifi', 'USDT-ETHEREUM'],
    ])
    const sum = (texts: readonly (string | undefined)[]) =>
      texts.reduce<Decimal>((total, text) => addDecimals(total, parseDecimal(text ?? '') as Decimal), {
        units: 0n,
        places: 18,
      })
    expect(sum(route.feeBreakdown.map((line) => line.amountInFeeCurrency))).toEqual(sum([route.feeAmount]))
    const [, bridge, protocol] = route.feeBreakdown.map(({ amount }) => Number(amount))
    const delivered = 123.456789 + 0.5
    const rest = Number(route.sourceAmount) - delivered - (bridge ?? 0) - (protocol ?? 0)
    expect(route.priceImpact).toBeCloseTo(rest / 123.456789, 8)
    expect(route.warnings.map(({ reason, message }) => [reason, message])).toEqual([
      [
        'CROSSCHAIN_SURPLUS',
        'the bridge carries about 0.5 USDC more than the payment needs; expect it in the wallet on BASE',
      ],
    ])
    expect(route.estimatedDurationSeconds).toBe(43 + 12)
  })

  it('asks for no quote on chains without pinned contracts', async () => {
    const start = lifi.asked.length
    const [source, destination] = configs() as [ChainConfig, ChainConfig]
    const { lifi: _, ...unpinned } = destination
    const routing = open({ configs: [source, unpinned] })
    expect(reasonOf(await routing.find(ask(routing)))).toMatchObject({
      reason: 'CROSSCHAIN_NOT_PINNED',
      message: 'no contracts of lifi are configured on BASE, and no others are trusted',
    })
    expect(questionsSince(start)).toEqual([])
  })

  it('asks for no quote that balance, amount or tokens rule out', async () => {
    const start = lifi.asked.length
    const bridged = configs().map((config) => ({
      ...config,
      tokens: config.tokens.map((token) => ({
        ...token,
        bridged: config.name === 'ETHEREUM' && token.symbol === 'USDC',
      })),
    }))
    const routing = open({ configs: bridged })
    const answer = await routing.find(ask(routing, '2000'))
    expect(reasonOf(answer)).toMatchObject({
      reason: 'CROSSCHAIN_BALANCE_TOO_LOW',
      message: 'the wallet has 1000 USDT and needs about 2000 plus the costs of the bridge',
      remedy: 'add more than 1000 USDT on ETHEREUM; the quote then shows the costs of the bridge',
    })
    expect(reasonOf(answer, 'DAI')?.reason).toBe('CROSSCHAIN_BALANCE_TOO_LOW')
    expect(reasonOf(answer, 'USDC')?.reason).toBe('CROSSCHAIN_BRIDGED_TOKEN')
    expect(answer.degraded).toBe(false)
    expect(reasonOf(await routing.find(ask(routing, '1')))?.reason).toBe('CROSSCHAIN_AMOUNT_TOO_SMALL')
    const inCoins = await routing.find(ask(routing, '0.01', 'ETH-BASE'))
    expect(reasonOf(inCoins)?.reason).toBe('CROSSCHAIN_DELIVERS_TOKENS')
    const noProxy = open({ configs: configs().map((config) => ({ ...config, contracts: [] })) })
    expect(reasonOf(await noProxy.find(ask(noProxy)))?.reason).toBe('NO_PAYMENT_CONTRACT')
    expect(questionsSince(start)).toEqual([])

    await near.fund(near.tokens.USDT, payer, 1_001n * UNIT)
    expect((await routing.find(ask(routing, '2000'))).routes.map(({ id }) => id)).toEqual([ID])
  })

  it('asks once for equal questions, and again after seconds or when the payment is prepared', async () => {
    const start = lifi.asked.length
    const routing = open()
    const question = ask(routing)
    const answers = await Promise.all([1, 2, 3].map(() => routing.find(question)))
    const givenAt = nowMs
    expect(answers.map(({ routes }) => routes[0]?.expiresAt.getTime())).toEqual(Array(3).fill(givenAt + 30_000))
    nowMs += 9_000
    expect((await routing.find(question)).routes[0]?.expiresAt.getTime()).toBe(givenAt + 30_000)
    expect(questionsSince(start)).toHaveLength(1)
    await routing.prepare({ ...question, route: ID })
    expect(questionsSince(start)).toHaveLength(2)
    nowMs += 10_001
    await routing.find(question)
    expect(questionsSince(start)).toHaveLength(3)
  })

  it('remembers an answer that came too late for its caller', async () => {
    const start = lifi.asked.length
    const released = Promise.withResolvers<void>()
    lifi.behave(async (exchange) => {
      await released.promise
      await quoteWell(exchange)
    })
    const routing = open({ chainTimeoutMs: 400 })
    const question = ask(routing)
    const answer = await routing.find(question)
    expect([reasonOf(answer)?.reason, answer.degraded]).toEqual(['CROSSCHAIN_UNREACHABLE', true])
    released.resolve()
    expect((await routing.find(question)).routes.map(({ id }) => id)).toEqual([ID])
    expect(questionsSince(start)).toHaveLength(1)
  })

  it('asks for the best-funded tokens alone, and for another one that is chosen', async () => {
    const start = lifi.asked.length
    for (const [i, coupon] of coupons.entries()) await near.fund(coupon, payer, BigInt(500 + i) * UNIT)
    const [source, destination] = configs() as [ChainConfig, ChainConfig]
    const listed = coupons.map(({ address, ...token }) => ({ ...token, address: canonical(address), pegUsd: '1' }))
    const routing = open({ configs: [{ ...source, tokens: [...source.tokens, ...listed] }, destination] })
    const question = ask(routing)
    const answer = await routing.find(question)
    const tokens = ['USDT', ...coupons.slice(2).map(({ symbol }) => symbol)]
    expect(answer.routes.map(({ token }) => token).toSorted()).toEqual(tokens.toSorted())
    expect(questionsSince(start)).toHaveLength(8)
    expect(reasonOf(answer, 'COUPON1')).toMatchObject({
      reason: 'CROSSCHAIN_NOT_ASKED',
      remedy: 'ask with tokens=COUPON1 and chains=ETHEREUM',
    })
    const { routes } = await routing.find({ ...question, tokens: ['COUPON1'], chains: ['ETHEREUM'] })
    expect(routes.map(({ token }) => token)).toEqual(['COUPON1'])
    // Who only looks at a page takes few of the quotes, and does not read of those that were not asked for.
    const before = lifi.asked.length
    const options = await routing.findOptions(question.paymentReference)
    expect(questionsSince(before)).toHaveLength(3)
    expect(options.routes.filter(({ provider }) => provider === 'lifi')).toHaveLength(3)
    expect(options.unavailable.map(({ reason }) => reason)).not.toContain('CROSSCHAIN_NOT_ASKED')
  })

  it('resets an allowance that is too small, and resets none that is 0', async () => {
    await near.setNativeBalance(payer, COIN)
    const routing = open()
    const question = { ...ask(routing), route: ID }
    const stepsOf = async () => (await routing.prepare(question)).route.readiness.steps
    expect(await stepsOf()).toEqual(['APPROVE', 'PAY'])
    await near.send(payer, encodeApprove(near.tokens.USDT.address, nearLifi.diamond, 1n))
    expect(await stepsOf()).toEqual(['APPROVE_RESET', 'APPROVE', 'PAY'])
  })

  it('fails as QUOTE_CHANGED when the quote takes more than the caller allows', async () => {
    const routing = open()
    const question = { ...ask(routing), route: ID }
    const { route } = await routing.prepare(question)
    lifi.charge({ bridgeFee: 10_000n })
    const again = await routing
      .prepare({ ...question, maxSourceAmount: route.sourceAmount })
      .catch((error: unknown) => error)
    expect(again).toBeInstanceOf(WaybillError)
    expect(again).toMatchObject({ reason: 'QUOTE_CHANGED', metadata: { sourceAmount: '101' } })
  })

  interface Fault {
    readonly name: string
    readonly behave: LifiBehaviour
    readonly reason: string
    /** Of an answer that is rejected. */
    readonly check?: QuoteCheck
    readonly degraded?: boolean
  }

  const inQuote = (
    change: (answer: Record<'action' | 'estimate' | 'transactionRequest', object>) => object,
  ): LifiBehaviour => {
    return ({ quote, response }) => sendJson(response, 200, change(quote()) as ReturnType<typeof quote>)
  }
  const faults: readonly Fault[] = [
    { name: 'hangs', behave: () => {}, reason: 'CROSSCHAIN_UNREACHABLE' },
    {
      name: 'hangs in the middle of its answer',
      behave: ({ response }) => void response.writeHead(200).write('{"id":'),
      reason: 'CROSSCHAIN_UNREACHABLE',
    },
    {
      name: 'fails',
      behave: ({ response }) => sendJson(response, 500, { message: 'oh' }),
      reason: 'CROSSCHAIN_UNREACHABLE',
    },
    { name: 'resets', behave: ({ response }) => void response.destroy(), reason: 'CROSSCHAIN_UNREACHABLE' },
    {
      name: 'resets in the middle of its answer',
      behave: ({ response }) => void response.writeHead(200).write('{"id":', () => response.destroy()),
      reason: 'CROSSCHAIN_UNREACHABLE',
    },
    {
      name: 'redirects',
      behave: ({ response }) => {
        lifi.behave(quoteWell)
        response.writeHead(307, { location: `${lifi.url}/v1/quote/contractCalls` }).end()
      },
      reason: 'CROSSCHAIN_UNREACHABLE',
    },
    {
      name: 'says that the quota is exhausted',
      behave: ({ response }) => sendJson(response, 429, { message: 'slow', code: 1005 }, { 'ratelimit-reset': '7' }),
      reason: 'CROSSCHAIN_QUOTA_EXHAUSTED',
    },
    {
      name: 'rejects the key',
      behave: ({ response }) => sendJson(response, 401, { message: `key ${API_KEY}`, code: 1010 }),
      reason: 'CROSSCHAIN_UNAUTHORIZED',
    },
    {
      name: 'refuses the question',
      behave: ({ response }) => sendJson(response, 400, { message: `no chain, ${API_KEY}`, code: 1011 }),
      reason: 'CROSSCHAIN_REFUSED',
      degraded: false,
    },
    {
      name: 'finds no route',
      behave: ({ response }) => sendJson(response, 404, { message: 'none', code: 1002 }),
      reason: 'CROSSCHAIN_NO_ROUTE',
      degraded: false,
    },
    {
      name: 'finds the amount too small',
      behave: ({ response }) =>
        sendJson(response, 404, {
          message: 'none',
          code: 1002,
          errors: [{ errorType: 'NO_QUOTE', code: 'AMOUNT_TOO_LOW', tool: 'across', message: '' }],
        }),
      reason: 'CROSSCHAIN_AMOUNT_TOO_SMALL',
      degraded: false,
    },
    {
      name: 'answers garbage',
      behave: ({ response }) => void response.writeHead(200).end('<html>welcome</html>'),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'INCONSISTENT',
    },
    {
      name: 'answers more than the limit',
      behave: ({ quote, response }) => void response.writeHead(200).end(JSON.stringify(quote()) + ' '.repeat(2 << 20)),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'INCONSISTENT',
    },
    {
      name: 'leaves out the transaction',
      behave: inQuote((answer) => ({ ...answer, transactionRequest: undefined })),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'INCONSISTENT',
    },
    {
      name: 'sends to the zero address',
      behave: inQuote((answer) => ({
        ...answer,
        transactionRequest: { ...answer.transactionRequest, to: zeroAddress },
      })),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'INCONSISTENT',
    },
    {
      name: 'takes nine times as much',
      behave: inQuote((answer) => ({
        ...answer,
        action: { ...answer.action, fromAmount: '900000000' },
        estimate: { ...answer.estimate, fromAmount: '900000000' },
      })),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'WRONG_SOURCE',
    },
    {
      name: 'takes a hundredth',
      behave: inQuote((answer) => ({
        ...answer,
        action: { ...answer.action, fromAmount: '1000000' },
        estimate: { ...answer.estimate, fromAmount: '1000000' },
      })),
      reason: 'CROSSCHAIN_REJECTED',
      check: 'WRONG_SOURCE',
    },
  ]

  it.each(faults)('gives the reason when LI.FI $name', async ({ behave, reason, check, degraded = true }) => {
    lifi.behave(behave)
    const logged: unknown[] = []
    const log = (...said: unknown[]) => void logged.push(said)
    const logger = { debug: log, info: log, warn: log, error: log }
    const routing = open({ timeoutMs: 300, apiKey: API_KEY, logger })
    const answer = await routing.find(ask(routing))
    expect(answer.routes).toEqual([])
    expect(reasonOf(answer)?.reason).toBe(reason)
    expect(reasonOf(answer)?.metadata).toEqual(check && { check })
    expect(reasonOf(answer)?.remedy).not.toBe('')
    expect(answer.degraded).toBe(degraded)
    const reported = JSON.stringify([answer, logged])
    expect(reported).not.toContain(API_KEY)
    expect(reported).not.toContain('127.0.0.1')
  })

  it.each<Lie>(LIES)('rejects a quote that lies by $name', async ({ check, tell, terms, amount }) => {
    await near.fund(near.tokens.USDT, payer, 1_000n * UNIT)
    if (terms) lifi.charge(terms)
    lifi.behave(({ quote, response }) => sendJson(response, 200, tell(quote())))
    const routing = open()
    const question = ask(routing, amount)
    const answer = await routing.find(question)
    const isDear = check === 'COST_TOO_HIGH'
    const reason = isDear ? 'CROSSCHAIN_COST_TOO_HIGH' : 'CROSSCHAIN_REJECTED'
    expect([answer.routes, reasonOf(answer)?.reason]).toEqual([[], reason])
    expect(reasonOf(answer)?.metadata).toEqual(isDear ? undefined : { check })
    expect(reasonOf(answer)?.message).not.toContain('{')
    expect(answer.degraded).toBe(!isDear)
    const prepared = await routing.prepare({ ...question, route: ID }).catch((error: unknown) => error)
    expect(prepared).toBeInstanceOf(WaybillError)
    expect((prepared as WaybillError).metadata.check).toBe(isDear ? undefined : check)
    expect(JSON.stringify(prepared)).not.toContain('transactions')
  })

  it('accepts a loss up to the operator’s cap, and none above it', async () => {
    lifi.charge({ impact: 120_000n })
    const routing = (bps: number) => open({ lossCap: { bps, usd: { units: 1n, places: 0 } } })
    const ids = async (routing: TestRouting) => (await routing.find(ask(routing))).routes.map(({ id }) => id)
    expect(await ids(routing(1_200))).toEqual([ID])
    expect(await ids(routing(1_199))).toEqual([])
  })

  it('asks LI.FI again only when its quota is renewed', async () => {
    lifi.behave(faults.find(({ name }) => name.includes('quota'))?.behave ?? quoteWell)
    const routing = open()
    const question = ask(routing)
    expect(reasonOf(await routing.find(question))?.message).toContain('for 7 seconds')
    const start = lifi.asked.length
    lifi.behave(({ quote, response }) => {
      sendJson(response, 200, quote(), {
        'ratelimit-limit': '75',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '600',
      })
    })
    nowMs += 6_000
    expect(reasonOf(await routing.find(question))?.message).toContain('for 1 seconds')
    expect(questionsSince(start)).toEqual([])
    nowMs += 1_000
    expect((await routing.find(question)).routes).toHaveLength(1)
    expect(reasonOf(await routing.find(ask(routing, '101')))?.message).toContain('for 600 seconds')
    expect(questionsSince(start)).toHaveLength(1)
  })

  it('asks LI.FI no more after three failures, until one question probes it', async () => {
    lifi.behave(({ response }) => sendJson(response, 503, { message: 'down' }))
    const routing = open()
    const start = lifi.asked.length
    for (let i = 0; i < 5; i++) {
      expect(reasonOf(await routing.find(ask(routing, `${100 + i}`)))?.reason).toBe('CROSSCHAIN_UNREACHABLE')
    }
    expect(questionsSince(start)).toHaveLength(3)
    lifi.behave(quoteWell)
    nowMs += 60_000
    expect((await routing.find(ask(routing))).routes).toHaveLength(1)
  })

  it('probes LI.FI by one question, and asks all again once that is answered', async () => {
    for (const token of [near.tokens.USDC, near.tokens.DAI]) {
      await near.fund(token, payer, 1_000n * 10n ** BigInt(token.decimals))
    }
    lifi.behave(({ response }) => sendJson(response, 503, { message: 'down' }))
    const routing = open()
    await routing.find(ask(routing))
    const start = lifi.asked.length
    nowMs += 1_000
    const down = await routing.find(ask(routing))
    expect([down.routes, questionsSince(start).length]).toEqual([[], 1])
    lifi.behave(quoteWell)
    nowMs += 2_000
    expect((await routing.find(ask(routing))).routes).toHaveLength(1)
    const well = await routing.find(ask(routing))
    expect(well.routes.map(({ token }) => token).toSorted()).toEqual(['DAI', 'USDC', 'USDT'])
  })

  it('asks for no quote where the other chain cannot be read, and says so', async () => {
    const start = lifi.asked.length
    const [source, destination] = configs()
    const down = { ...(destination ?? source), rpcUrls: ['http://127.0.0.1:1/'] } as NonNullable<typeof destination>
    const routing = open({ configs: [source as typeof down, down] })
    const answer = await routing.find(ask(routing))
    expect(reasonOf(answer)).toMatchObject({ reason: 'CHAIN_UNREACHABLE' })
    expect(reasonOf(answer)?.message).toContain('BASE did not answer')
    expect(answer.degraded).toBe(true)
    expect(questionsSince(start)).toEqual([])
  })

  it('has no route without a cross-chain provider', async () => {
    const routing = createTestRouting(configs())
    const { unavailable } = await routing.find(ask(routing))
    expect(unavailable.find(({ token }) => token === 'USDT')?.reason).toBe('NO_CROSSCHAIN_PROVIDER')
    expect(canonical(near.tokens.USDT.address)).not.toBe(canonical(far.tokens.USDT.address))
  })
})
