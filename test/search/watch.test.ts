import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { text } from 'node:stream/consumers'
import type { Hex } from 'viem'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { rankOfStatus } from '../../src/domain/payment.ts'
import { type LockedAccount, lockAccount } from '../../src/store/payment-changes.ts'
import { type WatchCall, type WatchedJson, watchBy, watchWays } from '../support/clients/watch-clients.ts'
import { insertPayments } from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { revokeKey } from '../support/keys.ts'
import { PATIENCE } from '../support/patience.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'
import { openEventSource, type PageEvent } from './event-source.ts'

// Watches over the wire: events, cursors, ends, permissions.

let running: TestService
let shop: Account
let headers: Readonly<Record<string, string>>

beforeAll(async () => {
  running = await startTestService()
  shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
  headers = { 'x-api-key': running.keys.shop }
})
afterAll(() => running?.stop())

const id = (n: number) => `5e000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
let ids = 0
/** Payments without a payer are not excluded by it. */
const ABSENT = `0x${'00'.repeat(19)}aa`

/** Stores payments of these amounts in US dollars; returns their ids. */
async function store(
  dollars: readonly number[],
  more: { readonly fees?: readonly [] | readonly object[] } = {},
): Promise<string[]> {
  const stored = dollars.map((amount) => ({
    accountId: shop.id,
    final: true,
    payment: {
      id: id(++ids),
      status: 'CONFIRMED' as const,
      timestamp: NOW,
      updatedAt: NOW,
      amount: `${amount}` as const,
      amountInUsd: `${amount}` as const,
      currency: 'USDC-ETHEREUM',
      network: 'ETHEREUM',
      fees: [],
      marks: [],
      exchangeRates: [],
      refunds: [],
      refundedAmount: '0' as const,
      statusHistory: [],
      ...(more as object),
    },
  }))
  await insertPayments(running.database.knex, stored)
  return stored.map(({ payment }) => payment.id)
}

const inOrder = (write: (account: LockedAccount) => Promise<unknown>) =>
  running.database.knex.transaction(async (trx) => {
    await write(await lockAccount(trx, shop.id, NOW))
  })

const setDollars = (paymentId: string, dollars: number) =>
  inOrder((account) => {
    const sql = 'update payments set amount_in_usd = ? where account_id = ? and id = ?'
    return changePayments(account, { sql, bindings: [dollars, shop.id, paymentId] })
  })

const remove = (paymentId: string) =>
  inOrder((account) => {
    const sql = 'delete from payments where account_id = ? and id = ?'
    return changePayments(account, { sql, bindings: [shop.id, paymentId] })
  })

const brief = ({ type, id: of, payment }: WatchedJson) => [
  type,
  of,
  (payment as { amountInUSD?: string } | undefined)?.amountInUSD,
]

/** Hangs up after this many messages. */
function take(count: number, onFirst: () => unknown = () => {}): WatchCall['onMessage'] {
  let seen = 0
  return () => {
    if (seen++ === 0) void onFirst()
    return seen === count ? 'hang up' : 'go on'
  }
}

/** The cursor of a watch that begins now. */
async function cursorNow(key = running.keys.shop): Promise<string> {
  const call = { url: running.url, headers: { 'x-api-key': key }, onMessage: take(1) }
  const { messages } = await watchBy('JSON lines', call)
  return messages[0]?.watchCursor ?? ''
}

describe.each(watchWays)('over %s', (way) => {
  it('a payment that begins to match, changes, stops matching and is deleted gives events in this order', async () => {
    let made = ''
    const write = async () => {
      ;[made = ''] = await store([150])
      await setDollars(made, 250)
      await setDollars(made, 50)
      await setDollars(made, 60)
      await setDollars(made, 100)
      await remove(made)
    }
    const request = { minAmount: '100', network: ['ETHEREUM'] }
    const { messages } = await watchBy(way, { url: running.url, request, headers, onMessage: take(6, write) })
    expect(messages.map(brief)).toEqual([
      ['HEARTBEAT', undefined, undefined],
      ['ADDED', made, '150'],
      ['UPDATED', made, '250'],
      ['REMOVED', made, '50'],
      ['ADDED', made, '100'],
      ['REMOVED', made, undefined],
    ])
    expect(new Set(messages.map(({ watchCursor }) => watchCursor)).size).toBe(6)
    expect(messages[1]).toMatchObject({ payment: { status: 'CONFIRMED', fees: [] } })
    const stamps = messages.flatMap(({ at, payment, type }) =>
      type === 'ADDED' ? [[at, (payment as { changedAt?: string }).changedAt]] : [],
    )
    expect(stamps.every(([at, changedAt]) => at === changedAt)).toBe(true)
  })

  it('a payment that becomes excluded is removed, and comes back when it is not', async () => {
    let made = ''
    const setStatus = (rank: number) =>
      inOrder((account) => {
        const sql = 'update payments set status = ? where account_id = ? and id = ?'
        return changePayments(account, { sql, bindings: [rank, shop.id, made] })
      })
    const write = async () => {
      ;[made = ''] = await store([42])
      await setStatus(rankOfStatus('FAILED'))
      await setStatus(rankOfStatus('REFUNDED'))
    }
    const request = { exclude: { status: ['FAILED'], payer: [ABSENT] } }
    const { messages } = await watchBy(way, { url: running.url, request, headers, onMessage: take(4, write) })
    expect(messages.map(({ type, id: of }) => [type, of])).toEqual([
      ['HEARTBEAT', undefined],
      ['ADDED', made],
      ['REMOVED', made],
      ['ADDED', made],
    ])
  })

  it('it resumes after a cursor of any filter, and then sends a heartbeat when it has caught up', async () => {
    const watchCursor = await cursorNow()
    const made = await store([1, 2, 300, 400, 3])
    const call = { url: running.url, headers }
    const all = await watchBy(way, { ...call, request: { watchCursor }, onMessage: take(3) })
    const between = all.messages.at(-1)?.watchCursor ?? ''
    const request = { watchCursor: between, minAmount: '300' }
    const rest = await watchBy(way, { ...call, request, onMessage: take(2) })
    expect(all.messages.map(brief)).toEqual(made.slice(0, 3).map((of, at) => ['ADDED', of, ['1', '2', '300'][at]]))
    expect(rest.messages.map(brief)).toEqual([
      ['ADDED', made[3], '400'],
      ['HEARTBEAT', undefined, undefined],
    ])
    expect(rest.messages[1]?.watchCursor).toBe(await cursorNow())
  })

  it.each([
    ['an invalid cursor', { watchCursor: 'AAAA' }, {}, 'invalid_argument', 'INVALID_WATCH_CURSOR', 400],
    ['an empty cursor', { watchCursor: '' }, {}, 'invalid_argument', 'INVALID_WATCH_CURSOR', 400],
    ['an unknown network', { network: ['BAS'] }, {}, 'invalid_argument', 'UNKNOWN_NETWORK', 400],
    ['no key', {}, { 'x-api-key': '' }, 'unauthenticated', 'MISSING_API_KEY', 401],
    ['a ticket beside a key', { ticket: 'wt_1' }, {}, 'invalid_argument', 'INVALID_FIELD', 400],
  ])('%s is refused', async (_, request, more, code, reason, httpStatus) => {
    const outcome = await watchBy(way, {
      url: running.url,
      request,
      headers: { ...headers, ...more },
      onMessage: () => 'hang up',
    })
    expect(outcome).toEqual({
      messages: [],
      error: { code, reason, ...((way === 'JSON lines' || way === 'server-sent events') && { httpStatus }) },
    })
  })

  it('a cursor that is too old, ahead of the log, or of another account is refused', async () => {
    const { knex } = running.database
    const begin = await cursorNow()
    await store([1, 2])
    const end = await cursorNow()
    const attempt = async (watchCursor: string) =>
      (await watchBy(way, { url: running.url, request: { watchCursor }, headers, onMessage: take(1) })).error
    expect(await attempt(await cursorNow(running.keys.other))).toMatchObject({ reason: 'INVALID_WATCH_CURSOR' })

    const account = () => knex('account_changes').where({ account_id: shop.id })
    const [log] = await account()
    await account().update({ pruned_change: log.last_change - 1n })
    expect(await attempt(begin)).toMatchObject({ code: 'out_of_range', reason: 'CURSOR_EXPIRED' })
    await account().update({ pruned_change: log.pruned_change, last_change: log.last_change - 1n })
    expect(await attempt(end)).toMatchObject({ code: 'out_of_range', reason: 'CURSOR_EXPIRED' })
    await account().update({ last_change: log.last_change })
    expect(await attempt(begin)).toBeUndefined()
  })

  it('it ends when its key is revoked', async () => {
    const listener = await running.listen({ recheckMs: 10 })
    const repository = createApiKeyRepository(running.database.knex)
    const terms = { account: 'shop', scopes: ['payments:read'], now: NOW, callsPerMinute: 0 } as const
    const { key, stored } = await issueApiKey(repository, terms)
    const { messages, error } = await watchBy(way, {
      url: listener.url,
      headers: { 'x-api-key': key },
      onMessage() {
        void revokeKey(repository, stored.id, NOW)
        return 'go on'
      },
    })
    expect([messages.length, error]).toEqual([1, { code: 'unauthenticated', reason: 'INVALID_API_KEY' }])
  })

  it('it ends with SHUTTING_DOWN when the process stops', async () => {
    const listener = await running.listen({})
    let stopped: Promise<void> | undefined
    const { error } = await watchBy(way, {
      url: listener.url,
      headers,
      onMessage() {
        stopped = listener.stop({ graceMs: 10_000 })
        return 'go on'
      },
    })
    expect(error).toEqual({ code: 'unavailable', reason: 'SHUTTING_DOWN' })
    await stopped
  })
})

it('sends what detection finds, confirms and removes after a reorg', async () => {
  const { chain, service } = running
  const [payer, payee] = chain.wallets
  await chain.fund(chain.tokens.USDC, payer, 1_000_000000n)
  const body = { payee, amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
  const created = await fetch(`${running.url}/v1/request`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { paymentReference } = (await created.json()) as { paymentReference: Hex }
  const pay = () => {
    const token = chain.tokens.USDC.address
    return chain.pay(payer, { kind: 'ERC20', token, to: payee, amount: 20_000000n, paymentReference })
  }
  const write = async () => {
    await pay()
    await service.detection.scanOnce()
    await chain.reorg(1)
    await chain.mine({ blocks: 2 })
    await service.detection.scanOnce()
    await pay()
    await chain.mine({ blocks: 4 })
    await service.detection.scanOnce()
  }
  const request = { paymentReference: [paymentReference] }
  const written = Promise.withResolvers<void>()
  const onMessage = take(4, () => write().then(written.resolve, written.reject))
  const { messages } = await watchBy('grpc-js', { url: running.url, request, headers, onMessage })
  await written.promise
  expect(messages.map(({ type, payment }) => [type, (payment as { status?: string } | undefined)?.status])).toEqual([
    ['HEARTBEAT', undefined],
    ['ADDED', 'PENDING'],
    ['REMOVED', undefined],
    ['ADDED', 'CONFIRMED'],
  ])
})

describe('a browser', () => {
  const origin = 'https://shop.example'
  let listener: Listener

  beforeAll(async () => {
    listener = await running.service.listen({ host: '127.0.0.1', port: 0, corsOrigins: [origin] })
  })
  afterAll(() => listener?.stop({ graceMs: 0 }))

  /** What the page's own server does: it has the key. */
  async function takeTicket(url = listener.url): Promise<string> {
    const answer = await fetch(`${url}/v1/payments:watchTicket`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{}',
    })
    const { ticket, expiresAt } = (await answer.json()) as { ticket: string; expiresAt: string }
    expect([answer.status, expiresAt]).toEqual([200, '2026-03-01T12:01:00Z'])
    return ticket
  }

  interface Page {
    readonly events: PageEvent[]
    readonly broken: [state: string, status: number | undefined][]
  }

  function openPage(url: string): Page & { close(): void } {
    const page: Page = { events: [], broken: [] }
    const source = openEventSource(url, origin, {
      onEvent: (event) => page.events.push(event),
      onBroken: (state, status) => page.broken.push([state, status]),
    })
    return { ...page, close: () => source.close() }
  }

  const idsOf = ({ events }: Page) =>
    events
      .filter(({ type }) => type === 'message')
      .flatMap(({ data }) => (JSON.parse(data) as { id?: string }).id ?? [])

  it('watches with a ticket, and resumes with another where the first ended', async () => {
    const page = openPage(`${listener.url}/v1/payments:watch?minAmount=10&ticket=${await takeTicket()}`)
    await vi.waitUntil(() => page.events.length === 1, PATIENCE)
    const first = await store([10, 9, 11])
    await vi.waitUntil(() => page.events.length === 3, PATIENCE)
    expect(idsOf(page)).toEqual([first[0], first[2]])

    await listener.stop({ graceMs: 5_000 })
    listener = await running.service.listen({ host: '127.0.0.1', port: listener.port, corsOrigins: [origin] })
    await vi.waitUntil(() => page.broken.length > 1, PATIENCE)
    expect(page.events.at(-1)).toMatchObject({ type: 'error' })
    expect(JSON.parse(page.events.at(-1)?.data ?? '')).toMatchObject({ code: 'unavailable' })
    // EventSource reconnects by itself and is refused, or cannot connect: either way the page needs another ticket
    expect(page.broken[0]).toEqual(['connecting', undefined])
    expect(page.broken[1]?.[0]).toBe('closed')
    const missed = await store([12])

    const watchCursor = page.events.findLast(({ type }) => type === 'message')?.lastEventId ?? ''
    const again = openPage(
      `${listener.url}/v1/payments:watch?minAmount=10&watchCursor=${watchCursor}&ticket=${await takeTicket()}`,
    )
    await vi.waitUntil(() => again.events.length === 2, PATIENCE)
    expect(idsOf(again)).toEqual(missed)
    again.close()
  })

  it('that reconnects by itself is refused, since its ticket is used up', async () => {
    const target = `/v1/payments:watch?ticket=${await takeTicket()}`
    const get = () => fetch(listener.url + target, { headers: { origin, accept: 'text/event-stream' } })
    const first = await get()
    expect(first.status).toBe(200)
    expect(first.headers.get('access-control-allow-origin')).toBe(origin)
    await first.body?.cancel()
    const second = await get()
    expect([second.status, second.headers.get('www-authenticate')]).toEqual([401, 'ApiKey realm="waybill"'])
    expect(second.headers.get('access-control-allow-origin')).toBe(origin)
    expect(await second.json()).toMatchObject({ details: [{ reason: 'INVALID_TICKET' }] })
  })

  it('resumes after `Last-Event-ID`, whatever cursor its URL has', async () => {
    const early = await cursorNow()
    const [, second] = await store([21, 22])
    const { messages } = await watchBy('JSON lines', {
      url: running.url,
      request: { watchCursor: early },
      headers,
      onMessage: take(1),
    })
    const call = { url: running.url, request: { watchCursor: early }, onMessage: take(1) }
    const lastEventId = messages[0]?.watchCursor ?? ''
    const rest = await watchBy('server-sent events', { ...call, headers: { ...headers, 'last-event-id': lastEventId } })
    expect(rest.messages.map(({ id: of }) => of)).toEqual([second])
  })

  it.each([
    ['another route', '/payments', 401, 'MISSING_API_KEY'],
    ['another method', '/v1/payments:summarize', 401, 'MISSING_API_KEY'],
  ])('cannot use a ticket at %s', async (_, path, status, reason) => {
    const answer = await fetch(`${listener.url}${path}?ticket=${await takeTicket()}`)
    expect([answer.status, await answer.json()]).toMatchObject([status, { details: [{ reason }] }])
  })

  it('never finds its ticket in an answer, and no log has it', async () => {
    const ticket = await takeTicket()
    const answers = [
      await fetch(`${listener.url}/v1/payments:watch?network=BAS&ticket=${ticket}`),
      await fetch(`${listener.url}/v1/payments:watch?ticket=${ticket}&ticket=${ticket}`),
      await fetch(`${listener.url}/v1/payments:wach?ticket=${ticket}`),
      await fetch(`${listener.url}/v1/payments:watch?tickt=${ticket}`, { headers }),
      await fetch(`${listener.url}/v1/payments:watch?status=${ticket}`, { headers }),
    ]
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual([400, 401, 404, 400, 400])
    expect(JSON.stringify(running.logs.records)).toContain('WatchPayments')
    expect(JSON.stringify([texts, running.logs.records])).not.toContain(ticket)
  })
})

describe('readers that stop reading', () => {
  const fat = { fees: [{ type: 'PLATFORM', stage: 'SENDING', amount: '1', currency: 'x'.repeat(50_000) }] }
  let watchCursor: string

  beforeEach(async () => {
    watchCursor = await cursorNow()
  })

  /** Opens a watch and reads only the headers; the HTTP/2 window holds 64 KiB. */
  async function openStuck(port: number) {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    const stream = session.request({ ':path': `/v1/payments:watch?watchCursor=${watchCursor}`, ...headers })
    stream.on('error', () => {})
    const destroy = () => session.destroy()
    await once(stream, 'response')
    return { readRest: () => text(stream), destroy }
  }

  const slow = () =>
    running.logs.records.filter(({ fields }) => (fields as { reason?: string }).reason === 'READER_TOO_SLOW')

  it('are disconnected, hold at most a batch each, and delay nobody', async () => {
    const listener = await running.listen({ maxStallMs: 2_000, drainMs: 100 })
    await store(
      Array.from({ length: 100 }, () => 1),
      fat,
    )
    const before = process.memoryUsage()
    const stuck = await Promise.all(Array.from({ length: 50 }, () => openStuck(listener.port)))
    const call = { url: listener.url, request: { watchCursor }, headers, onMessage: take(100) }
    const { messages, error } = await watchBy('JSON lines', call)
    expect([messages.length, error]).toEqual([100, undefined])
    const during = process.memoryUsage()
    await vi.waitUntil(() => slow().length === 50, { timeout: 20_000 })
    // everything that is there for them would be 250 MB
    expect((during.rss - before.rss) / 2 ** 20).toBeLessThan(120)
    for (const { destroy } of stuck) destroy()
  }, 30_000)

  it('that read again in time get the reason of the end', async () => {
    const listener = await running.listen({ maxStallMs: 300, drainMs: 20_000 })
    const beside = await running.listen({ maxStallMs: 300, drainMs: 0 })
    await store([1, 1, 1, 1], fat)
    const known = slow().length
    const patient = await openStuck(listener.port)
    // got stuck later, and is disconnected without time to drain
    const other = await openStuck(beside.port)
    await vi.waitUntil(() => slow().length > known, { timeout: 10_000 })
    expect(await patient.readRest()).toMatch(/\n\{"error":\{"code":"resource_exhausted",.*READER_TOO_SLOW.*\}\}\n/)
    for (const { destroy } of [patient, other]) destroy()
  })
})
