import type { Knex } from 'knex'
import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { encodeNativePayment } from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { l1Fees } from '../../src/chains/l1-fee.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { waitAfterLookup } from '../../src/detection/repair/enrichment-queue.ts'
import { countLacking } from '../../src/detection/sql/enrichments-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { callingCode, encodeBatch } from '../support/chains/contract-calls.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  balanceOf,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  type TestTerms,
  unmatchedOf,
} from '../support/detection.ts'
import { freshAddress } from '../support/routing.ts'

const COIN = 10n ** 18n
const HOUR_MS = 3_600_000
const PATIENCE_MS = 150

/** One chain, read through nodes that answer well and through one that does not always. */
interface View {
  readonly database: TestDatabase
  readonly knex: Knex
  readonly account: Account
  readonly detection: Detection
}

let chain: TestChain
let node: RpcProxy
let archive: RpcProxy
let well: View
let ill: View
let offsetMs = 0
let cases = 0

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_475 })
  ;[node, archive] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  archive.fail(503)
  ;[well, ill] = await Promise.all([
    openView({ rpcUrls: [chain.rpcUrl] }),
    openView({ rpcUrls: [node.url, archive.url] }),
  ])
})
afterEach(() => {
  node.meddle()
  archive.fail(503)
})
afterAll(async () => {
  await Promise.all([well?.database.drop(), ill?.database.drop()])
  await Promise.all([node?.stop(), archive?.stop(), chain?.stop()])
})

async function openView(options: Partial<ChainConfig>): Promise<View> {
  const database = await createTestDatabase()
  const { knex } = database
  const clock = () => new Date(Date.now() + offsetMs)
  const config = configOf(chain, 'BASE', options)
  const detection = detect(knex, [config], { clock, patienceMs: PATIENCE_MS })
  return { database, knex, account: await addAccount(knex, 'shop'), detection }
}

/** A request that both views have stored. */
async function request(terms: TestTerms = {}): Promise<PaymentRequest> {
  const made = makeRequest({ payee: freshAddress(`enriched ${cases++}`), network: 'BASE', amount: '1', ...terms })
  for (const { knex, account } of [well, ill]) await storeRequest(knex, account, made)
  return made
}

/** Pays coins through a contract, so that only a trace tells who paid. */
async function payCoins(wanted: PaymentRequest): Promise<void> {
  const { payee, paymentReference } = wanted
  const terms = { to: payee as Hex, amount: COIN, paymentReference }
  const call = encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true)
  await chain.send(chain.wallets[0], encodeBatch(chain.contracts.paymentBatch, [call]), { gas: 5_000_000n })
}

async function payTokens(wanted: PaymentRequest): Promise<void> {
  const { USDC } = chain.tokens
  await chain.fund(USDC, chain.wallets[0], 1_050000n)
  await chain.pay(chain.wallets[0], {
    kind: 'ERC20',
    token: USDC.address,
    to: wanted.payee as Hex,
    amount: 1_000000n,
    paymentReference: wanted.paymentReference,
    feeAmount: 50_000n,
    feeAddress: freshAddress('platform'),
  })
}

/** The only payment of a request in a view, as far as it comes from the chain. */
async function paymentIn({ knex, account }: View, wanted: PaymentRequest) {
  const [payment, ...others] = await paymentsOf(knex, account, wanted)
  expect(others).toEqual([])
  const { id, amount_in_usd, gas, fees, exchange_rates, payer, updated_at } = payment
  return { figures: { id, amount_in_usd, gas, fees, exchange_rates, payer }, updatedAt: updated_at as Date }
}

const pending = () => ill.knex('pending_enrichments').orderBy('block_number')
const changesOf = () => ill.knex('payment_changes').whereNotNull('payment_id').count().first()

/** Lets some time pass, and looks up what is due. */
async function later(ms = 7_000): Promise<void> {
  offsetMs += ms
  await ill.detection.enrichOnce()
}

async function setCode(at: Hex, code: Hex): Promise<void> {
  await chain.client.rpc.call('anvil_setCode', [at, code])
}

