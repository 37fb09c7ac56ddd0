/**
 * The payer chooses the path of a conversion, so its fiat amount proves nothing: the rate of the configured path decides. Uses Request's
 * deployed proxies and ChainlinkConversionPath, and PostgreSQL.
 */
import type { Knex } from 'knex'
import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, keccak256, parseAbi, toBytes } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type ContractCall,
  encodeAggregators,
  encodeCreation,
  encodeErc20Conversion,
  encodeErc20Payment,
  encodeNativeConversion,
  encodeSetFeed,
} from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { currencyHash } from '../../src/contracts/currency-hash.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { createChainReader } from '../../src/detection/read/chain-reader.ts'
import { gatherCalls } from '../../src/detection/read/gather-calls.ts'
import { findPathRateAt } from '../../src/detection/read/path-rates.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createRpcClient } from '../../src/nodes/rpc-client.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
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
} from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'

const USD = 10n ** 8n
const COIN = 10n ** 18n
const HOUR = 3_600
const GET_RATE = '0x97edd4fa'
const GET_RATE_ABI = parseAbi([
  'function getRate(address[] path) view returns (uint256 rate, uint256 oldestRateTimestamp, uint256 decimals)',
])
const fiat = (code: string) => currencyHash('iso4217', code) as Address

let database: TestDatabase
let knex: Knex
let chain: TestChain
let proxy: RpcProxy
let config: ChainConfig
let detection: Detection
let account: Account
let payer: Address
const warnings: unknown[] = []
/** From dollars to yen and back, half of the amount is lost. No configured path uses the last three feeds. */
let feeds: Record<'euroInUsd' | 'daiInEuro' | 'usdInYen' | 'yenInUsd', Address>

const now = async () => (await chain.client.head()).timestampSec

async function deployFeed(decimals: number, answer: bigint): Promise<Address> {
  const data = encodeCreation('SettableFeed', ['a feed', decimals, answer, BigInt(await now())])
  const { transactionHash } = await chain.send(chain.deployer, { data }, { gas: 5_000_000n })
  const receipt = await chain.client.rpc.call<{ contractAddress: Address }>('eth_getTransactionReceipt', [
    transactionHash,
  ])
  return receipt.contractAddress
}

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_471 })])
  knex = database.knex
  proxy = await startRpcProxy(chain.rpcUrl)
  payer = chain.wallets[0]
  account = await addAccount(knex, 'shop')
  const { DAI, TAX, USDC } = chain.tokens
  feeds = {
    euroInUsd: await deployFeed(8, 2n * USD),
    daiInEuro: await deployFeed(18, COIN / 2n),
    usdInYen: await deployFeed(8, USD),
    yenInUsd: await deployFeed(8, USD / 2n),
  }
  await chain.send(
    chain.deployer,
    encodeAggregators(chain.contracts.conversionPath, [
      { input: fiat('EUR'), output: fiat('USD'), feed: feeds.euroInUsd },
      { input: DAI.address, output: fiat('EUR'), feed: feeds.daiInEuro },
      { input: fiat('USD'), output: fiat('JPY'), feed: feeds.usdInYen },
      { input: fiat('JPY'), output: fiat('USD'), feed: feeds.yenInUsd },
    ]),
  )
  for (const token of [DAI, TAX, USDC]) {
    await chain.fund(token, payer, 10n ** 30n)
    await chain.approve(payer, token, chain.contracts.erc20ConversionProxy, 10n ** 30n)
  }
  const usual = configOf(chain, 'BASE', { rpcUrls: [proxy.url] })
  const viaUsd = ['DAI', 'ETH'].map((token) => ({ from: 'EUR', token, via: ['USD'], heartbeatSeconds: HOUR }))
  const { path = chain.contracts.conversionPath as never, paths = [] } = usual.conversion ?? {}
  config = { ...usual, conversion: { path, paths: [...paths, ...viaUsd] } }
  const logger = { ...silentLogger, warn: (...said: unknown[]) => void warnings.push(said) }
  detection = detect(knex, [config], { logger })
  await detection.scanOnce()
})
beforeEach(async () => {
  const usual = [
    ...Object.values(chain.tokens).map(({ feed }) => [feed, USD] as const),
    [chain.native.feed, 3_000n * USD],
    [feeds.euroInUsd, 2n * USD],
    [feeds.yenInUsd, USD / 2n],
  ] as const
  for (const [feed, answer] of usual) await chain.client.send(chain.deployer, encodeSetFeed(feed, answer, undefined))
  await chain.mine()
  await passTime()
})
afterEach(() => proxy.meddle())
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
  await database?.drop()
})

