import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Route } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import {
  deploySwapToPay,
  deployUniswapV2,
  type SwapToPay,
  type UniswapV2,
  uniswapV2Config,
} from '../support/chains/uniswap.ts'
import { configOf, createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n
const USDC_UNIT = 10n ** 6n
/** Request's ERC20SwapToPay over Uniswap v2, both with their own bytecode. */
describe('a swap through Uniswap v2, executed on the chain', () => {
  let chain: TestChain
  let v2: UniswapV2
  let swapToPay: SwapToPay
  let routing: TestRouting
  let cases = 0
  beforeAll(async () => {
    chain = await startTestChain({ baseFeePerGas: 8_000_000_000n })
    v2 = await deployUniswapV2(chain)
    swapToPay = await deploySwapToPay(chain, v2.router)
    const { USDC, USDT, DAI } = chain.tokens
    await v2.addLiquidity(DAI, 1_000_000n * COIN, USDC, 1_010_000n * USDC_UNIT)
    await v2.addLiquidity(USDT, 500_000n * USDC_UNIT, DAI, 500_000n * COIN)
    await swapToPay.approveAll([USDC, USDT, DAI])
    routing = createTestRouting([configWith()])
    // A pool writes its prices from the second block on, and the table holds that gas.
    for (const later of [100, 200]) {
      const { timestamp } = await chain.client.rpc.call<{ timestamp: string }>('eth_getBlockByNumber', [
        'latest',
        false,
      ])
      await chain.mine({ timestampSec: Number(timestamp) + later })
      const { payer, question, id } = await arrange({ from: 'USDT', amount: '1' })
      await takeRoute(chain, payer, await routing.prepare({ ...question, route: id }))
    }
  })
  afterAll(() => chain.stop())

  function configWith(changes: object = {}) {
    const config = configOf(chain, 'ETHEREUM')
    return {
      ...config,
      contracts: [...config.contracts, swapToPay.config],
      swapV2: { ...uniswapV2Config(v2, ['DAI']), ...changes },
    }
  }

  interface Terms {
    from: 'DAI' | 'USDT'
    amount: string
    percentage?: string
    swapFee?: bigint
    known?: boolean
    /** The pools are off the market before the trade. */
    isOff?: boolean
  }

  async function arrange({ from, amount, percentage, known }: Terms, service = routing) {
    const seed = `${cases++}`
    const [payer, payee, feeAddress] = ['payer', 'payee', 'fee'].map((who) => freshAddress(`${who} v2 ${seed}`)) as [
      EvmAddress,
      EvmAddress,
      EvmAddress,
    ]
    await chain.setNativeBalance(payer, 100n * COIN)
    await chain.client.rpc.call('anvil_impersonateAccount', [payer])
    const source = chain.tokens[from]
    await chain.fund(source, payer, 10n ** BigInt(source.decimals + 6))
    if (known) for (const owner of [payee, feeAddress]) await chain.fund(chain.tokens.USDC, owner, 1n)
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = service.addRequest({ payee, amount, network: 'ETHEREUM', ...currency })
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const question = { paymentReference, wallet: payer, ...fee }
    const balances = async () => [
      await chain.balanceOf(source, payer),
      await chain.balanceOf(chain.tokens.USDC, payer),
      await chain.balanceOf(chain.tokens.USDC, payee),
      await chain.balanceOf(chain.tokens.USDC, feeAddress),
    ]
    return { payer, question, balances, id: `ETHEREUM_ETHEREUM_${from}_USDC` }
  }

  const unitsOf = (route: Route, type: string) =>
    parseAmount(route.feeBreakdown.find((line) => line.type === type)?.amount ?? '0', 6) as bigint

  it.each<Terms>([
    { from: 'DAI', amount: '0.000001' },
    { from: 'DAI', amount: '150.123456' },
    { from: 'DAI', amount: '150.123456', percentage: '1.5', known: true },
    { from: 'DAI', amount: '100000', percentage: '0.1' },
    // The case before has moved the price of DAI, which is on the path of USDT too.
    { from: 'DAI', amount: '99.999999', percentage: '0', swapFee: 5n, isOff: true },
    { from: 'DAI', amount: '99.999999', percentage: '0.7', swapFee: 5n, isOff: true },
    { from: 'USDT', amount: '150', isOff: true },
    { from: 'USDT', amount: '20000', percentage: '2', swapFee: 1n, known: true, isOff: true },
  ])('spends exactly what was quoted: %o', async (terms) => {
    await swapToPay.setFee(terms.swapFee ?? 0n)
    const { payer, question, balances, id } = await arrange(terms)
    const prepared = await routing.prepare({ ...question, route: id })
    const { route } = prepared
    const before = await balances()
    const taken = await takeRoute(chain, payer, prepared)
    const moved = (await balances()).map((balance, i) => balance - (before[i] ?? 0n))
    const spent = parseAmount(route.sourceAmount, chain.tokens[terms.from].decimals) as bigint
    const fees = unitsOf(route, 'PLATFORM') + unitsOf(route, 'PROTOCOL')
    const received = parseAmount(terms.amount, 6) as bigint
    expect(moved).toEqual([-spent, 0n, received, terms.percentage === undefined ? 0n : fees])
    expect(route.atomic).toBe(true)
    expect(route.warnings.map(({ reason }) => reason)).toEqual(terms.isOff ? ['SWAP_OFF_MARKET'] : [])
    expectGasWithin(route, taken)
  })

  it('never spends more than its limit, whoever trades in between', async () => {
    await swapToPay.setFee(0n)
    const { payer, question, balances, id } = await arrange({ from: 'DAI', amount: '1000' })
    const prepared = await routing.prepare({ ...question, route: id, slippage: '1' })
    const limit = parseAmount(prepared.maxSourceAmount, 18) as bigint
    const { DAI, USDC } = chain.tokens
    const trader = chain.deployer
    const had = await chain.balanceOf(USDC, trader)
    await v2.trade(50_000n * COIN, DAI, USDC)
    const bought = (await chain.balanceOf(USDC, trader)) - had
    const before = await balances()
    await expect(takeRoute(chain, payer, prepared)).rejects.toThrow(/revert/)
    expect(await balances()).toEqual(before)
    // The pool's fees of both trades leave the price a little worse.
    await v2.trade(bought, USDC, DAI)
    const last = { transactions: prepared.transactions.slice(-1) }
    await takeRoute(chain, payer, last)
    const spent = (before[0] ?? 0n) - ((await balances())[0] ?? 0n)
    expect(spent).toBeGreaterThan(parseAmount(prepared.route.sourceAmount, 18) as bigint)
    expect(spent).toBeLessThanOrEqual(limit)
  })

  it('names what prevents a swap, and appears once that is mended', async () => {
    const reasonOf = async (service: TestRouting, terms: Terms) => {
      const { question } = await arrange(terms, service)
      const { unavailable, routes } = await service.find(question)
      const entry = unavailable.find(({ token, provider }) => token === terms.from && provider === 'uniswap-v2')
      return entry?.reason ?? routes.find(({ token }) => token === terms.from)?.id
    }
    const straightOnly = createTestRouting([configWith({ through: [] })])
    expect(await reasonOf(straightOnly, { from: 'USDT', amount: '10' })).toBe('NO_POOL')
    expect(await reasonOf(routing, { from: 'USDT', amount: '10' })).toBe('ETHEREUM_ETHEREUM_USDT_USDC')
    expect(await reasonOf(routing, { from: 'DAI', amount: '2000000' })).toBe('INSUFFICIENT_LIQUIDITY')
    expect(await reasonOf(routing, { from: 'DAI', amount: '700000' })).toBe('INSUFFICIENT_BALANCE')
    const elsewhere = createTestRouting([configWith({ router: freshAddress('another router') })])
    expect(await reasonOf(elsewhere, { from: 'DAI', amount: '10' })).toBe('SWAP_NOT_SET_UP')
    const none = createTestRouting([configOf(chain, 'ETHEREUM')])
    expect(await reasonOf(none, { from: 'DAI', amount: '10' })).toBeUndefined()
    const half = createTestRouting([{ ...configWith(), contracts: configOf(chain, 'ETHEREUM').contracts }])
    expect(await reasonOf(half, { from: 'DAI', amount: '10' })).toBe('NO_SWAP_CONTRACT')

    const young = await deploySwapToPay(chain, v2.router)
    const config = configWith()
    const contracts = config.contracts.map((contract) =>
      contract.kind === 'ERC20_SWAP_TO_PAY' ? { ...contract, address: young.address } : contract,
    )
    const ofYoung = createTestRouting([{ ...config, contracts }])
    expect(await reasonOf(ofYoung, { from: 'DAI', amount: '10' })).toBe('SWAP_NOT_SET_UP')
    await young.approveRouter(chain.tokens.DAI)
    expect(await reasonOf(ofYoung, { from: 'DAI', amount: '10' })).toBe('SWAP_NOT_SET_UP')
    await young.approveProxy(chain.tokens.USDC)
    expect(await reasonOf(ofYoung, { from: 'DAI', amount: '10' })).toBe('ETHEREUM_ETHEREUM_DAI_USDC')
  })

  it('requires a balance of the most that the contract pulls, though it returns the rest', async () => {
    const { payer, question, id } = await arrange({ from: 'DAI', amount: '100' })
    const { route, maxSourceAmount } = await routing.prepare({ ...question, route: id })
    const poor = freshAddress('v2 poor')
    await chain.fund(chain.tokens.DAI, poor, parseAmount(route.sourceAmount, 18) as bigint)
    const { unavailable } = await routing.find({ ...question, wallet: poor })
    expect(unavailable.find(({ token }) => token === 'DAI')).toMatchObject({ reason: 'INSUFFICIENT_BALANCE' })
    await chain.fund(
      chain.tokens.DAI,
      poor,
      (parseAmount(maxSourceAmount, 18) as bigint) - (parseAmount(route.sourceAmount, 18) as bigint),
    )
    expect((await routing.find({ ...question, wallet: poor })).routes.map((each) => each.id)).toContain(id)
    expect(payer).not.toBe(poor)
  })
})