const isTrace = (method: string) => method.startsWith('debug_') || method.startsWith('trace_')
const refuse = (message: string) => Promise.resolve({ rpcError: { code: -32000, message } })
const hang = () => new Promise<never>(() => {})
const withoutField =
  (name: string): Meddle =>
  ({ method }, ask) =>
    method === 'eth_getTransactionReceipt'
      ? ask().then((receipt) => ({ ...(receipt as object), [name]: null }))
      : undefined

describe('a payment whose figures cannot be read', () => {
  it('is stored in the same step while prices and traces hang, delays no other, and is complete later', async () => {
    const first = await request({ paymentCurrency: 'ETH-BASE' })
    await ill.detection.scanOnce()
    await payCoins(first)
    node.meddle(({ method }) => (method === 'eth_call' || isTrace(method) ? hang() : undefined))
    const beganMs = performance.now()
    await ill.detection.scanOnce()
    expect(performance.now() - beganMs).toBeLessThan(10 * PATIENCE_MS)
    expect(await balanceOf(ill.knex, ill.account, first)).toMatchObject({ pendingAmount: '1' })
    const bare = await paymentIn(ill, first)
    expect(bare.figures).toMatchObject({ amount_in_usd: null, payer: null, gas: { amount: expect.any(String) } })
    expect(await pending()).toMatchObject([{ lacks: ['PRICE', 'TRACE'], attempts: 0 }])

    const asked = () => node.calls.filter(({ method }) => method === 'eth_call' || isTrace(method)).length
    const second = await request()
    await payTokens(second)
    const before = asked()
    await ill.detection.scanOnce()
    expect(asked()).toBe(before)
    expect((await paymentIn(ill, second)).figures).toMatchObject({
      amount_in_usd: null,
      payer: canonical(chain.wallets[0]),
    })

    node.meddle()
    const changes = await changesOf()
    await later(70_000)
    expect(await pending()).toEqual([])
    await well.detection.scanOnce()
    for (const wanted of [first, second]) {
      const complete = await paymentIn(ill, wanted)
      expect(complete.figures).toEqual((await paymentIn(well, wanted)).figures)
      expect(complete.updatedAt.getTime()).toBeGreaterThan(bare.updatedAt.getTime())
    }
    expect(Number((await changesOf())?.['count'])).toBe(Number(changes?.['count']) + 2)
  })

  it.each<[string, Meddle, string[], object]>([
    ['the gas price', withoutField('effectiveGasPrice'), ['GAS'], { gas: null, amount_in_usd: '1' }],
    [
      'prices, since the node refuses calls',
      ({ method }) => (method === 'eth_call' ? refuse('internal error') : undefined),
      ['PRICE'],
      { amount_in_usd: null },
    ],
  ])('gets %s later', async (_, fault, lacks, figures) => {
    const wanted = await request()
    await payTokens(wanted)
    node.meddle(fault)
    await ill.detection.scanOnce()
    expect((await paymentIn(ill, wanted)).figures).toMatchObject(figures)
    expect(await pending()).toMatchObject([{ lacks }])
    await later()
    expect(await pending()).toMatchObject([{ lacks, attempts: 1 }])
    node.meddle()
    await later(12_000)
    expect(await pending()).toEqual([])
    await well.detection.scanOnce()
    expect((await paymentIn(ill, wanted)).figures).toEqual((await paymentIn(well, wanted)).figures)
  })

  it('gets the fee of a rollup later, and has no cost of gas until then', async () => {
    const view = await openView({ rpcUrls: [node.url], l1Fee: l1Fees.OP_STACK })
    const wanted = await request()
    await storeRequest(view.knex, view.account, wanted)
    await payTokens(wanted)
    await view.detection.scanOnce()
    expect((await paymentIn(view, wanted)).figures.gas).toBeNull()
    node.meddle(({ method }, ask) =>
      method === 'eth_getTransactionReceipt'
        ? ask().then((receipt) => ({ ...(receipt as object), l1Fee: '0xde0b6b3a7640000' }))
        : undefined,
    )
    offsetMs += 7_000
    await view.detection.enrichOnce()
    const { gas } = (await paymentIn(view, wanted)).figures
    const { gasUsed, effectiveGasPrice } = (await chain.client.rpc.call('eth_getTransactionReceipt', [
      (await paymentsOf(view.knex, view.account, wanted))[0]?.txHash,
    ])) as { gasUsed: Hex; effectiveGasPrice: Hex }
    const wei = BigInt(gasUsed) * BigInt(effectiveGasPrice) + COIN
    expect(gas.amount.replace('.', '').replace(/^0+/, '')).toBe(wei.toString().replace(/0+$/, ''))
    await view.database.drop()
  })

  it('gets its payer once the node has traces', async () => {
    const wanted = await request({ paymentCurrency: 'ETH-BASE' })
    await payCoins(wanted)
    node.meddle(({ method }) => (isTrace(method) ? refuse(`the method ${method} does not exist`) : undefined))
    await ill.detection.scanOnce()
    expect((await paymentIn(ill, wanted)).figures.payer).toBeNull()
    expect(await pending()).toMatchObject([{ lacks: ['TRACE'] }])
    node.meddle()
    await later(HOUR_MS + 1_000)
    expect((await paymentIn(ill, wanted)).figures.payer).toBe(canonical(chain.contracts.paymentBatch))
    expect(await pending()).toEqual([])
  })
})

