import { Readable } from 'node:stream'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { composeService, type Service } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { silentLogger } from '../support/logs.ts'
import { type Receiver, startReceiver } from './webhook-stage.ts'

// Deliveries of what detection finds on a real chain, sent by the service's own background.

const START = new Date('2026-03-01T12:00:00.000Z')
const clock = { now: START }

let database: TestDatabase
let chain: TestChain
let service: Service
let account: Account
let shop: Receiver
let secret: string
beforeAll(async () => {
  ;[database, chain] = await Promise.all([
    createTestDatabase(),
    startTestChain({ genesisTimeSec: START.getTime() / 1_000, baseFeePerGas: 8_000_000_000n }),
  ])
  service = await composeService({
    knex: database.knex,
    chains: [chain.config({ name: 'ETHEREUM', finalityDepth: 3 })],
    logger: silentLogger,
    now: () => clock.now,
    webhooksAllowPrivate: true,
  })
  account = await createApiKeyRepository(database.knex).ensureAccount('shop')
  shop = await startReceiver()
  const made = await service.webhooks.service.create(account, { url: shop.url, kinds: [] }, { actor: 'test' })
  secret = made.secret
  await chain.fund(chain.tokens.USDC, chain.wallets[0], 1_000_000000n)
  await service.detection.scanOnce()
  service.background.start()
})
afterAll(async () => {
  await service?.background.stop()
  await shop?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
})

