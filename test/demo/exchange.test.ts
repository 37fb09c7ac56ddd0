import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEMO_CHAINS } from '../../demo/network/chain-specs.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import { createTestRouting, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n

/** Request's ERC20SwapToPay over the demo's own exchange. */
describe("a swap on the demo's exchange", () => {
  let chain: TestChain
  let routing: TestRouting
  beforeAll(async () => {
    chain = await startTestChain({ baseFeePerGas: 8_000_000_000n, spec: { pools: DEMO_CHAINS[0]?.pools ?? [] } })
    routing = createTestRouting([chain.config({ name: 'ETHEREUM', finalityDepth: 5 })])
  })
  afterAll(() => chain.stop())

  it.each([
    { from: 'DAI', into: 'USDC', amount: '150', leastImpact: 0, mostImpact: 0.0001 },
    { from: 'USDC', into: 'DAI', amount: '0.000000000000000001', leastImpact: 0, mostImpact: 1e13 },
    { from: 'USDT', into: 'USDC', amount: '1000', percentage: '1', leastImpact: 0.05, mostImpact: 0.06 },
    // The trade before has left USDT cheap, and this one leaves it dear: both counted against the feeds.
    { from: 'USDC', into: 'USDT', amount: '1500', leastImpact: -0.04, mostImpact: -0.02 },
    { from: 'DAI', into: 'USDT', amount: '150', percentage: '0.5', leastImpact: 0.05, mostImpact: 0.06 },
  ] as const)('costs what was quoted: %o', async ({ from, into, amount, leastImpact, mostImpact, ...fee }) => {
    const [source, target] = [chain.tokens[from], chain.tokens[into]]
    const [payer, payee, feeAddress] = [
      freshAddress(`payer ${from} ${into}`),
      freshAddress(`payee ${from} ${into}`),
      freshAddress('fee'),
    ]
    await chain.setNativeBalance(payer, COIN)
    await chain.client.rpc.call('anvil_impersonateAccount', [payer])
    await chain.fund(source, payer, 10n ** BigInt(source.decimals + 4))
    const currency = `${into}-ETHEREUM`
    const terms = { payee, amount, network: 'ETHEREUM', invoiceCurrency: currency, paymentCurrency: currency }
    const paymentReference = routing.addRequest(terms)
    const platform = 'percentage' in fee ? { feePercentage: fee.percentage, feeAddress } : {}
    const route = `ETHEREUM_ETHEREUM_${from}_${into}`
    const prepared = await routing.prepare({ paymentReference, wallet: payer, route, ...platform })
    const balances = async () => [
      await chain.balanceOf(source, payer),
      await chain.balanceOf(target, payer),
      await chain.balanceOf(target, payee),
      await chain.balanceOf(target, feeAddress),
    ]
    const before = await balances()
    const taken = await takeRoute(chain, payer, prepared)
    const moved = (await balances()).map((balance, i) => balance - (before[i] ?? 0n))
    const platformFee = prepared.route.feeBreakdown.find(({ type }) => type === 'PLATFORM')?.amount ?? '0'
    const [spent, fees] = [
      parseAmount(prepared.route.sourceAmount, source.decimals) ?? 0n,
      parseAmount(platformFee, target.decimals) ?? 0n,
    ]
    expect(moved).toEqual([-spent, 0n, parseAmount(amount, target.decimals), fees])
    expect(prepared.route.priceImpact).toBeGreaterThanOrEqual(leastImpact)
    expect(prepared.route.priceImpact).toBeLessThan(mostImpact)
    expectGasWithin(prepared.route, taken)
  })
})