const known: { wanted: PaymentRequest; verdict: unknown }[] = []

async function request(seed: string, terms: TestTerms = {}) {
  const payee = canonical(`0x${keccak256(toBytes(seed)).slice(-40)}`)
  const usual = { network: 'BASE', invoiceCurrency: 'USD', paymentCurrency: 'DAI-BASE' }
  return storeRequest(knex, account, makeRequest({ payee, ...usual, ...terms }))
}

/** `path` has the currencies between the fiat currency and the token; `amount` is in the fiat currency. */
interface Conversion {
  amount?: bigint
  path?: readonly string[]
  maxRateTimespanSec?: bigint
}

/** The call of a conversion, as any payer can make it. */
function convert(
  { payee, paymentReference, invoiceCurrency, paymentCurrency }: PaymentRequest,
  { amount = 100n * USD, path = [], maxRateTimespanSec = 0n }: Conversion = {},
) {
  const symbol = paymentCurrency.replace('-BASE', '') as 'DAI'
  const out = symbol === ('ETH' as string) ? chain.native.conversionHash : chain.tokens[symbol].address
  const terms = {
    to: payee as Address,
    amount,
    paymentReference,
    path: [fiat(invoiceCurrency), ...path.map(fiat), out],
    maxRateTimespanSec,
  }
  const { erc20ConversionProxy, ethConversionProxy } = chain.contracts
  return out === chain.native.conversionHash
    ? encodeNativeConversion(ethConversionProxy, terms, 10n * COIN)
    : encodeErc20Conversion(erc20ConversionProxy, terms, 10n ** 29n)
}

const take = (wanted: PaymentRequest, conversion?: Conversion) => chain.send(payer, convert(wanted, conversion))

/** The stored result for a request: amounts of its payments, reasons of unmatched events, outstanding amount. */
async function verdictOn(db: Knex, whose: Account, wanted: PaymentRequest) {
  const payments = await paymentsOf(db, whose, wanted)
  const topic = Buffer.from(keccak256(wanted.paymentReference).slice(2), 'hex')
  const unmatched = await db('unmatched_events').where({ account_id: whose.id, topic }).select('reason', 'event')
  return {
    payments: payments.map(({ amount, invoice_amount, type }) => [amount, invoice_amount, type]),
    unmatched: unmatched.map(({ reason, event }) => [reason, (event as { rateProblem?: string }).rateProblem ?? '']),
    outstanding: (await balanceOf(db, whose, wanted)).outstandingAmount,
  }
}

/** Moves the time on, because blocks of the test's node may share a second, and without old state feed rounds are distinguished by seconds. */
const passTime = async (seconds = 10) => chain.mine({ timestampSec: (await now()) + seconds })

async function scanned(wanted: PaymentRequest) {
  await passTime()
  await detection.scanOnce()
  const verdict = await verdictOn(knex, account, wanted)
  known.push({ wanted, verdict })
  return verdict
}

const counted = (amount: string, invoiced = '100') => ({
  payments: [[amount, invoiced, 'CONVERSION']],
  unmatched: [],
  outstanding: `${100 - Number(invoiced)}`,
})
const notCounted = (reason: string, problem = '') => ({
  payments: [],
  unmatched: [[reason, problem]],
  outstanding: '100',
})