const createRequest = async (more: { readonly expiresAt?: string } = {}) => {
  const terms = { amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM', ...more }
  return (await service.requests.create(account, { payee: chain.wallets[1], ...terms })).request
}

async function pay({ paymentReference }: Awaited<ReturnType<typeof createRequest>>): Promise<void> {
  const [payer, to] = chain.wallets
  const { address: token } = chain.tokens.USDC
  await chain.pay(payer, { kind: 'ERC20', token, to, amount: 20_000000n, paymentReference })
  await service.detection.scanOnce()
}

/** What came of a request and its payment since, in the order of its arrival for each. */
function seen(from: number): readonly string[] {
  return shop.received.slice(from).map(({ type, data }) => `${type} ${data.status ?? ''}`.trim())
}

const of = (kind: string, events: readonly string[]) => events.filter((event) => event.startsWith(kind))

it('a request is PENDING, then PAID; its payment is added, then CONFIRMED', async () => {
  const from = shop.received.length
  await pay(await createRequest())
  await shop.until(() => seen(from).length === 2)
  await chain.mine({ blocks: 4 })
  await service.detection.scanOnce()
  await shop.until(() => seen(from).length === 4)
  expect(of('request', seen(from))).toEqual(['request.updated PENDING', 'request.updated PAID'])
  expect(of('payment', seen(from))).toEqual(['payment.added PENDING', 'payment.updated CONFIRMED'])
})

it('a reorg removes the payment, and the request is OPEN again', async () => {
  const from = shop.received.length
  await pay(await createRequest())
  await shop.until(() => seen(from).length === 2)
  await chain.reorg(1)
  await service.detection.scanOnce()
  await shop.until(() => seen(from).length === 4)
  expect(of('payment', seen(from))).toEqual(['payment.added PENDING', 'payment.removed'])
  expect(of('request', seen(from))).toEqual(['request.updated PENDING', 'request.updated OPEN'])
})

it('updates of a request and of its payments are sent in order and signed; those that change nothing are not', async () => {
  const repository = createApiKeyRepository(database.knex)
  const { key } = await issueApiKey(repository, { account: 'shop', scopes: ['requests:write'], now: START })
  await using listener = await listen()
  const created = await createRequest()
  const { paymentReference, requestId } = created
  const from = shop.received.length
  const update = async (body: object) => {
    const answer = await fetch(`${listener.url}/v1/request/${paymentReference}`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return answer.status
  }
  /** What came of an update, and no more. */
  const until = async (count: number) => {
    await shop.until(() => shop.received.length >= from + count)
    return shop.received.slice(from).map(({ type }) => type)
  }
  const request = (change: object) => ({ type: 'request.updated', data: expect.objectContaining(change) })
  const payment = (metadata: object) => ({ type: 'payment.updated', data: expect.objectContaining({ metadata }) })
  expect(await update({ title: 'One book' })).toBe(200)
  await until(1)
  expect(await update({ metadata: { order: '1042', channel: 'web' } })).toBe(200)
  await until(2)
  await pay(created)
  await until(4)
  for (const bad of [{ amount: '1' }, { metadata: { 'a b': 'x' } }, { expiresAt: 'soon' }, { title: '\u202e' }]) {
    expect([await update(bad), bad]).toEqual([400, bad])
  }
  for (const same of [{}, { title: 'One book' }, { metadata: { order: '1042' } }]) expect(await update(same)).toBe(200)
  expect(await update({ metadata: { order: '1043', channel: '' } })).toBe(200)
  await until(6)
  const expiresAt = '2026-06-01T00:00:00Z'
  expect(await update({ expiresAt })).toBe(200)
  await until(7)
  expect(await update({ title: '', expiresAt: '' })).toBe(200)
  await until(8)
  // Nothing else is under way: a later change comes next.
  await service.requests.cancel(account, paymentReference)
  await until(9)

  const got = shop.received.slice(from)
  const events = got.map(({ type, data }) => ({ type, data }))
  const of = (kind: string) => events.filter(({ type }) => type.startsWith(kind))
  const title = 'One book'
  expect(of('request')).toEqual([
    request({ requestId, title, metadata: {}, status: 'OPEN' }),
    request({ title, metadata: { order: '1042', channel: 'web' }, status: 'OPEN' }),
    request({ title, metadata: { order: '1042', channel: 'web' }, status: 'PENDING' }),
    request({ title, metadata: { order: '1043' }, status: 'PENDING' }),
    request({ title, metadata: { order: '1043' }, expiresAt }),
    expect.objectContaining({ type: 'request.updated' }),
    expect.objectContaining({ type: 'request.updated' }),
  ])
  for (const { data } of of('request').slice(-2)) {
    expect(data).not.toHaveProperty('title')
    expect(data).not.toHaveProperty('expiresAt')
  }
  expect(of('payment')).toEqual([
    { ...payment({ order: '1042', channel: 'web' }), type: 'payment.added' },
    payment({ order: '1043' }),
  ])
  const [changed] = of('payment').slice(-1)
  expect(new Date(String(changed?.data['changedAt'])) >= START).toBe(true)
  // By the published library, which verifies with the machine's clock.
  for (const { headers, body } of got) {
    const at = new Date(Number(headers['webhook-timestamp']) * 1_000)
    const signed = new Webhook(secret).sign(String(headers['webhook-id']), at, body)
    expect(headers['webhook-signature']).toBe(signed)
  }
  expect(new Set(got.map(({ headers }) => headers['webhook-id'])).size).toBe(got.length)
})

async function listen() {
  const listener = await service.listen({ host: '127.0.0.1', port: 0 })
  return { url: listener.url, [Symbol.asyncDispose]: () => listener.stop({ graceMs: 0 }) }
}

it('the cancellation of a request is sent once', async () => {
  const from = shop.received.length
  const { paymentReference } = await createRequest()
  await service.requests.cancel(account, paymentReference)
  await service.requests.cancel(account, paymentReference)
  await pay(await createRequest())
  await shop.until(() => seen(from).length === 3)
  expect(of('request', seen(from)).toSorted()).toEqual(['request.updated CANCELLED', 'request.updated PENDING'])
})

it('a request is EXPIRED once its chain is read up to its expiry, not before, and one that was paid in time never', async () => {
  const from = shop.received.length
  const expiresAt = new Date(clock.now.getTime() + 3_600_000)
  const [unpaid, paid] = [
    await createRequest({ expiresAt: expiresAt.toISOString() }),
    await createRequest({ expiresAt: expiresAt.toISOString() }),
  ]
  // The clock is past it; a block that may hold a payment in time is not read yet.
  clock.now = new Date(expiresAt.getTime() + 60_000)
  await service.webhooks.logExpired(new AbortController().signal)
  expect((await service.requests.get(account, unpaid.paymentReference)).balance.status).toBe('EXPIRED')
  expect(await logged(unpaid.requestId)).toBe(0)
  await pay(paid)
  await shop.until(() => statusesOf(paid, from).length === 1)
  await chain.mine({ timestampSec: expiresAt.getTime() / 1_000 })
  await service.detection.scanOnce()
  for (let times = 0; times < 2; times++) await service.webhooks.logExpired(new AbortController().signal)
  await shop.until(() => statusesOf(unpaid, from).length === 1)
  expect([statusesOf(paid, from), statusesOf(unpaid, from)]).toEqual([['PENDING'], ['EXPIRED']])
  expect(await logged(unpaid.requestId)).toBe(1)
})

const statusesOf = ({ requestId }: { readonly requestId: string }, from: number) =>
  shop.received.slice(from).flatMap(({ type, data }) => {
    return type === 'request.updated' && data['requestId'] === requestId ? [data.status] : []
  })

const logged = async (requestId: string) => {
  const rows = database.knex('payment_changes').where({ changed_request: Buffer.from(requestId, 'hex') })
  return (await rows.select('change')).length
}

it('an import changes a request too', async () => {
  const { importLines } = await import('../../src/imports/lines/import-lines.ts')
  const { importPayments } = await import('../../src/imports/import-payments.ts')
  const from = shop.received.length
  const { requestId } = await createRequest()
  const line = {
    id: '7e000000-0000-4000-8000-000000000001',
    status: 'CONFIRMED',
    timestamp: '2026-03-01T12:00:00Z',
    updatedAt: '2026-03-01T12:01:00Z',
    amount: '20',
    currency: 'USDC-ETHEREUM',
    network: 'ETHEREUM',
    txHash: `0x${'1f'.repeat(32)}`,
    requestId,
  }
  await importLines(Readable.from([Buffer.from(JSON.stringify(line))]), importPayments(database.knex, account))
  await shop.until(() => seen(from).length === 2)
  expect(seen(from).toSorted()).toEqual(['payment.added CONFIRMED', 'request.updated PAID'])
})