describe('a payment whose payer is found later', () => {
  it('was made by the payee, and does not count any more', async () => {
    const payee = canonical(freshAddress('a payee with a Safe'))
    const wanted = await request({ paymentCurrency: 'ETH-BASE', payee })
    const { paymentReference } = wanted
    const terms = { to: payee as Hex, amount: COIN, paymentReference }
    await setCode(payee, callingCode(encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true)))
    node.meddle(({ method }) => (isTrace(method) ? refuse(`the method ${method} does not exist`) : undefined))
    await chain.send(chain.wallets[0], { to: payee, data: '0x', value: COIN }, { gas: 1_000_000n })
    await ill.detection.scanOnce()
    expect(await paymentsOf(ill.knex, ill.account, wanted)).toHaveLength(1)
    node.meddle()
    await later(HOUR_MS + 1_000)
    expect(await paymentsOf(ill.knex, ill.account, wanted)).toEqual([])
    expect(await unmatchedOf(ill.knex, ill.account.id)).toEqual(['SELF_PAYMENT'])
    expect(await pending()).toEqual([])
  })

  it('has the refunds that went to them, and no others', async () => {
    const [, payee, stranger] = chain.wallets
    const wanted = await request({ paymentCurrency: 'ETH-BASE', payee: canonical(payee), amount: '5' })
    node.meddle(({ method }) => (isTrace(method) ? refuse(`the method ${method} does not exist`) : undefined))
    await payCoins(wanted)
    const refund = { ...wanted, payee: canonical(stranger) }
    const terms = { to: refund.payee as Hex, amount: COIN / 4n, paymentReference: wanted.paymentReference }
    await chain.send(payee, encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true))
    await chain.mine({ blocks: 4 })
    await ill.detection.scanOnce()
    const refunded = async () => (await paymentsOf(ill.knex, ill.account, wanted))[0]?.refunded_amount
    // Anybody may be a payer who is unknown.
    expect(Number(await refunded())).toBe(0.25)
    node.meddle()
    await later(HOUR_MS + 1_000)
    expect(Number(await refunded())).toBe(0)
    await well.detection.scanOnce()
    const [known] = await paymentsOf(well.knex, well.account, wanted)
    expect(Number(known?.refunded_amount)).toBe(0)
  })
})