describe('a conversion counts', () => {
  it.each<[string, string, TestTerms, Conversion?]>([
    ['by our path', '100', {}],
    ['into coins', '0.033333333333333333', { paymentCurrency: 'ETH-BASE' }],
    ['by a path of ours through another currency', '200', { invoiceCurrency: 'EUR' }, { path: ['USD'] }],
    ['by another path that brings as much', '100', {}, { path: ['EUR'] }],
    ['by feeds within the heartbeat, whatever age the payer allowed', '100', {}, { maxRateTimespanSec: 10_000n }],
  ])('%s', async (name, amount, terms, conversion) => {
    const wanted = await request(name, terms)
    await take(wanted, conversion)
    expect(await scanned(wanted)).toEqual(counted(amount))
  })

  it('at the rate of the block before, when the feed moved after it in the same block', async () => {
    const wanted = await request('moved')
    const order = { maxPriorityFeePerGas: 50n * 10n ** 9n }
    await chain.client.send(payer, convert(wanted), order)
    await chain.client.send(chain.deployer, encodeSetFeed(chain.tokens.DAI.feed, USD / 2n, undefined))
    await chain.mine()
    expect(await scanned(wanted)).toEqual(counted('100'))
  })

  it('at the rate of its own block, when the feed moved before it in that block', async () => {
    const wanted = await request('moved before')
    const order = { maxPriorityFeePerGas: 50n * 10n ** 9n }
    await chain.client.send(chain.deployer, encodeSetFeed(chain.tokens.DAI.feed, 2n * USD, undefined), order)
    await chain.client.send(payer, convert(wanted))
    await chain.mine()
    expect(await scanned(wanted)).toEqual(counted('50'))
  })

  it.each([
    ['98 % of what our path says', 98_000_000n, counted('98')],
    ['a hundred-millionth less', 97_999_999n, notCounted('RATE_OFF', 'TOO_LITTLE')],
  ])('if it brings at least 98 % of what our path says: %s', async (says, answer, verdict) => {
    const wanted = await request(`brings ${says}`)
    await chain.setFeed(feeds.yenInUsd, { answer })
    await take(wanted, { path: ['JPY', 'USD'] })
    expect(await scanned(wanted)).toEqual(verdict)
  })

  it('for the amount that arrived of a token with a fee on transfers, rounded down', async () => {
    const wanted = await request('tax', { paymentCurrency: 'TAX-BASE' })
    await take(wanted, { amount: 3_333_333_333n })
    expect(await scanned(wanted)).toEqual({
      payments: [['32.9999999967', '32.99999999', 'CONVERSION']],
      unmatched: [],
      outstanding: '67.00000001',
    })
  })
})

describe('a conversion does not count', () => {
  it('at the price of a dead feed, which the payer allowed the proxy to use', async () => {
    const wanted = await request('dead feed')
    await chain.setFeed(chain.tokens.DAI.feed, { answer: 10n * USD })
    await passTime(2 * HOUR)
    await take(wanted, { maxRateTimespanSec: 0n })
    expect(await scanned(wanted)).toEqual(notCounted('STALE_RATE'))
    const [{ event }] = await knex('unmatched_events').where({ reason: 'STALE_RATE' }).select('event')
    expect(event).toMatchObject({ maxRateAgeSeconds: '3960', rateUpdatedAtSec: expect.stringMatching(/^\d+$/) })
  })

  it.each([
    [3_960, counted('100')],
    [3_961, notCounted('STALE_RATE')],
  ])('where our feed is older than its heartbeat and a tenth: %d s', async (ageSec, verdict) => {
    const wanted = await request(`age ${ageSec}`)
    await chain.setFeed(chain.tokens.DAI.feed, { answer: USD })
    await chain.client.send(payer, convert(wanted))
    await passTime(ageSec)
    expect(await scanned(wanted)).toEqual(verdict)
  })

  it('by a circular path that halves the received amount', async () => {
    const wanted = await request('circle')
    await take(wanted, { path: ['JPY', 'USD'] })
    expect(await scanned(wanted)).toEqual(notCounted('RATE_OFF', 'TOO_LITTLE'))
    expect(warnings[0]).toMatchObject([{ chain: 'BASE' }, 'a conversion was not counted because of its rate'])
    const topic = Buffer.from(keccak256(wanted.paymentReference).slice(2), 'hex')
    const [{ event }] = await knex('unmatched_events').where({ topic }).select('event')
    expect(event).toMatchObject({
      amount: `${50n * COIN}`,
      expectedAmount: `${100n * COIN}`,
      invoiceAmount: `${100n * USD}`,
    })
  })

  it('by a circular path into the native coin', async () => {
    const wanted = await request('circle of coins', { paymentCurrency: 'ETH-BASE' })
    await take(wanted, { path: ['JPY', 'USD'] })
    expect(await scanned(wanted)).toEqual(notCounted('RATE_OFF', 'TOO_LITTLE'))
  })

  it.each([0n, -1n, -(2n ** 191n)])('when a feed of our path answers %d', async (answer) => {
    const [wanted, inEuro] = [
      await request(`bad ${answer}`),
      await request(`bad euro ${answer}`, { invoiceCurrency: 'EUR' }),
    ]
    await chain.setFeed(chain.tokens.DAI.feed, { answer })
    await passTime()
    await take(wanted, { path: ['EUR'] })
    expect(await scanned(wanted)).toEqual(notCounted('RATE_OFF', 'NO_RATE'))
    await chain.setFeed(chain.tokens.DAI.feed, { answer: USD })
    await chain.setFeed(feeds.euroInUsd, { answer })
    await passTime()
    await take(inEuro)
    expect(await scanned(inEuro)).toEqual(notCounted('RATE_OFF', 'NO_RATE'))
  })

  it('from a currency without a configured path', async () => {
    const wanted = await request('yen', { invoiceCurrency: 'JPY' })
    await take(wanted, { path: ['USD'] })
    expect(await scanned(wanted)).toEqual(notCounted('RATE_OFF', 'NO_PATH'))
  })
})

