import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import type { Address } from 'viem'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { DemoFile, DemoFileChain } from '../../demo/demo-file.ts'
import { describeDemoChains } from '../../demo/describe-demo.ts'
import { createRandom } from '../../demo/history/random.ts'
import { createChainClient } from '../../demo/network/chain-client.ts'
import { encodeLatestRound } from '../../demo/network/demo-contracts.ts'
import { createRpc } from '../../demo/network/rpc.ts'
import { readHolding } from '../../demo/running-demo.ts'
import { DemoService } from '../../gen/demo/v1/demo_service_pb.js'
import { type Outcome, openWays, type Ways } from '../support/clients/clients.ts'
import { PATIENCE } from '../support/patience.ts'
import { runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

interface Payment {
  readonly id: string
  readonly status: string
  readonly network: string
  readonly amount: string
  readonly refundedAmount: string
  readonly blockNumber: string
  readonly type: string
}

interface Effect {
  readonly seen: boolean
  readonly notSeenBecause?: string
  readonly txHashes: readonly string[]
  readonly payments: readonly Payment[]
  readonly removedPayments: readonly string[]
  readonly heads: readonly { readonly network: string; readonly block: string; readonly time: string }[]
}

type Method = keyof typeof DemoService.method

let folder: string
let demo: WaybillProcess
let other: WaybillProcess
let file: DemoFile
let ways: Ways

const dataDirOf = (name: string) => join(folder, name)
const start = (name: string) => startWaybill(['serve', '--quiet'], { DATA_DIR: dataDirOf(name), PORT: '0' })
/** As a script does: demo.json is there once the demo answers. */
async function untilReady(name: string): Promise<DemoFile> {
  const path = join(dataDirOf(name), 'demo.json')
  await vi.waitFor(() => expect(existsSync(path)).toBe(true), { timeout: 45_000, interval: 50 })
  return JSON.parse(await readFile(path, 'utf8')) as DemoFile
}

beforeAll(async () => {
  folder = await makeTempFolder('sandbox')
  // Two at once on one machine.
  demo = start('one')
  other = start('two')
  file = await untilReady('one')
  ways = openWays(file.baseUrl)
})
afterAll(async () => {
  ways?.close()
  for (const each of [demo, other]) each?.kill('SIGTERM')
  await Promise.all([demo?.ended, other?.ended])
  await rm(folder, { recursive: true, force: true })
})

const call = (
  method: Method,
  request: JsonObject,
  headers: Record<string, string> = {},
  way = 'REST',
): Promise<Outcome> =>
  ways.named(way).ask({ method: DemoService.method[method], request, headers: { 'x-api-key': 'demo', ...headers } })

async function act(method: Method, request: JsonObject, headers: Record<string, string> = {}): Promise<Effect> {
  const { answer, error } = await call(method, request, headers)
  expect([method, request, error]).toEqual([method, request, undefined])
  return answer as unknown as Effect
}

async function api<T>(path: string, body?: object): Promise<T> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const headers = { 'x-api-key': 'demo', 'content-type': 'application/json', 'cache-control': 'no-cache' }
  return (await (await fetch(file.baseUrl + path, { ...init, headers })).json()) as T
}

/** Of nobody in the demo. */
const PAYEE = '0x00000000000000000000000000000000000b0be5'
interface Request {
  readonly paymentReference: string
  readonly status: string
  readonly amount: string
}
const makeRequest = (network = 'ETHEREUM', amount = '10', symbol = 'USDC') => {
  const currency = `${symbol}-${network}`
  return api<Request>('/v1/request', {
    payee: PAYEE,
    amount,
    invoiceCurrency: currency,
    paymentCurrency: currency,
    network,
    refundAddress: file.wallets.direct?.address,
  })
}
const readRequest = ({ paymentReference }: Request) => api<Request>(`/v1/request/${paymentReference}`)
const paymentsOf = async ({ paymentReference }: Request) =>
  (await api<{ payments: Payment[] }>(`/payments?paymentReference=${paymentReference}`)).payments
