import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Route } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import { deployUniswapV3, type UniswapV3, uniswapV3Config } from '../support/chains/uniswap.ts'
import { configOf, createTestRouting, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n
const USDC_UNIT = 10n ** 6n
/** Uniswap's own contracts; the payment goes through Request's fee proxy. */
describe('a swap through Uniswap v3, executed on the chain', () => {
  let chain: TestChain
  let v3: UniswapV3
  let routing: TestRouting
  let cases = 0
  beforeAll(async () => {
    chain = await startTestChain({ baseFeePerGas: 8_000_000_000n })
    v3 = await deployUniswapV3(chain)
    const { USDC, USDT, DAI } = chain.tokens
    const usdc = (amount: bigint) => ({ ...USDC, amount: amount * USDC_UNIT })
    await v3.addLiquidity(500, { ...DAI, amount: 1_000_000n * COIN }, usdc(1_010_000n))
    await v3.addLiquidity(100, { ...DAI, amount: 1_000n * COIN }, usdc(1_010n), 40)
    await v3.addLiquidity(3000, { ...USDT, amount: 300_000n * USDC_UNIT }, usdc(297_000n))
    routing = createTestRouting([configWith()])
  })
  afterAll(() => chain.stop())

  function configWith(changes: object = {}) {
    return { ...configOf(chain, 'ETHEREUM'), swapV3: { ...uniswapV3Config(v3), ...changes } }
  }

  interface Terms {
    from: 'DAI' | 'USDT'
    amount: string
    percentage?: string
    holds?: bigint
  }

  async function arrange({ from, amount, percentage, holds = 0n }: Terms) {
    const seed = `${cases++}`
    const [payer, payee, feeAddress] = [
      freshAddress(`payer v3 ${seed}`),
      freshAddress(`payee v3 ${seed}`),
      freshAddress(`fee v3 ${seed}`),
    ]
    await chain.setNativeBalance(payer, 100n * COIN)
    await chain.client.rpc.call('anvil_impersonateAccount', [payer])
    const source = chain.tokens[from]
    await chain.fund(source, payer, 10n ** BigInt(source.decimals + 6))
    if (holds > 0n) await chain.fund(chain.tokens.USDC, payer, holds)
    const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const paymentReference = routing.addRequest({ payee, amount, network: 'ETHEREUM', ...currency })
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const question = { paymentReference, wallet: payer, ...fee }
    const owners = [payer, payee, feeAddress]
    const balances = async () => [
      await chain.balanceOf(source, payer),
      ...(await Promise.all(owners.map((owner) => chain.balanceOf(chain.tokens.USDC, owner)))),
    ]
    return { payer, question, balances, id: `ETHEREUM_ETHEREUM_${from}_USDC_UNISWAP_V3` }
  }

  const unitsOf = (route: Route, type: string) =>
    parseAmount(route.feeBreakdown.find((line) => line.type === type)?.amount ?? '0', 6) as bigint

  it.each<Terms>([
    { from: 'DAI', amount: '0.000001' },
    { from: 'DAI', amount: '150.123456' },
    { from: 'DAI', amount: '150.123456', percentage: '1.5', holds: 5n },
    { from: 'DAI', amount: '900' },
    { from: 'DAI', amount: '100000', percentage: '0.1' },
    { from: 'USDT', amount: '150' },
    { from: 'USDT', amount: '20000', percentage: '2' },
  ])('spends exactly what was quoted: %o', async (terms) => {
    const { payer, question, balances, id } = await arrange(terms)
    const prepared = await routing.prepare({ ...question, route: id })
    const { route } = prepared
    expect([route.atomic, route.readiness.steps]).toEqual([false, ['APPROVE', 'SWAP', 'APPROVE', 'PAY']])
    const before = await balances()
    const taken = await takeRoute(chain, payer, prepared)
    const moved = (await balances()).map((balance, i) => balance - (before[i] ?? 0n))
    const spent = parseAmount(route.sourceAmount, chain.tokens[terms.from].decimals) as bigint
    expect(moved).toEqual([-spent, 0n, parseAmount(terms.amount, 6), unitsOf(route, 'PLATFORM')])
    expectGasWithin(route, taken)
  })

  it('takes the tier that costs the least for this amount', async () => {
    const swapFee = async (amount: string) => {
      const { question, id } = await arrange({ from: 'DAI', amount })
      const { route } = await routing.prepare({ ...question, route: id })
      return Number(unitsOf(route, 'SWAP')) / Number(parseAmount(amount, 6))
    }
    expect(await swapFee('10')).toBeLessThan(0.00012)
    expect(await swapFee('50000')).toBeGreaterThan(0.0005)
  })

  it('never spends more than its limit, and leaves the bought tokens in the wallet', async () => {
    const { payer, question, balances, id } = await arrange({ from: 'USDT', amount: '1000' })
    const prepared = await routing.prepare({ ...question, route: id, slippage: '0.2' })
    const { USDT, USDC } = chain.tokens
    await v3.trade(3000, 20_000n * USDC_UNIT, USDT, USDC)
    const before = await balances()
    await expect(takeRoute(chain, payer, prepared)).rejects.toThrow(/revert/)
    expect(await balances()).toEqual(before)

    const again = await routing.prepare({ ...question, route: id })
    expect(again.route.warnings.map(({ reason }) => reason)).toEqual(['SWAP_OFF_MARKET'])
    const untilSwap = again.steps.findIndex(({ kind }) => kind === 'SWAP') + 1
    await takeRoute(chain, payer, { transactions: again.transactions.slice(0, untilSwap) })
    expect((await balances())[1]).toBe(1_000n * USDC_UNIT)
    const { routes } = await routing.find(question)
    expect(routes[0]?.id).toBe('REQUEST_NETWORK_PAYMENT')
  })

  it('names what prevents a swap', async () => {
    const reasonOf = async (terms: Terms, service = routing) => {
      const { question } = await arrange(terms)
      const paymentReference = service.addRequest({
        payee: freshAddress('payee'),
        amount: terms.amount,
        network: 'ETHEREUM',
        invoiceCurrency: 'USDC-ETHEREUM',
        paymentCurrency: 'USDC-ETHEREUM',
      })
      const { unavailable } = await service.find({ ...question, paymentReference })
      return unavailable.find(({ token, provider }) => token === terms.from && provider === 'uniswap-v3')?.reason
    }
    expect(await reasonOf({ from: 'DAI', amount: '3000000' })).toBe('INSUFFICIENT_LIQUIDITY')
    expect(await reasonOf({ from: 'DAI', amount: '10' }, createTestRouting([configWith({ fees: [10000] })]))).toBe(
      'NO_POOL',
    )
    const { question } = await arrange({ from: 'DAI', amount: '10' })
    const { unavailable } = await routing.find(question)
    expect(unavailable.find(({ token, provider }) => token === 'ETH' && provider === 'uniswap-v3')?.reason).toBe(
      'COIN_NOT_SWAPPABLE',
    )
  })
})
