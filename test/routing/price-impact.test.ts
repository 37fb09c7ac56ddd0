import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Route } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { takeRoute } from '../support/chains/take-route.ts'
import { deployExchanges, type UniswapV2, type UniswapV3, withExchanges } from '../support/chains/uniswap.ts'
import {
  canonical,
  configOf,
  createTestRouting,
  type EvmAddress,
  freshAddress,
  type TestRouting,
} from '../support/routing.ts'

const POOLS_ABI = parseAbi([
  'function getPair(address a, address b) view returns (address)',
  'function getPool(address a, address b, uint24 fee) view returns (address)',
  'function getReserves() view',
  'function slot0() view',
  'function liquidity() view',
])

const decimals = { USDC: 6, DAI: 18, WETH: 18, WBTC: 8, GUSD: 2 } as const
type Token = keyof typeof decimals

interface Trade {
  readonly from: Token
  readonly to: Token
  /** The payment currency. */
  readonly amount: string
  readonly percentage?: string
}

let chain: TestChain
let v2: UniswapV2
let v3: UniswapV3
let routing: TestRouting
let addresses: Readonly<Record<Token, Hex>>
let trades = 0

const units = (token: Token, whole: number | string) =>
  (BigInt(Math.round(Number(whole) * 1e6)) * 10n ** BigInt(decimals[token])) / 10n ** 6n
const V3_FEES = { 'WETH USDC': 3000, 'WBTC USDC': 500, 'GUSD USDC': 3000, 'WETH DAI': 3000 } as Record<string, number>
const feeOf = (a: Token, b: Token) => V3_FEES[`${a} ${b}`] ?? V3_FEES[`${b} ${a}`] ?? 0

/** Pairs far from one to one, of tokens with 2, 6, 8 and 18 decimals. */
beforeAll(async () => {
  chain = await startTestChain({ baseFeePerGas: 8_000_000_000n })
  const exchanges = await deployExchanges(chain)
  ;({ v2, v3 } = exchanges)
  const deployed = async (symbol: Token) => (await chain.deployToken({ symbol, decimals: decimals[symbol] })).address
  addresses = {
    USDC: chain.tokens.USDC.address,
    DAI: chain.tokens.DAI.address,
    WETH: await deployed('WETH'),
    WBTC: await deployed('WBTC'),
    GUSD: await deployed('GUSD'),
  }
  const token = (symbol: Token) => ({ address: addresses[symbol] })
  const pools = [
    ['WETH', 1_000, 'USDC', 3_000_000],
    ['WBTC', 50, 'USDC', 3_100_000],
    ['GUSD', 1_000_000, 'USDC', 1_000_000],
    ['WBTC', 40, 'WETH', 800],
    ['WETH', 500, 'DAI', 1_500_000],
  ] as const
  for (const [a, ofA, b, ofB] of pools) {
    await v2.addLiquidity(token(a), units(a, ofA), token(b), units(b, ofB))
    const fee = feeOf(a, b)
    if (fee === 0) continue
    const sides = [
      { ...token(a), amount: units(a, ofA) },
      { ...token(b), amount: units(b, ofB) },
    ] as const
    await v3.addLiquidity(fee, ...sides)
    // Half as much liquidity again, within a few percent of the price: larger trades leave that range.
    if (b === 'DAI')
      await v3.addLiquidity(
        fee,
        { ...sides[0], amount: sides[0].amount / 2n },
        { ...sides[1], amount: sides[1].amount / 2n },
        3,
      )
  }
  const symbols = Object.keys(addresses) as Token[]
  await exchanges.swapToPay.approveAll(symbols.map(token))
  const tokens = symbols.map((symbol) => ({
    symbol,
    address: canonical(addresses[symbol]),
    decimals: decimals[symbol],
  }))
  routing = createTestRouting([withExchanges({ ...configOf(chain, 'ETHEREUM'), tokens }, exchanges, ['WETH'])])
})
afterAll(() => chain?.stop())