const only = ({ payments }: Effect): Payment => {
  expect(payments).toHaveLength(1)
  return payments[0] as Payment
}
const chainOf = (name: string) => file.chains.find((each) => each.name === name) as DemoFileChain
const held = (name: string, wallet: string, symbol = 'USDC') =>
  readHolding(createRpc(chainOf(name).rpcUrl), chainOf(name), { owner: file.wallets[wallet]?.address ?? '', symbol })

describe('a quiet start', () => {
  it('writes its URL alone, and demo.json once it answers', async () => {
    expect(demo.stdout()).toBe(`${file.baseUrl}\n`)
    expect((await fetch(`${file.baseUrl}/readyz`)).status).toBe(200)
  })

  it('goes beside another', async () => {
    const beside = await untilReady('two')
    expect(beside.baseUrl).not.toBe(file.baseUrl)
    expect(beside.chains.map(({ rpcUrl }) => rpcUrl)).not.toEqual(file.chains.map(({ rpcUrl }) => rpcUrl))
    expect((await fetch(`${beside.baseUrl}/readyz`)).status).toBe(200)
    other.kill('SIGTERM')
    expect((await other.ended).code).toBe(0)
    expect(existsSync(join(dataDirOf('two'), 'demo.json'))).toBe(false)
  })

  it('describes DemoService', async () => {
    const { paths } = await api<{ paths: object }>('/openapi.json')
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/v1/demo/pay', '/v1/demo/move-clock']))
  })
})