describe('a node without old state', () => {
  afterEach(() => chain.setFeed(chain.tokens.USDC.feed, { answer: 10n ** 8n }))

  const LATEST_ROUND = '0xfeaf968c'
  const GET_ROUND = '0x9a6fc8f5'
  const isCallOf = (params: readonly unknown[], selector: string) =>
    (params[0] as { data: string }).data.startsWith(selector)
  const pruned: Meddle = ({ method, params }) =>
    method === 'eth_call' && params[1] !== 'latest' ? refuse('missing trie node') : undefined
  const prunedWithoutRounds: Meddle = (call, ask) =>
    call.method === 'eth_call' && isCallOf(call.params, GET_ROUND) ? refuse('limit exceeded') : pruned(call, ask)

  /** A payment at a round of the feed that is no longer the latest. */
  async function payBeforeRound(): Promise<PaymentRequest> {
    const wanted = await request()
    await payTokens(wanted)
    const afterwards = Math.floor(Date.now() / 1_000) + 600
    await chain.setFeed(chain.tokens.USDC.feed, { answer: 2n * 10n ** 8n, updatedAtSec: afterwards })
    return wanted
  }

  it('finds prices by the rounds of the feeds', async () => {
    node.meddle(pruned)
    const wanted = await payBeforeRound()
    await ill.detection.scanOnce()
    expect((await paymentIn(ill, wanted)).figures.amount_in_usd).toBe('1')
    expect(await pending()).toEqual([])
    expect(node.calls.some(({ method, params }) => method === 'eth_call' && isCallOf(params, LATEST_ROUND))).toBe(true)
  })

  it('leaves prices to another node, as soon as there is one', async () => {
    node.meddle(prunedWithoutRounds)
    const wanted = await payBeforeRound()
    await ill.detection.scanOnce()
    expect((await paymentIn(ill, wanted)).figures.amount_in_usd).toBeNull()
    expect(await pending()).toMatchObject([{ lacks: ['PRICE'] }])
    archive.fail()
    await later()
    expect((await paymentIn(ill, wanted)).figures.amount_in_usd).toBe('1')
    expect(await pending()).toEqual([])
  })
})

describe('the queue', () => {
  it('has no payment whose price nobody will ever know', async () => {
    const stale = await request()
    await chain.setFeed(chain.tokens.USDC.feed, { answer: 10n ** 8n, updatedAtSec: 1 })
    await payTokens(stale)
    await ill.detection.scanOnce()
    await chain.setFeed(chain.tokens.USDC.feed, { answer: 10n ** 8n })
    expect((await paymentIn(ill, stale)).figures.amount_in_usd).toBeNull()
    expect(await pending()).toEqual([])
  })

  it('gives a payment up after days, and counts it as unpriced from then on', async () => {
    const wanted = await request()
    node.meddle(({ method }) => (method === 'eth_call' ? refuse('internal error') : undefined))
    await payTokens(wanted)
    await ill.detection.scanOnce()
    const count = { chainId: 'eip155:31475', lack: 'PRICE' }
    expect(await countLacking(ill.knex)).toEqual([{ ...count, pending: 1, givenUp: 0 }])
    await later(6 * 24 * HOUR_MS)
    expect(await countLacking(ill.knex)).toEqual([{ ...count, pending: 0, givenUp: 1 }])
    node.meddle()
    await later(6 * 24 * HOUR_MS)
    expect((await paymentIn(ill, wanted)).figures.amount_in_usd).toBeNull()
    await ill.knex('pending_enrichments').delete()
  })

  it('forgets a payment that a reorg removed', async () => {
    const wanted = await request()
    node.meddle(withoutField('effectiveGasPrice'))
    await payTokens(wanted)
    await ill.detection.scanOnce()
    expect(await pending()).toHaveLength(1)
    await chain.reorg(1)
    await ill.detection.scanOnce()
    expect([await pending(), await paymentsOf(ill.knex, ill.account, wanted)]).toEqual([[], []])
  })

  it.each([
    [0, 0, 10_000],
    [3, 60_000, 80_000],
    [40, 60_000, 6 * HOUR_MS],
    [3, 5 * 24 * HOUR_MS, undefined],
  ])('waits after %i lookups in %i ms for %s ms', (attempts, ageMs, waitMs) => {
    expect(waitAfterLookup(attempts, ageMs)).toBe(waitMs)
  })
})