describe('the calls to a node', () => {
  const isRate = (data: unknown) => String(data).startsWith(GET_RATE)
  const ratesAsked = () =>
    proxy.calls.filter(({ params }) => isRate((params[0] as { data?: string } | undefined)?.data)).length

  it('ask one rate a block, in the HTTP request of its prices, and the rate of the parent block only in doubt', async () => {
    const exchangesFor = async (...calls: ContractCall[]) => {
      await detection.scanOnce()
      for (const call of calls) await chain.client.send(payer, call)
      await chain.mine()
      proxy.calls.length = 0
      const before = proxy.exchanges()
      await detection.scanOnce()
      return proxy.exchanges() - before
    }
    const { DAI } = chain.tokens
    await chain.approve(payer, DAI, chain.contracts.erc20FeeProxy, 2n * COIN)
    const plain = [
      await request('reads the round of the feed', { invoiceCurrency: 'DAI-BASE' }),
      await request('knows the round of the feed', { invoiceCurrency: 'DAI-BASE' }),
    ]
    const pay = ({ payee, paymentReference }: PaymentRequest) =>
      encodeErc20Payment(chain.contracts.erc20FeeProxy, DAI.address, {
        to: payee as Address,
        amount: COIN,
        paymentReference,
      })
    const [, usual] = [await exchangesFor(pay(plain[0]!)), await exchangesFor(pay(plain[1]!))]

    const both = [await request('asked once'), await request('asked once too')]
    expect(await exchangesFor(...both.map((wanted) => convert(wanted)))).toBe(usual)
    expect(ratesAsked()).toBe(1)
    for (const wanted of [...plain, ...both]) expect(await paymentsOf(knex, account, wanted)).toHaveLength(1)

    const wrong = await request('asked twice')
    await take(wrong, { path: ['JPY', 'USD'] })
    proxy.calls.length = 0
    await scanned(wrong)
    expect(ratesAsked()).toBe(2)
  })

  it.each<[string, RegExp, Meddle]>([
    [
      'fails',
      /ECONNRESET/,
      ({ params }) => (isRate((params[0] as { data?: string })?.data) ? Promise.reject(new Error('down')) : undefined),
    ],
    ['is not as far as the block yet', /does not know block/, lagging()],
    ['refuses contracts as they are now', /missing trie node/, refusesAll()],
  ])('is asked again later where the node %s, and nothing is decided meanwhile', async (fault, message, meddle) => {
    const wanted = await request(`node ${fault}`)
    await take(wanted)
    proxy.meddle(meddle)
    await expect(detection.scanOnce()).rejects.toThrow(message)
    expect(await verdictOn(knex, account, wanted)).toEqual({ payments: [], unmatched: [], outstanding: '100' })
    proxy.meddle()
    expect(await scanned(wanted)).toEqual(counted('100'))
  })

  function lagging(): Meddle {
    let isBehind = false
    return ({ method, params }) => {
      if (method === 'eth_getBlockByNumber' && isBehind) return Promise.resolve(null)
      if (!isRate((params[0] as { data?: string })?.data)) return undefined
      isBehind = true
      return Promise.resolve({ rpcError: { code: -32_000, message: 'header not found' } })
    }
  }

  function refusesAll(): Meddle {
    return ({ method }) =>
      method === 'eth_call' ? Promise.resolve({ rpcError: { code: -32_000, message: 'missing trie node' } }) : undefined
  }
})