describe('what is refused', () => {
  let paid: Payment
  let request: Request
  beforeAll(async () => {
    request = await makeRequest()
    const { paymentReference } = request
    paid = only(await act('payRequest', { paymentReference, wallet: 'direct', amount: '4' }))
  })

  const reference = () => request.paymentReference
  it.each<[string, Method, () => JsonObject, string, string]>([
    ['no wallet', 'payRequest', () => ({ paymentReference: reference() }), 'MISSING_FIELD', 'wallet'],
    [
      'an unknown wallet',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'bob' }),
      'UNKNOWN_ENUM_VALUE',
      'wallet',
    ],
    [
      'a name of every object',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'constructor' }),
      'UNKNOWN_ENUM_VALUE',
      'wallet',
    ],
    [
      'an unknown request',
      'payRequest',
      () => ({ paymentReference: '0x00000000000000ff', wallet: 'direct' }),
      'REQUEST_NOT_FOUND',
      '',
    ],
    [
      'a path for a request',
      'payRequest',
      () => ({ paymentReference: '../../x', wallet: 'direct' }),
      'INVALID_PAYMENT_REFERENCE',
      'paymentReference',
    ],
    [
      'a route that nobody has',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'direct', route: 'A_B_C_D' }),
      'UNKNOWN_ROUTE',
      '',
    ],
    [
      'a route that is not offered',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'empty', route: 'REQUEST_NETWORK_PAYMENT' }),
      'ROUTE_UNAVAILABLE',
      'wallet',
    ],
    [
      'a wallet without routes',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'empty' }),
      'ROUTE_UNAVAILABLE',
      'wallet',
    ],
    [
      'a wallet without gas',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'noGas', route: 'REQUEST_NETWORK_PAYMENT' }),
      'ROUTE_WOULD_FAIL',
      '',
    ],
    [
      'nothing to pay',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'direct', amount: '0' }),
      'INVALID_AMOUNT',
      'amount',
    ],
    [
      'a negative amount',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'direct', amount: '-1' }),
      'INVALID_AMOUNT',
      'amount',
    ],
    [
      'a long wait',
      'payRequest',
      () => ({ paymentReference: reference(), wallet: 'direct', waitSeconds: 46 }),
      'INVALID_FIELD',
      'waitSeconds',
    ],
    ['no payment', 'refundPayment', () => ({}), 'MISSING_FIELD', 'paymentId'],
    [
      'an unknown payment',
      'refundPayment',
      () => ({ paymentId: '0b7d2a31-6f0e-4c55-9d3b-3d8f2f6f1c11' }),
      'PAYMENT_NOT_FOUND',
      '',
    ],
    ['no id of a payment', 'refundPayment', () => ({ paymentId: 'x/../y' }), 'INVALID_PAYMENT_ID', 'id'],
    [
      'a refund of more than is held',
      'refundPayment',
      () => ({ paymentId: paid.id, amount: '4.000001' }),
      'INVALID_AMOUNT',
      'amount',
    ],
    ['a refund of nothing', 'refundPayment', () => ({ paymentId: paid.id, amount: '0' }), 'INVALID_AMOUNT', 'amount'],
    [
      'a refund below the smallest unit',
      'refundPayment',
      () => ({ paymentId: paid.id, amount: '0.0000001' }),
      'INVALID_AMOUNT',
      'amount',
    ],
    ['a negative refund', 'refundPayment', () => ({ paymentId: paid.id, amount: '-1' }), 'INVALID_AMOUNT', 'amount'],
    [
      'an unknown chain',
      'reorg',
      () => ({ network: 'BASE', transactions: 'DROPPED' }),
      'UNKNOWN_ENUM_VALUE',
      'network',
    ],
    ['no choice', 'reorg', () => ({ network: 'ETHEREUM' }), 'MISSING_FIELD', 'transactions'],
    [
      'an unknown choice',
      'reorg',
      () => ({ network: 'ETHEREUM', transactions: 'LOST' }),
      'UNKNOWN_ENUM_VALUE',
      'transactions',
    ],
    [
      'no blocks',
      'reorg',
      () => ({ network: 'ETHEREUM', transactions: 'DROPPED', blocks: 0 }),
      'INVALID_FIELD',
      'blocks',
    ],
    [
      'less than no blocks',
      'reorg',
      () => ({ network: 'ETHEREUM', transactions: 'DROPPED', blocks: -1 }),
      'INVALID_FIELD',
      'blocks',
    ],
    [
      'a reorg of final blocks',
      'reorg',
      () => ({ network: 'ETHEREUM', transactions: 'DROPPED', blocks: 7 }),
      'INVALID_FIELD',
      'blocks',
    ],
    [
      'a reorg before the start',
      'reorg',
      () => ({ network: 'POLYGON', transactions: 'DROPPED', blocks: 120 }),
      'INVALID_FIELD',
      'blocks',
    ],
    [
      'a reorg of more than there is',
      'reorg',
      () => ({ network: 'ETHEREUM', transactions: 'DROPPED', blocks: 2147483647 }),
      'INVALID_FIELD',
      'blocks',
    ],
    ['blocks on no chain', 'mineBlocks', () => ({}), 'MISSING_FIELD', 'network'],
    [
      'less than no blocks to mine',
      'mineBlocks',
      () => ({ network: 'ETHEREUM', blocks: -5 }),
      'INVALID_FIELD',
      'blocks',
    ],
    ['too many blocks', 'mineBlocks', () => ({ network: 'ETHEREUM', blocks: 201 }), 'INVALID_FIELD', 'blocks'],
    ['no outcome', 'failBridge', () => ({}), 'MISSING_FIELD', 'outcome'],
    ['an unknown outcome', 'failBridge', () => ({ outcome: 'STOLEN' }), 'UNKNOWN_ENUM_VALUE', 'outcome'],
    ['no delay', 'failBridge', () => ({ outcome: 'LATE', delaySeconds: 0 }), 'INVALID_FIELD', 'delaySeconds'],
    ['a price of nothing', 'movePrice', () => ({ currency: 'ETH', usd: '0' }), 'INVALID_AMOUNT', 'usd'],
    ['a negative price', 'movePrice', () => ({ currency: 'ETH', usd: '-3000' }), 'INVALID_AMOUNT', 'usd'],
    ['a price of a billion', 'movePrice', () => ({ currency: 'ETH', usd: '1000000000' }), 'INVALID_AMOUNT', 'usd'],
    [
      'a price with nine decimals',
      'movePrice',
      () => ({ currency: 'ETH', usd: '1.000000001' }),
      'INVALID_AMOUNT',
      'usd',
    ],
    ['no price', 'movePrice', () => ({ currency: 'ETH', usd: 'much' }), 'INVALID_AMOUNT', 'usd'],
    ['an unknown token', 'movePrice', () => ({ currency: 'DOGE', usd: '1' }), 'UNKNOWN_ENUM_VALUE', 'currency'],
    [
      'a coin of another chain',
      'movePrice',
      () => ({ currency: 'BNB', usd: '1', network: 'ETHEREUM' }),
      'UNKNOWN_ENUM_VALUE',
      'currency',
    ],
    ['a clock that stands', 'moveClock', () => ({ seconds: 0 }), 'MISSING_FIELD', 'seconds'],
    ['a clock that goes back', 'moveClock', () => ({ seconds: -60 }), 'INVALID_FIELD', 'seconds'],
    ['a clock that flies', 'moveClock', () => ({ seconds: 2592001 }), 'INVALID_FIELD', 'seconds'],
    ['a clock of no chain', 'moveClock', () => ({ seconds: 1, network: 'MARS' }), 'UNKNOWN_ENUM_VALUE', 'network'],
    ['an unknown field', 'moveClock', () => ({ seconds: 1, minutes: 1 }), 'UNKNOWN_FIELD', 'minutes'],
  ])('%s', async (_, method, body, reason, field) => {
    const { answer, error } = await call(method, body())
    const info = error?.info as { reason?: string } | undefined
    const [violation] = (error?.violations ?? []) as { field: string }[]
    expect([info?.reason, violation?.field ?? '', answer]).toEqual([reason, field, undefined])
  })

  it('does nothing of it', async () => {
    expect(await paymentsOf(request)).toMatchObject([{ id: paid.id, refundedAmount: '0', refunds: [] }])
  })

  it.each(['', 'a key', 'x'.repeat(256)])('the idempotency key "%s"', async (key) => {
    const { error } = await call('failBridge', { outcome: 'LATE' }, { 'idempotency-key': key })
    expect(error?.info).toMatchObject({ reason: 'INVALID_IDEMPOTENCY_KEY' })
  })

  it('a key that does not exist, and one of another account sees nothing', async () => {
    const body = { paymentReference: reference(), wallet: 'direct' }
    expect((await call('payRequest', body, { 'x-api-key': 'wrong' })).error?.code).toBe('unauthenticated')
    const issued = await runWaybill(
      ['keys', 'create', '--account', 'shop', '--scopes', 'requests:write,requests:read,routes:read,payments:read'],
      { DATA_DIR: dataDirOf('one') },
    )
    const { error } = await call('payRequest', body, { 'x-api-key': issued.stdout.trim() })
    expect(error?.info).toMatchObject({ reason: 'REQUEST_NOT_FOUND' })
  })
})

