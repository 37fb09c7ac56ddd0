import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Book, createBook, type Entry } from '../src/demo/bridge/book.ts'
import { type BridgeChain, toBridgeChain } from '../src/demo/bridge/bridge-chain.ts'
import { createRelayer, type Relayer } from '../src/demo/bridge/relayer.ts'
import { type BridgeServer, startBridgeServer } from '../src/demo/bridge/server.ts'
import { MAX_UINT256 } from '../src/demo/contracts.ts'
import { parseAmount } from '../src/domain/decimal.ts'
import { silentLogger } from '../src/domain/logger.ts'
import { startTestChain, type TestChain } from './support/chain.ts'
import { createTestRouting, type EvmAddress, freshAddress, type TestRouting } from './support/routing.ts'
import { expectGasWithin, takeRoute } from './support/take-route.ts'

const COIN = 10n ** 18n
const GWEI = 10n ** 9n

describe("a payment carried by the demo's bridge", () => {
  let near: TestChain
  let far: TestChain
  let chains: BridgeChain[]
  let book: Book
  let relayer: Relayer
  let server: BridgeServer
  let routing: TestRouting
  let nowMs = Date.now()
  let cases = 0
  beforeAll(async () => {
    const usd = 10n ** 8n
    const dearer = { name: 'Tether USD', usdPrice: (usd * 10_007n) / 10_000n }
    ;[near, far] = await Promise.all([
      startTestChain({ chainId: 31_337, bridge: true, baseFeePerGas: 8n * GWEI }),
      startTestChain({
        chainId: 31_338,
        addressSeed: 7,
        bridge: true,
        baseFeePerGas: GWEI,
        spec: {
          native: { symbol: 'BNB', usdPrice: 600n * usd },
          tokens: [
            { symbol: 'USDC', name: 'USD Coin', decimals: 18, behaviour: 'PLAIN', usdPrice: usd },
            { symbol: 'USDT', ...dearer, decimals: 18, behaviour: 'TETHER' },
            { symbol: 'DAI', name: 'Dai', decimals: 18, behaviour: 'PLAIN', usdPrice: usd },
          ],
        },
      }),
    ])
    chains = [bridgeChain(near, 'ETHEREUM'), bridgeChain(far, 'BSC')]
    for (const [chain, { relayer: owner, executor }] of [
      [near, chains[0]],
      [far, chains[1]],
    ] as [TestChain, BridgeChain][]) {
      for (const token of [chain.tokens.USDC, chain.tokens.USDT, chain.tokens.DAI]) {
        await chain.fund(token, owner, 10n ** BigInt(token.decimals + 9))
        await chain.approve(owner, token, executor, MAX_UINT256)
      }
    }
    book = createBook(chains)
    relayer = createRelayer(chains, book, silentLogger)
    const now = () => new Date(nowMs)
    server = await startBridgeServer(chains, book, { now, logger: silentLogger })
    const configs = [near.config({ name: 'ETHEREUM' }), far.config({ name: 'BSC' })]
    routing = createTestRouting(configs, { clock: () => nowMs, lifi: { name: 'demo-bridge', url: server.url } })
  })
  afterAll(() => Promise.all([near, far, server].map((each) => each?.stop())))

  function bridgeChain({ chainId, client, deployed, wallets }: TestChain, name: string): BridgeChain {
    return toBridgeChain({ name, chainId, client, deployed, relayer: wallets.at(-1) as EvmAddress, tipPerGas: GWEI })
  }

  /** The relayer looks and sends what is due; then each chain mines a block. */
  async function relay(): Promise<Entry[]> {
    await book.read()
    await relayer.step()
    await Promise.all([near.mine(), far.mine()])
    await book.read()
    return [...book.entries()]
  }

  interface Terms {
    from: 'USDC' | 'USDT' | 'DAI' | 'ETH'
    into: 'USDC' | 'USDT' | 'DAI'
    amount: string
    percentage?: string
    known?: boolean
  }
  const terms: Terms[] = [
    { from: 'USDC', into: 'USDC', amount: '1.000001' },
    { from: 'USDC', into: 'USDC', amount: '150.123456', percentage: '0.5' },
    { from: 'USDC', into: 'USDT', amount: '250000', known: true },
    { from: 'USDT', into: 'USDC', amount: '1.5', percentage: '2.5' },
    { from: 'USDT', into: 'USDT', amount: '99999.999999999999999999', percentage: '0.1', known: true },
    { from: 'DAI', into: 'USDC', amount: '150' },
    { from: 'DAI', into: 'DAI', amount: '12345.6789', percentage: '33.3333333333' },
    { from: 'ETH', into: 'USDC', amount: '150', percentage: '0.5' },
    { from: 'ETH', into: 'USDT', amount: '90000' },
  ]
  it.each(terms)('costs what the quote says: %o', async ({ from, into, amount, percentage, known }) => {
    const seed = `bridge ${cases++}`
    const [payer, payee, feeAddress] = ['payer', 'payee', 'fee'].map((who) => freshAddress(`${who} ${seed}`)) as [
      EvmAddress,
      EvmAddress,
      EvmAddress,
    ]
    const target = far.tokens[into]
    const source = from === 'ETH' ? undefined : near.tokens[from]
    const decimals = source?.decimals ?? 18
    await near.setNativeBalance(payer, 100n * COIN)
    await near.client.rpc.call('anvil_impersonateAccount', [payer])
    if (source) await near.fund(source, payer, 10n ** BigInt(decimals + 6))
    if (known) for (const holder of [payee, feeAddress]) await far.fund(target, holder, 1n)
    nowMs = (await near.client.head()).timestampSec * 1_000
    const currency = `${into}-BSC`
    const currencies = { invoiceCurrency: currency, paymentCurrency: currency }
    const paymentReference = routing.addRequest({ payee, amount, network: 'BSC', ...currencies })
    const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
    const route = `ETHEREUM_BSC_${from}_${into}`
    const prepared = await routing.prepare({ paymentReference, wallet: payer, route, ...fee })
    expect(prepared.route.provider).toBe('demo-bridge')

    const holdings = async () => [
      source ? await near.balanceOf(source, payer) : 0n,
      await near.nativeBalance(payer),
      await far.balanceOf(target, payee),
      await far.balanceOf(target, feeAddress),
    ]
    const before = await holdings()
    const taken = await takeRoute(near, payer, prepared)
    const entries = await relay()
    const entry = entries.find(({ deposited }) => deposited.txHash === taken.at(-1)?.transactionHash)
    expect(entry?.delivered?.isPaid).toBe(true)

    const moved = (await holdings()).map((balance, i) => balance - (before[i] ?? 0n))
    const spent = parseAmount(prepared.route.sourceAmount, decimals) ?? 0n
    const platform = prepared.route.feeBreakdown.find(({ type }) => type === 'PLATFORM')?.amount ?? '0'
    const gas = taken.reduce((sum, { gasCost }) => sum + gasCost, 0n)
    const ofCoins = source === undefined ? spent : 0n
    expect(moved).toEqual([ofCoins - spent, -gas - ofCoins, parseAmount(amount, 18), parseAmount(platform, 18)])
    const delivery = await far.receipt(entry?.delivered?.txHash as EvmAddress)
    expect(Number(delivery?.gasUsed)).toBeLessThanOrEqual(142_000)
    expectGasWithin(taken)
  })
})
