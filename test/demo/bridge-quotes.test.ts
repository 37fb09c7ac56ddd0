import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import { bytesToHex } from '../../src/domain/hex.ts'
import { createFindTransfer } from '../../src/routing/providers/lifi/find-transfer.ts'
import { createLifiClient } from '../../src/routing/providers/lifi/lifi-client.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, detect, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { startTestBridge, type TestBridge } from './bridge.ts'

/** Gas of a delivery to accounts that never held the token; the bridge bills it in its quotes. */
const BILLED_DELIVERY_GAS = 147_000

describe("a payment carried by the demo's bridge", () => {
  let bridge: TestBridge
  let database: TestDatabase
  let detection: Detection
  let account: Account
  beforeAll(async () => {
    ;[bridge, database] = await Promise.all([startTestBridge({ chainIds: [31_441, 31_442] }), createTestDatabase()])
    account = await addAccount(database.knex, 'shop')
    const client = createLifiClient({
      name: 'demo-bridge',
      url: bridge.url,
      fetch,
      clock: Date.now,
      logger: silentLogger,
    })
    const findSource = createFindTransfer(client, silentLogger)
    detection = detect(database.knex, bridge.configs, { findSource, pollIntervalMs: 50 })
    detection.start()
  })
  afterAll(async () => {
    await detection?.stop()
    await bridge?.stop()
    await database?.drop()
  })
  /** The payments that detection has to find, by the quotes and balances of the cases. */
  const expected: { request: Parameters<typeof paymentsOf>[2]; payment: object; amounts: (bigint | undefined)[] }[] = []

  interface Terms {
    from: 'USDC' | 'USDT' | 'DAI' | 'ETH'
    into: 'USDC' | 'USDT' | 'DAI'
    amount: string
    percentage?: string
    known?: boolean
  }
  const cases: Terms[] = [
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
  it.each(cases)('costs what was quoted: %o', async ({ from, into, amount, percentage, known }) => {
    const { near, far, chains, routing } = bridge
    const [source, target] = [from === 'ETH' ? undefined : near.tokens[from], far.tokens[into]]
    const payer = await bridge.newPayer()
    const { payee, platform, ...question } = bridge.ask(payer, { into, amount, percentage })
    if (known) for (const holder of [payee, platform]) await far.fund(target, holder, 1n)
    const { paymentReference } = question
    const terms = { payee, amount, network: 'BSC', paymentReference: paymentReference as `0x${string}` }
    const currencies = { paymentCurrency: `${into}-BSC`, invoiceCurrency: `${into}-BSC` }
    const request = await storeRequest(database.knex, account, makeRequest({ ...terms, ...currencies }))
    await bridge.setTime()
    const { route, ...prepared } = await routing.prepare({ ...question, route: `ETHEREUM_BSC_${from}_${into}` })
    expect([route.provider, route.warnings]).toEqual(['demo-bridge', []])

    const { escrow, executor } = chains[0]
    const holdings = async () => [
      source ? await near.balanceOf(source, payer) : 0n,
      await near.nativeBalance(payer),
      source ? await near.balanceOf(source, escrow) : await near.nativeBalance(escrow),
      await far.balanceOf(target, payee),
      await far.balanceOf(target, platform),
      await far.balanceOf(target, executor),
    ]
    const before = await holdings()
    const taken = await takeRoute(near, payer, prepared)
    const entries = await bridge.relay()
    const { delivered } = entries.find(({ deposited }) => deposited.txHash === taken.at(-1)?.transactionHash) ?? {}
    expect(delivered?.isPaid).toBe(true)

    const moved = (await holdings()).map((balance, i) => balance - (before[i] ?? 0n))
    const spent = parseAmount(route.sourceAmount, source?.decimals ?? 18) ?? 0n
    const fee = route.feeBreakdown.find(({ type }) => type === 'PLATFORM')?.amount ?? '0'
    const gas = taken.reduce((sum, { gasCost }) => sum + gasCost, 0n)
    const coins = source === undefined ? spent : 0n
    const received = [parseAmount(amount, 18), parseAmount(fee, 18)]
    expect(moved).toEqual([coins - spent, -gas - coins, spent, ...received, 0n])
    expectGasWithin(route, taken)
    const delivery = await far.receipt(delivered?.txHash ?? '0x')
    expect(Number(delivery?.gasUsed)).toBeLessThanOrEqual(BILLED_DELIVERY_GAS)

    const sourceTx = taken.at(-1)?.transactionHash
    const payment = {
      type: 'CROSSCHAIN',
      payer: canonical(payer),
      source_network: 'ETHEREUM',
      network: 'BSC',
      sourceTx,
    }
    expected.push({ request, payment: { ...payment, txHash: delivered?.txHash }, amounts: moved.slice(3, 5) })
  })

  it('is found with the quoted amounts and with the payer of the source chain', async () => {
    expect(expected).toHaveLength(cases.length)
    for (const { request, payment, amounts } of expected) {
      await vi.waitFor(
        async () => {
          const [found] = await paymentsOf(database.knex, account, request)
          const sourceTx = found?.source_tx_hash && bytesToHex(found.source_tx_hash)
          expect({ ...found, sourceTx }).toMatchObject(payment)
          const fee = found?.fees[0]?.amount ?? '0'
          expect([found?.amount, fee].map((text) => parseAmount(String(text), 18))).toEqual(amounts)
        },
        { timeout: 15_000, interval: 50 },
      )
    }
  })

  it('lists the fee of the bridge, the gas on the destination chain and the platform fee separately', async () => {
    const payer = await bridge.newPayer()
    const { payee: _, platform: __, ...question } = bridge.ask(payer, { into: 'USDC', amount: '2000', percentage: '1' })
    await bridge.setTime()
    const { routes } = await bridge.routing.find(question)
    const route = routes.find(({ id }) => id === 'ETHEREUM_BSC_DAI_USDC')
    const lines = route?.feeBreakdown.map(({ type, stage, provider, amount }) => [type, stage, provider, amount])
    const { baseFeePerGas } = await bridge.far.client.head()
    const gasFee = BigInt(BILLED_DELIVERY_GAS) * (baseFeePerGas + 10n ** 9n) * 600n
    expect(lines).toEqual([
      ['GAS', 'SENDING', undefined, expect.any(String)],
      ['PLATFORM', 'RECEIVING', 'request-network', '20'],
      ['CROSSCHAIN', 'PROXYING', 'demo-bridge', '1.01'],
      ['GAS', 'RECEIVING', undefined, formatAmount(gasFee, 18)],
    ])
    expect(route?.priceImpact).toBe(0)
    const kept = (lines ?? []).slice(2).reduce((sum, [, , , amount]) => sum + (parseAmount(amount ?? '', 18) ?? 0n), 0n)
    expect(parseAmount(route?.sourceAmount ?? '', 18)).toBe(2_020n * 10n ** 18n + kept)
    expect(route?.estimatedDurationSeconds).toBe(2 * 10 + 10)
    expect(route?.expiresAt.getTime()).toBe((await bridge.near.client.head()).timestampSec * 1_000 + 30_000)
  })
})