it('answers the same over every protocol', async () => {
  const writing = ways.all.filter(({ readsOnly }) => !readsOnly)
  for (const { name } of writing) {
    const { answer } = await call('mineBlocks', { network: 'bsc', blocks: 1 }, {}, name)
    expect([name, answer]).toEqual([
      name,
      expect.objectContaining({ seen: true, heads: [expect.objectContaining({ network: 'BSC' })] }),
    ])
  }
})

describe('idempotency', () => {
  it('acts once for a key, also when both calls run, and refuses it for another message', async () => {
    const request = await makeRequest()
    const body = { paymentReference: request.paymentReference, wallet: 'direct', amount: '1' }
    const key = { 'idempotency-key': 'order-1' }
    const [first, second] = await Promise.all([act('payRequest', body, key), act('payRequest', body, key)])
    expect(second).toEqual(first)
    expect(await act('payRequest', body, key)).toEqual(first)
    expect(await paymentsOf(request)).toHaveLength(1)
    const { error } = await call('payRequest', { ...body, amount: '2' }, key)
    expect(error?.info).toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' })
  })

  it('lets what failed be tried again', async () => {
    const key = { 'idempotency-key': 'order-2' }
    const body = { network: 'POLYGON', transactions: 'DROPPED', blocks: 50 }
    expect((await call('reorg', body, key)).error?.info).toMatchObject({ reason: 'INVALID_FIELD' })
    await act('mineBlocks', { network: 'POLYGON', blocks: 51 })
    expect(await act('reorg', body, key)).toMatchObject({ seen: true })
  })
})

