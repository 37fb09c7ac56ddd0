import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { encodeCreation } from '../../demo/network/demo-contracts.ts'
import { addDecimals, divideDecimals, formatDecimal, parseAmount, parseDecimal } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { Route, RoutesAnswer } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { configOf, createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n
const TRON_WALLET = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'

let ethereum: TestChain
let base: TestChain
let routing: TestRouting
beforeAll(async () => {
  ;[ethereum, base] = await Promise.all([
    startTestChain({ baseFeePerGas: 8_000_000_000n }),
    startTestChain({ chainId: 31_338, addressSeed: 1 }),
  ])
  routing = createTestRouting([configOf(ethereum, 'ETHEREUM'), configOf(base, 'BASE', { blockTimeSeconds: 2 })])
})
afterAll(() => Promise.all([ethereum.stop(), base.stop()]))

const PAYEE = freshAddress('payee')
const inUsdc = (amount: string) => ({
  payee: PAYEE,
  amount,
  invoiceCurrency: 'USDC-ETHEREUM',
  paymentCurrency: 'USDC-ETHEREUM',
  network: 'ETHEREUM',
})

/** A wallet with coins for gas and some USDC. */
async function newWallet(seed: string, { usdc = 1_000n, wei = 10n * COIN }: { usdc?: bigint; wei?: bigint } = {}) {
  const wallet = freshAddress(`wallet ${seed}`)
  await ethereum.setNativeBalance(wallet, wei)
  if (usdc > 0n) await ethereum.fund(ethereum.tokens.USDC, wallet, usdc * 1_000_000n)
  return wallet
}

const reasonsOf = (entries: readonly { reason: string }[]) => entries.map((entry) => entry.reason)
const entryOf = (answer: RoutesAnswer, chain: string, token: string) =>
  answer.unavailable.find((entry) => entry.chain === chain && entry.token === token)

describe('an answer', () => {
  it('holds the direct route with every field, and every other candidate with its reason', async () => {
    const wallet = await newWallet('direct')
    const paymentReference = routing.addRequest(inUsdc('150'))
    const before = Date.now()
    const answer = await routing.find({
      paymentReference,
      wallet,
      feePercentage: '0.5',
      feeAddress: freshAddress('platform'),
    })
    const { routes, unavailable, ...rest } = answer
    expect(rest).toEqual({ amount: '150', currency: 'USDC-ETHEREUM', warnings: [], degraded: false })
    expect(routes.length).toBe(1)
    const { expiresAt, feeBreakdown, fee, feeRate, totalCost, feeAmount, feeInUsd, ...route } = routes[0] as Route
    expect(route).toEqual({
      id: 'REQUEST_NETWORK_PAYMENT',
      speed: 'FAST',
      priceImpact: 0,
      chain: 'ETHEREUM',
      token: 'USDC',
      chainId: 'eip155:31337',
      tokenAddress: ethereum.tokens.USDC.address.toLowerCase(),
      sourceAmount: '150.75',
      sourceAmountInUsd: '150.75',
      feeCurrency: 'USDC-ETHEREUM',
      feeIsComplete: true,
      estimatedDurationSeconds: 24,
      provider: 'request-network',
      tags: ['CHEAPEST', 'FASTEST'],
      warnings: [],
      atomic: true,
      readiness: { hasEnoughGas: true, needsApproval: true, steps: ['APPROVE', 'PAY'] },
    })
    expect(feeBreakdown[1]).toEqual({
      type: 'PLATFORM',
      stage: 'SENDING',
      provider: 'request-network',
      amount: '0.75',
      currency: 'USDC-ETHEREUM',
      amountInFeeCurrency: '0.75',
      amountInUsd: '0.75',
    })
    expect(feeBreakdown[0]).toMatchObject({ type: 'GAS', stage: 'SENDING', currency: 'ETH-ETHEREUM' })
    // At 3,000 dollars a coin and one a token.
    const gas = parseDecimal(feeBreakdown[0]?.amount ?? '')
    const gasInUsdc = formatDecimal({ units: (gas?.units ?? 0n) * 3_000n, places: gas?.places ?? 0 })
    expect(feeBreakdown[0]?.amountInFeeCurrency).toBe(gasInUsdc)
    expect(feeAmount).toBe(sum(gasInUsdc, '0.75'))
    expect(feeInUsd).toBe(feeAmount)
    expect(fee).toBe(Number(feeAmount))
    expect(feeRate).toBeCloseTo(Number(feeAmount) / 150, 8)
    expect(totalCost).toBe(feeRate)
    expect(expiresAt.getTime() - before).toBeGreaterThan(1_000)
    expect(unavailable.map((entry) => [entry.chain, entry.token, entry.reason])).toEqual([
      ['ETHEREUM', 'ETH', 'NO_SWAP_PROVIDER'],
      ['ETHEREUM', 'USDT', 'NO_SWAP_PROVIDER'],
      ['ETHEREUM', 'DAI', 'NO_SWAP_PROVIDER'],
      ['BASE', 'ETH', 'NO_CROSSCHAIN_PROVIDER'],
      ['BASE', 'USDC', 'NO_CROSSCHAIN_PROVIDER'],
      ['BASE', 'USDT', 'NO_CROSSCHAIN_PROVIDER'],
      ['BASE', 'DAI', 'NO_CROSSCHAIN_PROVIDER'],
    ])
    expect(unavailable.every((entry) => entry.provider === undefined && entry.remedy !== '')).toBe(true)
  })

  it('tells the balance of candidates without a provider', async () => {
    const wallet = await newWallet('other token', { usdc: 0n })
    await ethereum.fund(ethereum.tokens.USDT, wallet, 77_500_000n)
    await base.fund(base.tokens.DAI, wallet, 3n * COIN)
    const answer = await routing.find({ paymentReference: routing.addRequest(inUsdc('10')), wallet })
    expect(entryOf(answer, 'ETHEREUM', 'USDT')).toEqual({
      chain: 'ETHEREUM',
      token: 'USDT',
      reason: 'NO_SWAP_PROVIDER',
      message: 'the wallet has 77.5 USDT, but no configured provider swaps it into USDC on ETHEREUM',
      remedy: 'swap it elsewhere and pay with 10 USDC on ETHEREUM',
    })
    expect(entryOf(answer, 'BASE', 'DAI')?.message).toBe(
      'the wallet has 3 DAI on BASE, but no configured bridge carries it to ETHEREUM',
    )
  })

  it('is empty for an unfunded wallet, and following the remedy makes the route appear', async () => {
    const wallet = freshAddress('unfunded')
    const paymentReference = routing.addRequest(inUsdc('150'))
    const answer = await routing.find({ paymentReference, wallet, feePercentage: '1', feeAddress: PAYEE })
    expect([answer.routes, answer.warnings, answer.degraded]).toEqual([[], [], false])
    expect(entryOf(answer, 'ETHEREUM', 'USDC')).toEqual({
      chain: 'ETHEREUM',
      token: 'USDC',
      provider: 'request-network',
      reason: 'INSUFFICIENT_BALANCE',
      message: 'the wallet has 0 USDC and needs 151.5',
      remedy: 'add 151.5 USDC on ETHEREUM',
      metadata: { missing: '151.5', token: 'USDC', chain: 'ETHEREUM' },
    })
    await ethereum.fund(ethereum.tokens.USDC, wallet, 151_500_000n)
    const mended = await routing.find({ paymentReference, wallet, feePercentage: '1', feeAddress: PAYEE })
    expect(mended.routes.map((route) => route.id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
  })

  it('refuses a balance that lacks one unit', async () => {
    const wallet = await newWallet('one unit', { usdc: 10n })
    const enough = await routing.find({ paymentReference: routing.addRequest(inUsdc('10')), wallet })
    const short = await routing.find({ paymentReference: routing.addRequest(inUsdc('10.000001')), wallet })
    expect(enough.routes.length).toBe(1)
    expect(entryOf(short, 'ETHEREUM', 'USDC')?.remedy).toBe('add 0.000001 USDC on ETHEREUM')
  })

  it('needs no approval when the allowance suffices', async () => {
    const wallet = await newWallet('allowed')
    await impersonate(wallet)
    await ethereum.approve(wallet, ethereum.tokens.USDC, ethereum.contracts.erc20FeeProxy, 10_000_000n)
    const exact = await routing.find({ paymentReference: routing.addRequest(inUsdc('10')), wallet })
    const more = await routing.find({ paymentReference: routing.addRequest(inUsdc('10.000001')), wallet })
    expect(exact.routes[0]?.readiness).toEqual({ hasEnoughGas: true, needsApproval: false, steps: ['PAY'] })
    expect(exact.routes[0]?.estimatedDurationSeconds).toBe(12)
    expect(more.routes[0]?.readiness.steps).toEqual(['APPROVE', 'PAY'])
  })

  it('resets the allowance of a Tether-like token first', async () => {
    const wallet = await newWallet('tether')
    await impersonate(wallet)
    const { USDT } = ethereum.tokens
    await ethereum.fund(USDT, wallet, 100_000_000n)
    const currency = { invoiceCurrency: 'USDT-ETHEREUM', paymentCurrency: 'USDT-ETHEREUM' }
    const question = { paymentReference: routing.addRequest({ ...inUsdc('10'), ...currency }), wallet }
    expect((await routing.find(question)).routes[0]?.readiness.steps).toEqual(['APPROVE', 'PAY'])
    await ethereum.approve(wallet, USDT, ethereum.contracts.erc20FeeProxy, 1n)
    const { steps, needsApproval } = (await routing.find(question)).routes[0]?.readiness ?? {}
    expect([steps, needsApproval]).toEqual([['APPROVE_RESET', 'APPROVE', 'PAY'], true])
  })

  it('keeps a route that lacks gas, and says how much is missing', async () => {
    const wallet = await newWallet('no gas', { wei: 5n })
    const paymentReference = routing.addRequest(inUsdc('10'))
    const route = (await routing.find({ paymentReference, wallet })).routes[0]
    expect(route?.readiness.hasEnoughGas).toBe(false)
    expect(reasonsOf(route?.warnings ?? [])).toEqual(['INSUFFICIENT_GAS'])
    const [, need = '', missing = ''] =
      /needs about ([\d.]+); add ([\d.]+) ETH/.exec(route?.warnings[0]?.message ?? '') ?? []
    // The limit of the last transaction is a quarter above its expected gas before refunds, which may be another quarter. Wallets double
    // the base fee.
    expect(Number(need) / Number(route?.feeBreakdown[0]?.amount)).toBeGreaterThan(1.25)
    expect(Number(need) / Number(route?.feeBreakdown[0]?.amount)).toBeLessThan(2 * 1.25 ** 2)
    await ethereum.setNativeBalance(wallet, 5n + (parseAmount(missing, 18) as bigint))
    expect((await routing.find({ paymentReference, wallet })).routes[0]?.readiness.hasEnoughGas).toBe(true)
  })

  it('counts for gas only the coins that a native payment leaves', async () => {
    const currency = { invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...inUsdc('1'), ...currency })
    const wallet = await newWallet('native', { usdc: 0n, wei: COIN + 3n })
    const route = (await routing.find({ paymentReference, wallet })).routes[0]
    expect(route?.readiness.hasEnoughGas).toBe(false)
    expect(route?.warnings[0]?.message).toMatch(/^the wallet has 0\.000000000000000003 ETH for gas/)
    await ethereum.setNativeBalance(wallet, COIN - 1n)
    const short = await routing.find({ paymentReference, wallet })
    expect(entryOf(short, 'ETHEREUM', 'ETH')?.message).toBe('the wallet has 0.999999999999999999 ETH and needs 1')
  })

  it('does not judge the gas of a contract wallet', async () => {
    const wallet = await newWallet('contract', { wei: 0n })
    await ethereum.client.rpc.call('anvil_setCode', [wallet, '0x60006000fd'])
    const route = (await routing.find({ paymentReference: routing.addRequest(inUsdc('10')), wallet })).routes[0]
    expect(route?.readiness).toEqual({ needsApproval: true, steps: ['APPROVE', 'PAY'] })
    expect(reasonsOf(route?.warnings ?? [])).toEqual(['GAS_MAY_BE_SPONSORED'])
  })
})

describe('a wallet that delegates by EIP-7702', () => {
  it.each([
    ['no coins', 0n, false, ['INSUFFICIENT_GAS']],
    ['coins', COIN, true, []],
  ])('is judged like any other: with %s', async (_, wei, hasEnoughGas, warnings) => {
    const wallet = await newWallet(`delegating ${wei}`, { wei })
    await ethereum.client.rpc.call('anvil_setCode', [wallet, `0xef0100${freshAddress('delegate').slice(2)}`])
    const route = (await routing.find({ paymentReference: routing.addRequest(inUsdc('10')), wallet })).routes[0]
    expect(route?.readiness.hasEnoughGas).toBe(hasEnoughGas)
    expect(reasonsOf(route?.warnings ?? [])).toEqual(warnings)
  })
})

describe('candidates that the configuration decides', () => {
  it('are all unavailable to a wallet of another address family', async () => {
    const paymentReference = routing.addRequest(inUsdc('10'))
    const answer = await routing.find({ paymentReference, wallet: TRON_WALLET })
    expect([answer.routes, answer.degraded]).toEqual([[], false])
    expect(answer.unavailable.length).toBe(8)
    expect(answer.unavailable[0]).toEqual({
      chain: 'ETHEREUM',
      token: 'USDC',
      reason: 'WALLET_FAMILY_MISMATCH',
      message: 'a TRON wallet cannot pay on ETHEREUM',
      remedy: 'ask with a wallet of ETHEREUM',
    })
    expect(new Set(reasonsOf(answer.unavailable))).toEqual(new Set(['WALLET_FAMILY_MISMATCH']))
  })

  it.each(['TRON', 'POLYGON'])('are none when the request is on %s, which is not configured', async (network) => {
    const currency = { invoiceCurrency: `USDT-${network}`, paymentCurrency: `USDT-${network}`, network }
    const paymentReference = routing.addRequest({ ...inUsdc('10'), ...currency })
    for (const wallet of [TRON_WALLET, freshAddress('anyone')]) {
      const answer = await routing.find({ paymentReference, wallet })
      expect([answer.routes, answer.degraded]).toEqual([[], false])
      expect(answer.unavailable).toEqual([
        {
          chain: network,
          reason: 'CHAIN_NOT_SUPPORTED',
          message: `payments on ${network} cannot be made through this service`,
          remedy: `configure ${network} in the chains file`,
        },
      ])
    }
  })

  it('are none where no chain is configured at all', async () => {
    const searchOnly = createTestRouting([])
    const answer = await searchOnly.find({ paymentReference: searchOnly.addRequest(inUsdc('10')), wallet: PAYEE })
    expect([answer.routes, reasonsOf(answer.unavailable), answer.amount]).toEqual([[], ['CHAIN_NOT_SUPPORTED'], '10'])
  })

  it('are none when the token is no longer configured', async () => {
    const currency = { invoiceCurrency: 'OLD-ETHEREUM', paymentCurrency: 'OLD-ETHEREUM' }
    const paymentReference = routing.addRequest({ ...inUsdc('10'), ...currency })
    const answer = await routing.find({ paymentReference, wallet: PAYEE })
    expect(reasonsOf(answer.unavailable)).toEqual(['CURRENCY_NOT_SUPPORTED'])
  })

  it('are unavailable where no fee proxy is configured', async () => {
    const without = createTestRouting([configOf(ethereum, 'ETHEREUM', { contracts: [] })])
    const wallet = await newWallet('no proxy')
    const answer = await without.find({ paymentReference: without.addRequest(inUsdc('10')), wallet })
    expect(entryOf(answer, 'ETHEREUM', 'USDC')).toMatchObject({
      provider: 'request-network',
      reason: 'NO_PAYMENT_CONTRACT',
    })
  })
})

describe('a request in a fiat currency', () => {
  it('is never paid directly, and names the conversion that it needs', async () => {
    const wallet = await newWallet('fiat')
    const paymentReference = routing.addRequest({ ...inUsdc('99.12345678'), invoiceCurrency: 'EUR' })
    const answer = await routing.find({ paymentReference, wallet })
    expect([answer.amount, answer.currency, answer.routes]).toEqual(['99.12345678', 'EUR', []])
    expect(entryOf(answer, 'ETHEREUM', 'USDC')).toMatchObject({
      provider: 'request-network',
      reason: 'NO_CONVERSION_PATH',
      message: 'no conversion of EUR into USDC is configured on ETHEREUM',
    })
    // More USDC would not help, so no remedy asks for it.
    const dai = await routing.find({ paymentReference, wallet, tokens: ['DAI'], chains: ['ETHEREUM'] })
    expect(dai.unavailable).toEqual([{ ...entryOf(answer, 'ETHEREUM', 'USDC'), token: 'DAI', provider: undefined }])
    expect(new Set(answer.unavailable.map(({ reason }) => reason))).toEqual(new Set(['NO_CONVERSION_PATH']))
    expect(answer.unavailable).toHaveLength(8)
  })
})

describe('a fee', () => {
  const inDai = (amount: string) => ({
    ...inUsdc(amount),
    invoiceCurrency: 'DAI-ETHEREUM',
    paymentCurrency: 'DAI-ETHEREUM',
  })
  /** `feeAmount` as a fraction of an amount, rounded half-even to 8 places. */
  const rateOf = ({ feeAmount }: Route, amount: string) => {
    const [fee, received] = [parseDecimal(feeAmount) ?? fail(), parseDecimal(amount) ?? fail()]
    return Number(formatDecimal(divideDecimals(fee, received, 8)))
  }

  it.each([
    ['dust', '0.000000000000000001'],
    ['a little', '0.000000000000001'],
    ['much', '1000'],
  ])('of %s is an amount, and its rate a fraction of what the payee receives', async (_, amount) => {
    const wallet = await newWallet(`fee of ${amount}`)
    await ethereum.fund(ethereum.tokens.DAI, wallet, 1_000n * COIN)
    const answer = await routing.find({ paymentReference: routing.addRequest(inDai(amount)), wallet })
    const [route = fail()] = answer.routes
    expect([route.fee, route.feeCurrency]).toEqual([Number(route.feeAmount), 'DAI-ETHEREUM'])
    expect([route.feeRate, route.totalCost]).toEqual([rateOf(route, amount), rateOf(route, amount)])
    if (amount.length > 10) expect(route.feeRate).toBeGreaterThan(1e9 * route.fee)
  })

  it('of a fiat request is in the payment currency, and its rate a fraction of the converted amount', async () => {
    const wallet = await newWallet('fee of fiat')
    await ethereum.setFeed(ethereum.tokens.USDC.feed, { answer: 2n * 10n ** 8n })
    const paymentReference = routing.addRequest({ ...inUsdc('100'), invoiceCurrency: 'USD' })
    const { routes } = await routing.find({ paymentReference, wallet })
    await ethereum.setFeed(ethereum.tokens.USDC.feed, { answer: 10n ** 8n })
    const [route = fail()] = routes
    expect([route.sourceAmount, route.feeCurrency]).toEqual(['50', 'USDC-ETHEREUM'])
    expect([route.fee, route.feeRate]).toEqual([Number(route.feeAmount), rateOf(route, '50')])
  })
})

describe('prices', () => {
  const USD = 10n ** 8n
  async function find(tokens: Record<string, object>, native?: object) {
    const config = configOf(ethereum, 'ETHEREUM', { tokens })
    const priced = createTestRouting([
      { ...config, native: { symbol: 'ETH', decimals: 18, ...(native ?? config.native) } },
    ])
    const fee = { feePercentage: '1', feeAddress: freshAddress('platform') }
    const question = { paymentReference: priced.addRequest(inUsdc('100')), wallet: await newWallet('prices'), ...fee }
    return (await priced.find(question)).routes[0] as Route
  }
  const withoutPrice = { usdFeed: undefined, heartbeatSeconds: undefined }

  it('come from the feed while it is fresh, by the time of the block', async () => {
    const { timestampSec } = await ethereum.client.head()
    await ethereum.setFeed(ethereum.native.feed, { answer: 2_000n * USD, updatedAtSec: timestampSec - 3_590 })
    const fresh = await find({}, undefined)
    expect(fresh.warnings).toEqual([])
    expect(Number(fresh.feeBreakdown[0]?.amountInUsd) / Number(fresh.feeBreakdown[0]?.amount)).toBeCloseTo(2_000, 6)
    await ethereum.setFeed(ethereum.native.feed, { answer: 2_000n * USD, updatedAtSec: timestampSec - 3_700 })
    const stale = await find({}, undefined)
    await ethereum.setFeed(ethereum.native.feed, { answer: 3_000n * USD })
    expect([stale.feeAmount, stale.fee, stale.feeIsComplete]).toEqual(['1', 1, false])
    expect(stale.warnings).toEqual([
      {
        reason: 'GAS_UNPRICED',
        message: 'there is no price of ETH, so the fee leaves out the gas; add the gas yourself',
      },
    ])
    expect(stale.feeBreakdown[0]!.amountInFeeCurrency).toBeUndefined()
    expect(stale.feeBreakdown[0]!.amountInUsd).toBeUndefined()
    expect(stale.tags).toEqual(['FASTEST'])
  })

  it.each([0n, -5n])('never are %s', async (answer) => {
    await ethereum.setFeed(ethereum.native.feed, { answer })
    const route = await find({}, undefined)
    await ethereum.setFeed(ethereum.native.feed, { answer: 3_000n * USD })
    expect(reasonsOf(route.warnings)).toEqual(['GAS_UNPRICED'])
  })

  describe('of a feed that does not stay as it is', () => {
    let routing: TestRouting
    let question: { paymentReference: Hex; wallet: string }
    /** What a unit of ETH is worth by the answer; undefined where it has no price. */
    const price = async () => {
      const [gas] = (await routing.find(question)).routes[0]?.feeBreakdown ?? []
      return gas?.amountInUsd === undefined ? undefined : Math.round(Number(gas.amountInUsd) / Number(gas.amount))
    }
    const round = (answer: bigint, updatedAtSec?: number) =>
      ethereum.setFeed(ethereum.native.feed, { answer, ...(updatedAtSec === undefined ? {} : { updatedAtSec }) })
    beforeEach(async () => {
      await round(3_000n * USD)
      routing = createTestRouting([configOf(ethereum, 'ETHEREUM')])
      question = { paymentReference: routing.addRequest(inUsdc('100')), wallet: await newWallet('changing feeds') }
      expect(await price()).toBe(3_000)
    })
    afterEach(async () => {
      for (let time = 0; time < 2; time++) await round(3_000n * USD)
    })

    /** Gives the feed other decimals, as a new contract behind it would. */
    async function withDecimals<T>(decimals: number, act: () => Promise<T>): Promise<T> {
      const { rpc } = ethereum.client
      const data = encodeCreation('SettableFeed', ['another', decimals, 1n, 1n])
      const { transactionHash } = await ethereum.send(ethereum.deployer, { data }, { gas: 5_000_000n })
      const created = await rpc.call<{ contractAddress: string }>('eth_getTransactionReceipt', [transactionHash])
      const { feed } = ethereum.native
      const before = await rpc.call('eth_getCode', [feed, 'latest'])
      await rpc.call('anvil_setCode', [feed, await rpc.call('eth_getCode', [created.contractAddress, 'latest'])])
      try {
        return await act()
      } finally {
        await rpc.call('anvil_setCode', [feed, before])
      }
    }

    it('are scaled by the decimals of the same block', async () => {
      const prices = await withDecimals(18, async () => {
        await round(3_100n * 10n ** 18n)
        return [await price(), await price()]
      })
      expect(prices).toEqual([3_100, 3_100])
    })

    it('are none where the decimals change and the answers do not', async () => {
      expect(await withDecimals(18, price)).toBeUndefined()
      expect(await price()).toBe(3_000)
    })

    it.each([
      ['ten times as much', 30_000n * USD, 30_000],
      ['more than ten times as much', 30_001n * USD, undefined],
      ['a tenth', 300n * USD, 300],
      ['less than a tenth', 299n * USD, undefined],
    ])('are judged by the round before: %s', async (_, answer, expected) => {
      await round(answer)
      expect([await price(), await price()]).toEqual([expected, expected])
    })

    it('count once the next round says the same, or the one before', async () => {
      await round(90_000n * USD)
      expect(await price()).toBeUndefined()
      await round(90_100n * USD)
      expect(await price()).toBe(90_100)
      await round(3_000n * USD)
      expect(await price()).toBeUndefined()
      await round(3_001n * USD)
      expect(await price()).toBe(3_001)
    })

    it('count once the round is a heartbeat old and no other has followed', async () => {
      const { timestampSec } = await ethereum.client.head()
      await round(90_000n * USD, timestampSec - 3_500)
      expect(await price()).toBeUndefined()
      await round(3_000n * USD)
      expect(await price()).toBeUndefined()
      await round(90_000n * USD, timestampSec - 3_610)
      expect(await price()).toBe(90_000)
    })

    it('are judged by the round before also where several rounds came since the last scan', async () => {
      for (const answer of [50_000n, 400_000n, 4_000n]) await round(answer * USD)
      // Only the second scan has asked for the round before.
      expect([await price(), await price()]).toEqual([4_000, undefined])
      await round(4_010n * USD)
      expect(await price()).toBe(4_010)
    })

    it('are judged from the first answer on once the process has learned its nodes', async () => {
      await round(90_000n * USD)
      const fresh = createTestRouting([configOf(ethereum, 'ETHEREUM')])
      await fresh.learnNodes(new AbortController().signal)
      routing = fresh
      question = { ...question, paymentReference: fresh.addRequest(inUsdc('100')) }
      expect(await price()).toBeUndefined()
    })
  })

  it('come from the peg where there is no feed', async () => {
    const route = await find({ USDC: { ...withoutPrice, pegUsd: '2' } }, { pegUsd: '1000.5' })
    const gas = Number(route.feeBreakdown[0]?.amount)
    expect(Number(route.feeBreakdown[0]?.amountInFeeCurrency)).toBeCloseTo((gas * 1000.5) / 2, 12)
    expect(route.feeBreakdown[1]).toMatchObject({ amount: '1', amountInFeeCurrency: '1', amountInUsd: '2' })
  })

  it('are absent from the answer where the payment currency has none', async () => {
    const route = await find({ USDC: withoutPrice })
    expect(route.feeInUsd).toBeUndefined()
    expect(route.feeBreakdown[1]!.amountInUsd).toBeUndefined()
    expect([route.feeAmount, route.fee, route.feeRate]).toEqual(['1', 1, 0.01])
    expect(route.warnings[0]?.message).toMatch(/^there is no price of USDC/)
  })

  it('are not needed for a native payment', async () => {
    const config = configOf(ethereum, 'ETHEREUM', { native: { symbol: 'ETH', decimals: 18 } })
    const priceless = createTestRouting([config])
    const currency = { invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const paymentReference = priceless.addRequest({ ...inUsdc('0.1'), ...currency })
    const route = (await priceless.find({ paymentReference, wallet: await newWallet('priceless') })).routes[0]
    expect(route?.warnings).toEqual([])
    expect(route?.feeAmount).toBe(route?.feeBreakdown[0]?.amount)
    expect(route!.feeInUsd).toBeUndefined()
  })
})

async function impersonate(wallet: EvmAddress): Promise<void> {
  await ethereum.client.rpc.call('anvil_impersonateAccount', [wallet])
}

function sum(a: string, b: string): string {
  return formatDecimal(addDecimals(parseDecimal(a) ?? fail(), parseDecimal(b) ?? fail()))
}

function fail(): never {
  throw new TypeError('no decimal')
}