describe('a node without old states', () => {
  it('has its rates computed like the contract computes them', async () => {
    const { conversionPath: contract } = chain.contracts
    const { DAI, USDC } = chain.tokens
    const coin = chain.native.conversionHash
    const aggregators = [
      { input: fiat('USD'), output: fiat('CHF'), feed: await deployFeed(4, 9_137n) },
      { input: USDC.address, output: fiat('CHF'), feed: await deployFeed(21, 913_712_345_678_901_234_567n) },
      { input: coin, output: fiat('CHF'), feed: await deployFeed(0, 2_741n) },
    ]
    await chain.send(chain.deployer, encodeAggregators(contract, aggregators))
    const usd = fiat('USD')
    const paths = [
      [usd, DAI.address],
      [usd, fiat('CHF')],
      [usd, fiat('CHF'), USDC.address],
      [usd, fiat('CHF'), coin],
      [coin, fiat('CHF'), usd, DAI.address],
      [DAI.address, usd, coin],
      [fiat('EUR'), usd, fiat('CHF'), coin, usd],
    ]
    const client = createRpcClient({ urls: [chain.rpcUrl], chainId: 31_471, clock: () => new Date() })
    const reader = gatherCalls(createChainReader(client, []))
    for (const addresses of paths) {
      const data = encodeFunctionData({ abi: GET_RATE_ABI, args: [addresses] })
      const [rate, oldestSec, scale] = decodeFunctionResult({
        abi: GET_RATE_ABI,
        data: await chain.client.read({ to: contract, data }),
      })
      const path = addresses.map(canonical)
      const past = { contract: canonical(contract), path, timestampSec: await now() }
      // Only the contract knows which currency is the native coin.
      const decimalsOf = (address: string) => (address === canonical(coin) ? 18 : undefined)
      expect(await findPathRateAt(reader, { ...past, decimalsOf })).toEqual({ rate, oldestSec, scale })
    }
  })

  const withoutState: Meddle = ({ method, params }) =>
    method === 'eth_call' && params[1] !== 'latest'
      ? Promise.resolve({ rpcError: { code: -32_000, message: 'missing trie node' } })
      : undefined

  it('leads to the same judgements as a node with old states', async () => {
    const other = await createTestDatabase()
    try {
      const shop = await addAccount(other.knex, 'shop')
      for (const { wanted } of known) await storeRequest(other.knex, shop, wanted)
      proxy.meddle(withoutState)
      await detect(other.knex, [config]).scanOnce()
      for (const { wanted, verdict } of known) {
        expect([wanted.requestId, await verdictOn(other.knex, shop, wanted)]).toEqual([wanted.requestId, verdict])
      }
      expect(known.length).toBeGreaterThan(20)
    } finally {
      await other.drop()
    }
  })

  it('does not count conversions whose feeds have no rounds', async () => {
    const wanted = await request('no rounds')
    await take(wanted)
    const feed = chain.tokens.DAI.feed.toLowerCase()
    await chain.setFeed(feed as Hex, { answer: USD })
    proxy.meddle((call, ask) => {
      const [{ to, data } = {}] = call.params as { to?: string; data?: string }[]
      const isRound = to?.toLowerCase() === feed && data !== '0x313ce567'
      return isRound
        ? Promise.resolve({ rpcError: { code: 3, message: 'execution reverted' } })
        : withoutState(call, ask)
    })
    expect(await scanned(wanted)).toEqual(notCounted('RATE_OFF', 'NO_RATE'))
  })
})