it('takes a request through its life', async () => {
  const request = await makeRequest()
  const { paymentReference } = request
  const paid = await act('payRequest', { paymentReference, wallet: 'otherToken' })
  expect(paid).toMatchObject({ seen: true, txHashes: { length: 2 } })
  const { id, status } = only(paid)
  expect([status, (await readRequest(request)).status]).toEqual(['PENDING', 'PENDING'])
  await act('mineBlocks', { network: 'ETHEREUM' })
  await expect.poll(async () => (await readRequest(request)).status).toBe('PAID')
  // A payee of which the demo has no key.
  const part = only(await act('refundPayment', { paymentId: id, amount: '2.5' }))
  expect(part).toMatchObject({ id, refundedAmount: '2.5' })
  await act('mineBlocks', { network: 'ETHEREUM' })
  expect((await readRequest(request)).status).toBe('PAID')
  const rest = only(await act('refundPayment', { paymentId: id }))
  expect(rest.refundedAmount).toBe('10')
  await act('mineBlocks', { network: 'ETHEREUM' })
  await expect.poll(async () => (await readRequest(request)).status).toBe('REFUNDED')
  const { error } = await call('refundPayment', { paymentId: id })
  expect(error?.info).toMatchObject({ reason: 'INVALID_AMOUNT' })
})

it('pays eight requests at once from one wallet, and refunds four of them at once from one payee', async () => {
  const requests = await Promise.all(Array.from({ length: 8 }, (_, n) => makeRequest('ETHEREUM', `${10 + n}`)))
  const pay = ({ paymentReference }: Request) => act('payRequest', { paymentReference, wallet: 'direct' })
  const paid = (await Promise.all(requests.map(pay))).map(only)
  expect(paid.map(({ amount }) => amount)).toEqual(requests.map(({ amount }) => amount))
  const refunds = await Promise.all(paid.slice(4).map(({ id }) => act('refundPayment', { paymentId: id })))
  expect(refunds.map((effect) => only(effect).refundedAmount)).toEqual(paid.slice(4).map(({ amount }) => amount))
})

it('refunds all coins that a payee holds', async () => {
  const { paymentReference } = await makeRequest('ETHEREUM', '0.5', 'ETH')
  const { id } = only(await act('payRequest', { paymentReference, wallet: 'direct' }))
  expect(only(await act('refundPayment', { paymentId: id })).refundedAmount).toBe('0.5')
})

it('says why a refund fails', async () => {
  const currency = 'ETH-ETHEREUM'
  const terms = { payee: PAYEE, amount: '0.01', invoiceCurrency: currency, paymentCurrency: currency }
  const refundAddress = `0x${'bad'.padStart(40, '0')}`
  // A contract that takes no coins.
  await createRpc(chainOf('ETHEREUM').rpcUrl).call('anvil_setCode', [refundAddress, '0x60006000fd'])
  const { paymentReference } = await api<Request>('/v1/request', { ...terms, refundAddress })
  const { id } = only(await act('payRequest', { paymentReference, wallet: 'direct' }))
  const { error } = await call('refundPayment', { paymentId: id })
  expect([error?.info, error?.message]).toMatchObject([
    { reason: 'INVALID_FIELD' },
    expect.stringMatching(/its refund failed: \w/),
  ])
})

describe('a reorg', () => {
  it('removes a payment for good', async () => {
    const request = await makeRequest('ARBITRUM')
    const { paymentReference } = request
    const pay = () => act('payRequest', { paymentReference, wallet: 'direct', route: 'REQUEST_NETWORK_PAYMENT' })
    const { id } = only(await pay())
    const gone = await act('reorg', { network: 'ARBITRUM', transactions: 'DROPPED' })
    expect(gone).toMatchObject({ seen: true, payments: [] })
    expect(gone.removedPayments).toContain(id)
    expect(await paymentsOf(request)).toEqual([])
    expect((await readRequest(request)).status).toBe('OPEN')
    // The wallet pays as if nothing had been.
    expect(await pay()).toMatchObject({ seen: true })
  })

  it('brings a payment and its refund back with the same id', async () => {
    const request = await makeRequest('BSC')
    const { paymentReference } = request
    const route = 'REQUEST_NETWORK_PAYMENT'
    const { id, blockNumber } = only(await act('payRequest', { paymentReference, wallet: 'direct', route }))
    await act('refundPayment', { paymentId: id, amount: '1' })
    const { removedPayments, payments, seen } = await act('reorg', { network: 'BSC', transactions: 'MINED_AGAIN' })
    expect([seen, removedPayments.includes(id)]).toEqual([true, true])
    const back = payments.find((each) => each.id === id)
    expect(Number(back?.blockNumber)).toBeGreaterThan(Number(blockNumber))
    await expect.poll(async () => await paymentsOf(request)).toMatchObject([{ id, refundedAmount: '1' }])
  })
})