/** Whole numbers that a view of a contract returns. */
async function view(to: string, functionName: 'getReserves' | 'slot0' | 'liquidity'): Promise<bigint[]> {
  const data = encodeFunctionData({ abi: POOLS_ABI, functionName })
  const answer = await chain.client.read({ to: to as Hex, data })
  return (answer.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`))
}

async function poolOf(factory: EvmAddress, a: Token, b: Token, fee?: number): Promise<string> {
  const pair = [addresses[a], addresses[b]] as const
  const data =
    fee === undefined
      ? encodeFunctionData({ abi: POOLS_ABI, functionName: 'getPair', args: pair })
      : encodeFunctionData({ abi: POOLS_ABI, functionName: 'getPool', args: [...pair, fee] })
  return `0x${(await chain.client.read({ to: factory, data })).slice(-40)}`
}

const isFirst = (a: Token, b: Token) => addresses[a].toLowerCase() < addresses[b].toLowerCase()

/** A v2 pool's reserves of the input token and of the other, in base units. */
async function reserves(from: Token, to: Token): Promise<{ ofIn: bigint; ofOut: bigint }> {
  const [first = 0n, second = 0n] = await view(await poolOf(v2.factory, from, to), 'getReserves')
  const [ofIn, ofOut] = isFirst(from, to) ? [first, second] : [second, first]
  return { ofIn, ofOut }
}

/** The square root of the input's price in output, and the liquidity at that price. */
async function priceOf(from: Token, to: Token): Promise<{ root: number; liquidity: number }> {
  const pool = await poolOf(v3.factory, from, to, feeOf(from, to))
  const [root = 0n] = await view(pool, 'slot0')
  const [liquidity = 0n] = await view(pool, 'liquidity')
  const ofFirst = Number(root) / 2 ** 96
  return { root: isFirst(from, to) ? ofFirst : 1 / ofFirst, liquidity: Number(liquidity) }
}

/** Quotes a trade and executes it. @returns the quote, with amounts in base units */
async function take({ from, to, amount, percentage }: Trade, provider: string) {
  const wallet = freshAddress(`wallet of a trade ${trades++}`)
  await chain.setNativeBalance(wallet, 10n ** 18n)
  await chain.client.rpc.call('anvil_impersonateAccount', [wallet])
  await chain.fund({ address: addresses[from] }, wallet, units(from, 10_000_000))
  const currency = { invoiceCurrency: `${to}-ETHEREUM`, paymentCurrency: `${to}-ETHEREUM` }
  const payee = freshAddress(`payee of a trade ${trades}`)
  const paymentReference = routing.addRequest({ payee, amount, network: 'ETHEREUM', ...currency })
  const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress: freshAddress('platform') }
  const id = `ETHEREUM_ETHEREUM_${from}_${to}${provider === 'uniswap-v3' ? '_UNISWAP_V3' : ''}`
  const { route, transactions } = await routing.prepare({ paymentReference, wallet, ...fee, route: id })
  await takeRoute(chain, wallet, { transactions })
  const line = (type: string) => Number(route.feeBreakdown.find((each) => each.type === type)?.amount ?? 0)
  return {
    route,
    stated: route.priceImpact,
    received: Number(amount) * 10 ** decimals[to],
    out: (Number(amount) + line('PLATFORM')) * 10 ** decimals[to],
    lpFee: line('SWAP') * 10 ** decimals[to],
    sourceAmount: Number(route.sourceAmount) * 10 ** decimals[from],
  }
}

/** The same to 8 places, or to the worth of the smallest unit that can go in, which no pool divides. */
function expectImpact(stated: number, computed: number, unit: number) {
  expect(Math.abs(stated - computed)).toBeLessThan(2e-8 + unit)
}

/** The input at the price before the trade is the output, the fees and the price impact together. */
function expectToAddUp(taken: Awaited<ReturnType<typeof take>>, midPrice: number) {
  const paid = taken.sourceAmount * midPrice
  expect(Math.abs(paid - taken.out - taken.lpFee - taken.stated * taken.received) / taken.received).toBeLessThan(
    2e-8 + 0.5 / taken.received,
  )
}

const straight: readonly Trade[] = [
  { from: 'WETH', to: 'USDC', amount: '0.5' },
  { from: 'WETH', to: 'USDC', amount: '150.123456', percentage: '1.5' },
  { from: 'WETH', to: 'USDC', amount: '400000' },
  { from: 'USDC', to: 'WETH', amount: '0.05' },
  { from: 'USDC', to: 'WETH', amount: '90', percentage: '0.3' },
  { from: 'WBTC', to: 'USDC', amount: '2' },
  { from: 'WBTC', to: 'USDC', amount: '1000000' },
  { from: 'USDC', to: 'WBTC', amount: '0.00012345' },
  { from: 'USDC', to: 'WBTC', amount: '20' },
  { from: 'GUSD', to: 'USDC', amount: '1' },
  { from: 'GUSD', to: 'USDC', amount: '250000', percentage: '1' },
]

describe('the price impact on v2', () => {
  it.each(straight)('follows from the reserves: $from for $amount $to', async (trade) => {
    const { from, to } = trade
    const before = await reserves(from, to)
    const taken = await take(trade, 'uniswap-v2')
    const after = await reserves(from, to)
    const midPrice = Number(before.ofOut) / Number(before.ofIn)
    const [wentIn, cameOut] = [Number(after.ofIn - before.ofIn), Number(before.ofOut - after.ofOut)]
    expect(cameOut / taken.out).toBeCloseTo(1, 12)
    expectImpact(
      taken.stated,
      (wentIn * 0.997 * midPrice - cameOut) / taken.received,
      (midPrice * 1e-6) / taken.received,
    )
    expect(Math.abs(taken.lpFee - wentIn * 0.003 * midPrice)).toBeLessThanOrEqual(0.5 + 1e-9 * taken.out)
    expectToAddUp(taken, midPrice)
    // What the constant product gives, up to rounding.
    const ofOut = Number(before.ofOut)
    const share = cameOut / ofOut
    expectImpact(taken.stated, ((1 / (1 - share) - 1) * share * ofOut) / taken.received, midPrice / taken.received)
  })

  it.each([
    { from: 'WBTC', to: 'DAI', amount: '20' },
    { from: 'WBTC', to: 'DAI', amount: '200000' },
  ] as const)('adds up over a path of two pools: $amount $to', async (trade) => {
    const before = [await reserves('WBTC', 'WETH'), await reserves('WETH', 'DAI')] as const
    const taken = await take(trade, 'uniswap-v2')
    const after = [await reserves('WBTC', 'WETH'), await reserves('WETH', 'DAI')] as const
    const mids = before.map(({ ofIn, ofOut }) => Number(ofOut) / Number(ofIn)) as [number, number]
    const wentIn = after.map(({ ofIn }, i) => Number(ofIn - (before[i]?.ofIn ?? 0n))) as [number, number]
    const kept = wentIn[0] * 0.003 * mids[0] * mids[1] + wentIn[1] * 0.003 * mids[1]
    const loss = wentIn[0] * mids[0] * mids[1] - taken.out
    expect(taken.lpFee / kept).toBeCloseTo(1, 6)
    expectImpact(taken.stated, (loss - kept) / taken.received, 0)
    expectToAddUp(taken, mids[0] * mids[1])
  })
})

describe('the price impact on v3', () => {
  it.each(straight)('follows from the prices before and after: $from for $amount $to', async (trade) => {
    const { from, to } = trade
    const before = await priceOf(from, to)
    const taken = await take(trade, 'uniswap-v3')
    const after = await priceOf(from, to)
    const midPrice = before.root ** 2
    const computed = ((before.root / after.root - 1) * taken.out) / taken.received
    expectImpact(taken.stated, computed, (2 * midPrice) / taken.received)
    expectToAddUp(taken, midPrice)
  })

  it.each([
    { from: 'WETH', to: 'DAI', amount: '1000' },
    { from: 'WETH', to: 'DAI', amount: '900000' },
    { from: 'DAI', to: 'WETH', amount: '300' },
  ] as const)('counts all liquidity that a trade passes: $from for $amount $to', async (trade) => {
    const { from, to } = trade
    const before = await priceOf(from, to)
    const taken = await take(trade, 'uniswap-v3')
    const after = await priceOf(from, to)
    // Liquidity changes once; the output tells at which price.
    const [a, b] = [before.liquidity, after.liquidity]
    const edge = a === b ? after.root : (a * before.root - b * after.root - taken.out) / (a - b)
    const wentIn = a * (1 / edge - 1 / before.root) + b * (1 / after.root - 1 / edge)
    expect(a === b).toBe(trade.amount === '1000')
    expectImpact(taken.stated, (wentIn * before.root ** 2 - taken.out) / taken.received, 1e-7)
    expectToAddUp(taken, before.root ** 2)
  })
})

it('the price impact is that of the pools, with a warning, where prices are not known', async () => {
  const { route } = await take({ from: 'WETH', to: 'USDC', amount: '1000' }, 'uniswap-v2')
  expect((route satisfies Route).feeInUsd).toBeUndefined()
  expect(route.priceImpact).toBeGreaterThan(0)
  expect(route.warnings.map(({ reason }) => reason)).toContain('PRICE_UNCHECKED')
})

describe('a pool that a stranger has moved', () => {
  const USD = 10n ** 8n
  const ID = 'ETHEREUM_ETHEREUM_USDT_USDC'
  let market: TestChain
  let pools: UniswapV2
  let tiers: UniswapV3
  let service: TestRouting
  let services: { readonly unpriced: TestRouting; readonly pegged: TestRouting }
  beforeAll(async () => {
    market = await startTestChain({ baseFeePerGas: 8_000_000_000n })
    const { USDC, USDT, DAI } = market.tokens
    const exchanges = await deployExchanges(market)
    ;({ v2: pools, v3: tiers } = exchanges)
    const [dollars, coins] = [1_000_000n * 10n ** 6n, 1_000_000n * 10n ** 18n]
    await pools.addLiquidity(USDT, dollars, USDC, dollars)
    await pools.addLiquidity(DAI, coins, USDC, dollars)
    await tiers.addLiquidity(500, { ...USDT, amount: dollars }, { ...USDC, amount: dollars })
    await exchanges.swapToPay.approveAll([USDC, USDT, DAI])
    const open = (tokens: Record<string, object> = {}) =>
      createTestRouting([withExchanges(configOf(market, 'ETHEREUM', { tokens }), exchanges, [])])
    service = open()
    const none = { usdFeed: undefined, heartbeatSeconds: undefined }
    services = { unpriced: open({ USDT: none }), pegged: open({ USDT: { ...none, pegUsd: '1' } }) }
    // So that 100 USDC take some 210 USDT of the pool, of which it says that it is worth as much.
    await pools.trade(449_000n * 10n ** 6n, USDT, USDC)
  })
  afterAll(() => market?.stop())

  let wallets = 0
  /** A wallet with a thousand of each token, and a request for 100 USDC. */
  async function ask(routing = service, wei = 10n ** 18n) {
    const wallet = freshAddress(`wallet of a moved pool ${wallets++}`)
    await market.setNativeBalance(wallet, wei)
    await market.client.rpc.call('anvil_impersonateAccount', [wallet])
    for (const token of [market.tokens.USDT, market.tokens.DAI]) {
      await market.fund(token, wallet, 1_000n * 10n ** BigInt(token.decimals))
    }
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const payee = freshAddress(`payee of a moved pool ${wallets}`)
    const paymentReference = routing.addRequest({ payee, amount: '100', network: 'ETHEREUM', ...currency })
    return { paymentReference, wallet }
  }
  const summary = (routes: readonly Route[]) =>
    routes.map(({ id, tags, warnings }) => [id, tags, warnings.map(({ reason }) => reason)])

  it('has the price impact of what it takes, no tag, and stands last', async () => {
    const { routes } = await service.find(await ask())
    expect(summary(routes)).toEqual([
      ['ETHEREUM_ETHEREUM_DAI_USDC', ['CHEAPEST', 'FASTEST'], []],
      [`${ID}_UNISWAP_V3`, [], []],
      [ID, [], ['SWAP_OFF_MARKET']],
    ])
    const moved = routes[2] as Route
    const taken = Number(moved.sourceAmount)
    expect(taken).toBeGreaterThan(205)
    const lpFee = Number(moved.feeBreakdown.find(({ type }) => type === 'SWAP')?.amount)
    expect(moved.priceImpact).toBeCloseTo((taken - 100 - lpFee) / 100, 7)
    expect(moved.totalCost).toBeGreaterThan(1)
    expect(moved.warnings[0]?.message).toMatch(/^the pools of uniswap-v2 price USDT below the market: 1\.\d+ of/)
    for (const sort of ['CHEAPEST', 'FASTEST'] as const) {
      expect((await service.find({ ...(await ask()), sort })).routes.at(-1)?.id).toBe(ID)
    }
  })

  it('takes exactly that much, when somebody takes it all the same', async () => {
    const question = await ask()
    const { route, transactions } = await service.prepare({ ...question, route: ID })
    const before = await market.balanceOf(market.tokens.USDT, question.wallet)
    await takeRoute(market, question.wallet, { transactions })
    const spent = before - (await market.balanceOf(market.tokens.USDT, question.wallet))
    expect(Number(spent) / 1e6).toBe(Number(route.sourceAmount))
  })

  it.each([
    ['0.01', 'PRICE_IMPACT_ABOVE_MAXIMUM'],
    ['2', 'PRICE_IMPACT_UNCERTAIN'],
  ])('passes no maxPriceImpact, not even %s', async (maxPriceImpact, reason) => {
    const { routes, unavailable } = await service.find({ ...(await ask()), maxPriceImpact })
    expect(routes.map(({ id }) => id)).toEqual(['ETHEREUM_ETHEREUM_DAI_USDC', `${ID}_UNISWAP_V3`])
    const entry = unavailable.find(({ token, provider }) => token === 'USDT' && provider === 'uniswap-v2')
    expect(entry).toMatchObject({ reason, remedy: 'leave maxPriceImpact out' })
  })

  it('is judged by a peg as well', async () => {
    const [moved] = (await services.pegged.find(await ask(services.pegged))).routes.filter(({ id }) => id === ID)
    expect(moved?.priceImpact).toBeGreaterThan(1)
    expect(summary([moved as Route])).toEqual([[ID, [], ['SWAP_OFF_MARKET']]])
  })

  it('is unchecked without a price: its own price counts, and it stands behind all others without a tag, whatever it seems to cost', async () => {
    const { routes } = await services.unpriced.find(await ask(services.unpriced))
    expect(summary(routes)).toEqual([
      ['ETHEREUM_ETHEREUM_DAI_USDC', ['CHEAPEST', 'FASTEST'], []],
      [ID, [], ['PRICE_UNCHECKED']],
      [`${ID}_UNISWAP_V3`, [], ['PRICE_UNCHECKED']],
    ])
    expect(routes[1]?.priceImpact).toBeLessThan(0.01)
    const strict = await services.unpriced.find({ ...(await ask(services.unpriced)), maxPriceImpact: '0.9' })
    expect(strict.routes.map(({ id }) => id)).toEqual(['ETHEREUM_ETHEREUM_DAI_USDC'])
    expect(strict.unavailable.filter(({ reason }) => reason === 'PRICE_IMPACT_UNCERTAIN')).toHaveLength(2)
  })

  it('is unchecked while its feed is stale', async () => {
    const { timestampSec } = await market.client.head()
    await market.setFeed(market.tokens.USDT.feed, { answer: USD, updatedAtSec: timestampSec - 10_000_000 })
    const stale = await service.find(await ask())
    await market.setFeed(market.tokens.USDT.feed, { answer: USD })
    const [first, ...others] = summary(stale.routes)
    expect(first).toEqual(['ETHEREUM_ETHEREUM_DAI_USDC', ['CHEAPEST', 'FASTEST'], []])
    expect(others).toContainEqual([ID, [], ['PRICE_UNCHECKED']])
  })

  it('stands behind a route of honest price, but no route without gas carries a tag', async () => {
    const { routes } = await service.find(await ask(service, 0n))
    expect(routes.map(({ id, tags }) => [id, tags])).toEqual([
      ['ETHEREUM_ETHEREUM_DAI_USDC', []],
      [`${ID}_UNISWAP_V3`, []],
      [ID, []],
    ])
  })

  it('moved to the payer’s gain has a price impact below 0', async () => {
    const { USDC, DAI } = market.tokens
    await pools.trade(100_000n * 10n ** 6n, USDC, DAI)
    const [first] = (await service.find(await ask())).routes
    expect(first?.id).toBe('ETHEREUM_ETHEREUM_DAI_USDC')
    expect(first?.priceImpact).toBeLessThan(-0.1)
    expect(first?.warnings).toEqual([])
  })
})
