import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { encodeAggregators, encodeCreation } from '../../demo/network/demo-contracts.ts'
import { currencyHash } from '../../src/contracts/currency-hash.ts'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import { configOf, createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

const COIN = 10n ** 18n
const USD = 10n ** 8n
const ID = 'REQUEST_NETWORK_PAYMENT'

/** Fiat requests are paid through Request's conversion proxies, on a chain that runs their bytecode. */
describe('a conversion, executed on the chain', () => {
  let chain: TestChain
  let routing: TestRouting
  let cases = 0
  beforeAll(async () => {
    chain = await startTestChain({ baseFeePerGas: 8_000_000_000n })
    const config = configOf(chain, 'ETHEREUM')
    const paths = ['USDC', 'USDT', 'DAI', 'ETH'].flatMap((token) => [
      { from: 'USD', token, via: [], heartbeatSeconds: 3_600 },
      { from: 'EUR', token, via: ['USD'], heartbeatSeconds: 3_600 },
      { from: 'CHF', token, via: [], heartbeatSeconds: 3_600 },
    ])
    routing = createTestRouting([{ ...config, conversion: { path: config.conversion?.path as EvmAddress, paths } }])
    const head = await chain.client.rpc.call<{ timestamp: string }>('eth_getBlockByNumber', ['latest', false])
    const round = ['EUR / USD', 8, (107n * USD) / 100n, BigInt(head.timestamp)] as const
    const feed = await chain.send(
      chain.deployer,
      { data: encodeCreation('SettableFeed', [...round]) },
      { gas: 5_000_000n },
    )
    const receipt = await chain.client.rpc.call<{ contractAddress: EvmAddress }>('eth_getTransactionReceipt', [
      feed.transactionHash,
    ])
    const [eur, usd] = ['EUR', 'USD'].map((code) => currencyHash('iso4217', code) as EvmAddress)
    const aggregator = { input: eur as EvmAddress, output: usd as EvmAddress, feed: receipt.contractAddress }
    await chain.send(chain.deployer, encodeAggregators(chain.contracts.conversionPath, [aggregator]))
  })
  afterAll(() => chain.stop())

  const tokenOf = (symbol: string) => (symbol === 'ETH' ? undefined : chain.tokens[symbol as 'USDC' | 'USDT' | 'DAI'])
  const decimalsOf = (symbol: string) => tokenOf(symbol)?.decimals ?? 18
  const balanceOf = (symbol: string, owner: EvmAddress) => {
    const token = tokenOf(symbol)
    return token === undefined ? chain.nativeBalance(owner) : chain.balanceOf(token, owner)
  }

  interface Terms {
    token: string
    amount: string
    currency?: string
    percentage?: string
  }

  /** A payer with plenty of tokens, and new addresses for payee and platform. */
  async function arrange({ token, amount, currency = 'USD', percentage }: Terms) {
    const seed = `${cases++}`
    const payer = freshAddress(`payer ${seed}`)
    const payee = freshAddress(`payee ${seed}`)
    const feeAddress = freshAddress(`fee ${seed}`)
    await chain.setNativeBalance(payer, 100n * COIN)
    await chain.client.rpc.call('anvil_impersonateAccount', [payer])
    const erc20 = tokenOf(token)
    if (erc20 !== undefined) await chain.fund(erc20, payer, 10n ** BigInt(erc20.decimals + 6))
    const paymentReference = routing.addRequest({
      payee,
      amount,
      invoiceCurrency: currency,
      paymentCurrency: `${token}-ETHEREUM`,
      network: 'ETHEREUM',
    })
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const question = { paymentReference, wallet: payer, ...fee }
    const balances = () => Promise.all([payer, payee, feeAddress].map((owner) => balanceOf(token, owner)))
    return { payer, question, balances }
  }

  beforeEach(async () => {
    for (const { feed } of Object.values(chain.tokens)) await chain.setFeed(feed, { answer: USD })
    await chain.setFeed(chain.native.feed, { answer: 3_000n * USD })
  })

  it.each<Terms>([
    { token: 'USDC', amount: '150' },
    { token: 'USDC', amount: '0.00000199', percentage: '100' },
    { token: 'USDC', amount: '150.12345678', percentage: '1.5' },
    { token: 'USDT', amount: '99999.99999999', percentage: '0.333333333333333333' },
    { token: 'DAI', amount: '12.34567891', currency: 'EUR', percentage: '2' },
    { token: 'USDC', amount: '150', currency: 'EUR' },
    { token: 'ETH', amount: '150' },
    { token: 'ETH', amount: '150.12345678', percentage: '1.5' },
    { token: 'ETH', amount: '12000', currency: 'EUR', percentage: '0.5' },
  ])('spends exactly what was quoted: %o', async (terms) => {
    const { payer, question, balances } = await arrange(terms)
    const listed = (await routing.find(question)).routes
    expect(listed.map(({ id, priceImpact, atomic }) => [id, priceImpact, atomic])).toEqual([[ID, 0, true]])
    const prepared = await routing.prepare({ ...question, route: ID })
    const platform = prepared.route.feeBreakdown.find(({ type }) => type === 'PLATFORM')?.amount ?? '0'
    const inUnits = (amount: string) => parseAmount(amount, decimalsOf(terms.token)) as bigint
    const spent = inUnits(prepared.route.sourceAmount)

    const before = await balances()
    const taken = await takeRoute(chain, payer, prepared)
    const after = await balances()
    const gas = terms.token === 'ETH' ? taken.reduce((sum, step) => sum + step.gasCost, 0n) : 0n
    expect(after.map((balance, i) => balance - (before[i] ?? 0n))).toEqual([
      -spent - gas,
      spent - inUnits(platform),
      inUnits(platform),
    ])
    expectGasWithin(prepared.route, taken)
  })

  it('spends more after the rate has moved, up to its limit, and reverts beyond it', async () => {
    for (const token of ['USDC', 'ETH']) {
      const { payer, question, balances } = await arrange({ token, amount: '100' })
      const feed = tokenOf(token)?.feed ?? chain.native.feed
      const par = token === 'ETH' ? 3_000n * USD : USD
      const prepared = await routing.prepare({ ...question, route: ID, slippage: '1' })
      const quoted = parseAmount(prepared.route.sourceAmount, decimalsOf(token)) as bigint
      expect(prepared.maxSourceAmount).toBe(formatAmount((quoted * 101n + 99n) / 100n, decimalsOf(token)))

      await chain.setFeed(feed, { answer: (par * 98n) / 100n })
      const before = await balances()
      await expect(takeRoute(chain, payer, prepared)).rejects.toThrow(/revert/)
      expect((await balances())[1]).toBe(before[1])
      await chain.setFeed(feed, { answer: (par * 995n) / 1000n })
      await takeRoute(chain, payer, { ...prepared, transactions: prepared.transactions.slice(-1) })
      const received = ((await balances())[1] ?? 0n) - (before[1] ?? 0n)
      expect(received).toBeGreaterThan(quoted)
      expect(received).toBeLessThanOrEqual(parseAmount(prepared.maxSourceAmount, decimalsOf(token)) as bigint)
    }
  })

  it('requires a balance of the most that may be spent', async () => {
    const { payer, question } = await arrange({ token: 'USDC', amount: '2000000' })
    const { unavailable, routes } = await routing.find(question)
    const entry = unavailable.find(({ token }) => token === 'USDC')
    expect([routes, entry?.reason, entry?.message]).toEqual([
      [],
      'INSUFFICIENT_BALANCE',
      'the wallet has 1000000 USDC and needs 2010000',
    ])
    await chain.fund(chain.tokens.USDC, payer, 1_010_000n * 10n ** 6n)
    expect((await routing.find(question)).routes.map(({ id }) => id)).toEqual([ID])
  })

  it('is unavailable while the rate is stale, and available after a new round', async () => {
    const { question } = await arrange({ token: 'USDC', amount: '10' })
    const head = await chain.client.rpc.call<{ timestamp: string }>('eth_getBlockByNumber', ['latest', false])
    const { feed } = chain.tokens.USDC
    await chain.setFeed(feed, { answer: USD, updatedAtSec: Number(head.timestamp) - 3_970 })
    const { routes, unavailable } = await routing.find(question)
    expect(routes).toEqual([])
    expect(unavailable.find(({ token }) => token === 'USDC')).toMatchObject({ reason: 'RATE_STALE' })
    await chain.setFeed(feed, { answer: USD })
    const again = await routing.find(question)
    expect(again.routes.map(({ id }) => id)).toEqual([ID])
  })

  it('is unavailable where the contract has no rate', async () => {
    const { question } = await arrange({ token: 'USDC', amount: '10', currency: 'CHF' })
    const { unavailable } = await routing.find(question)
    expect(unavailable.find(({ token }) => token === 'USDC')).toMatchObject({ reason: 'NO_RATE' })
  })

  it('is quoted afresh when it is prepared', async () => {
    const { question } = await arrange({ token: 'USDC', amount: '100' })
    const route = { ...question, route: ID }
    expect((await routing.prepare({ ...route, maxSourceAmount: '100' })).maxSourceAmount).toBe('100')
    expect((await routing.prepare({ ...route, maxSourceAmount: '100.25' })).maxSourceAmount).toBe('100.25')
    expect((await routing.prepare({ ...route, maxSourceAmount: '200' })).maxSourceAmount).toBe('100.5')
    await expect(routing.prepare({ ...route, maxSourceAmount: '99.999999' })).rejects.toMatchObject({
      reason: 'QUOTE_CHANGED',
      metadata: { sourceAmount: '100', maxSourceAmount: '99.999999' },
    })
  })
})