describe('the bridge', () => {
  const pay = async () => {
    const request = await makeRequest('ETHEREUM', '20')
    const { paymentReference } = request
    const body = { paymentReference, wallet: 'otherChain', route: 'ARBITRUM_ETHEREUM_USDC_USDC' }
    return { request, effect: await act('payRequest', body) }
  }

  it('is late once, and then in time', async () => {
    await act('failBridge', { outcome: 'LATE', delaySeconds: 5 })
    const beganMs = Date.now()
    expect(only((await pay()).effect)).toMatchObject({ type: 'CROSSCHAIN' })
    expect(Date.now() - beganMs).toBeGreaterThan(5_000)
    expect(only((await pay()).effect)).toMatchObject({ type: 'CROSSCHAIN' })
  })

  it('delivers to the payer without paying', async () => {
    const before = await held('ETHEREUM', 'otherChain')
    await act('failBridge', { outcome: 'UNPAID' })
    const { request, effect } = await pay()
    expect(effect).toMatchObject({ seen: false, notSeenBecause: expect.stringContaining('UNPAID'), payments: [] })
    await expect.poll(async () => (await held('ETHEREUM', 'otherChain')).units - before.units).toBe(20n * 10n ** 6n)
    expect((await readRequest(request)).status).toBe('OPEN')
  })

  it('refunds the payer when the time has come', async () => {
    const before = await held('ARBITRUM', 'otherChain')
    await act('failBridge', { outcome: 'REFUNDED' })
    const { request, effect } = await pay()
    expect(effect).toMatchObject({ seen: false, notSeenBecause: expect.stringContaining('REFUNDED') })
    expect((await held('ARBITRUM', 'otherChain')).units).toBeLessThan(before.units)
    const { heads } = await act('moveClock', { seconds: 7_205, network: 'ARBITRUM' })
    expect(Date.parse(heads[0]?.time ?? '')).toBeGreaterThan(Date.now() + 7_000_000)
    await expect.poll(async () => (await held('ARBITRUM', 'otherChain')).units, PATIENCE).toBe(before.units)
    expect((await readRequest(request)).status).toBe('OPEN')
  })
})

describe('prices and clocks', () => {
  const priceOf = async (name: string) => {
    const config = describeDemoChains(file.chains).find((each) => each.name === name)
    const feed = config?.native.usdFeed as unknown as Address
    const round = await createChainClient(createRpc(chainOf(name).rpcUrl)).read(encodeLatestRound(feed))
    return BigInt(`0x${round.slice(66, 130)}`)
  }

  it('holds a price on one chain or on all, and lets it go', async () => {
    await act('movePrice', { currency: 'ETH', usd: '1234.5', network: 'ETHEREUM' })
    expect(await priceOf('ETHEREUM')).toBe(123_450_000_000n)
    expect(await priceOf('ARBITRUM')).not.toBe(123_450_000_000n)
    await act('movePrice', { currency: 'ETH', usd: '0.00000001' })
    // A day later the feeds have moved, and the price has not.
    await act('moveClock', { seconds: 86_400 })
    expect([await priceOf('ETHEREUM'), await priceOf('ARBITRUM')]).toEqual([1n, 1n])
    await act('movePrice', { currency: 'ETH' })
    expect(await priceOf('ETHEREUM')).toBeGreaterThan(2_000n * 10n ** 8n)
  })

  it('dates payments by the clock of their chain, and converts at its prices', async () => {
    await act('movePrice', { currency: 'ETH', usd: '2000' })
    const request = await makeRequest('ETHEREUM', '0.01', 'ETH')
    const { paymentReference } = request
    const [{ amountInUSD, timestamp }] = (await act('payRequest', { paymentReference, wallet: 'coinsOnly' }))
      .payments as unknown as [{ amountInUSD: string; timestamp: string }]
    expect(amountInUSD).toBe('20')
    expect(Date.parse(timestamp)).toBeGreaterThan(Date.now() + 80_000_000)
    // A swap and a direct payment work on a chain that is a day ahead.
    const swapped = await makeRequest()
    const body = { paymentReference: swapped.paymentReference, wallet: 'otherToken' }
    expect(await act('payRequest', body)).toMatchObject({ seen: true })
  })
})

describe('any sequence of calls', () => {
  const random = createRandom(34)
  const network = () => random.pick(['ETHEREUM', 'ARBITRUM', 'BSC'])
  const requests: Request[] = []
  const steps: Record<string, () => Promise<JsonValue | Effect | undefined>> = {
    async create() {
      requests.push(await makeRequest(network(), String(random.below(90) + 10)))
      return undefined
    },
    async pay() {
      const { paymentReference = '' } = requests.length === 0 ? {} : random.pick(requests)
      const amount = random.below(2) === 0 ? undefined : { amount: String(random.below(9) + 1) }
      const { answer, error } = await call('payRequest', { paymentReference, wallet: 'direct', ...amount })
      if (error !== undefined) expect(['failed_precondition', 'invalid_argument']).toContain(error.code)
      return answer
    },
    async refund() {
      const payments = (await Promise.all(requests.map(paymentsOf))).flat()
      if (payments.length === 0) return undefined
      const { id: paymentId } = random.pick(payments)
      const amount = random.below(2) === 0 ? undefined : { amount: '0.5' }
      const { answer, error } = await call('refundPayment', { paymentId, ...amount })
      if (error !== undefined) expect(error.info).toMatchObject({ reason: 'INVALID_AMOUNT' })
      return answer
    },
    reorg: () => act('reorg', { network: network(), transactions: random.pick(['DROPPED', 'MINED_AGAIN']) }),
    mine: () => act('mineBlocks', { network: network(), blocks: random.below(4) + 1 }),
    price: () => act('movePrice', { currency: 'USDC', usd: `0.9${random.below(9)}1` }),
    clock: () => act('moveClock', { seconds: random.below(1_000) + 1, network: network() }),
    bridge: () => act('failBridge', { outcome: random.pick(['UNPAID', 'LATE', 'REFUNDED']) }),
  }

  it('ends with payments, requests and chains that agree', { timeout: 300_000 }, async () => {
    const taken: string[] = []
    for (let n = 0; n < 40; n++) {
      const name =
        n < 3 ? 'create' : random.pick(['create', 'pay', 'pay', 'pay', 'refund', 'refund', ...Object.keys(steps)])
      taken.push(name)
      const effect = (await steps[name]?.()) as Effect | undefined
      expect([taken, effect?.notSeenBecause]).toEqual([taken, undefined])
    }
    expect((await Promise.all(requests.map(paymentsOf))).flat().length).toBeGreaterThan(3)
    for (const { name } of file.chains) await act('mineBlocks', { network: name })
    const { code, stdout, stderr } = await runWaybill(['verify', '--account', 'demo'], { DATA_DIR: dataDirOf('one') })
    expect([code, stdout, stderr]).toEqual([0, '', expect.stringContaining('no difference')])
    for (const request of requests) {
      const { amount, status } = await readRequest(request)
      const payments = await paymentsOf(request)
      const paid = payments.reduce((sum, each) => sum + Number(each.amount), 0)
      const covered = ['PAID', 'REFUNDED'].includes(status)
      expect([amount, paid, status, paid < Number(amount) && covered]).toEqual([amount, paid, status, false])
      expect(payments.filter((each) => each.status === 'PENDING')).toEqual([])
    }
  })
})
