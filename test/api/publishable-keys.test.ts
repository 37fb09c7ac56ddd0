/** A publishable key tried against every method of the definitions: it reads one request and its routes, from its own pages, and nothing else. */
import type { DescMethod, JsonObject } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { KeysService } from '../../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../../gen/payments/v1/operations_service_pb.js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { WebhooksService } from '../../gen/payments/v1/webhooks_service_pb.js'
import { composeService } from '../../src/app.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { restRequestOf, rpcPathOf } from '../support/clients/clients.ts'
import { issuePublishableKey, revokeKey } from '../support/keys.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

const SHOP = 'https://shop.example'
const methods = [
  RoutesService,
  PaymentSearchService,
  RequestsService,
  OperationsService,
  WebhooksService,
  KeysService,
].flatMap((each) => each.methods)
const FOR_PAGES = [
  'GetPaymentRoutes',
  'StreamPaymentRoutes',
  'GetPaymentOptions',
  'ListCurrencies',
  'GetPaymentCalldata',
  'GetPaymentRequest',
  'WatchPaymentRequest',
  'GetShop',
]

const TERMS = { amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }

let running: TestService
let key: string
let paymentReference: string
let address = 0

beforeAll(async () => {
  running = await startTestService()
  key = await issue('shop', [SHOP, 'https://www.shop.example'])
  const { chain, keys, url } = running
  await chain.fund(chain.tokens.USDC, chain.wallets[0], 1_000_000000n)
  const init = { method: 'POST', headers: { 'x-api-key': keys.shop, 'content-type': 'application/json' } }
  const more = { payee: chain.wallets[1], reference: 'INV-7', refundAddress: chain.wallets[2] }
  const created = await fetch(`${url}/v1/request`, { ...init, body: JSON.stringify({ ...TERMS, ...more }) })
  paymentReference = ((await created.json()) as { paymentReference: string }).paymentReference
})
afterAll(() => running?.stop())

async function issue(account: string, origins: readonly string[]): Promise<string> {
  const repository = createApiKeyRepository(running.database.knex)
  return (await issuePublishableKey(repository, { account, origins, now: NOW })).key
}

/** A listener that believes proxies, so that each call may come from an address of its own. */
async function openListener() {
  return running.service.listen({ host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.1'] })
}

interface Sent {
  readonly apiKey?: string
  readonly origin?: string
  readonly fetchSite?: string
  /** By default of nobody else. */
  readonly from?: string
}

const headersOf = ({ apiKey = key, origin, fetchSite, from = `192.0.2.${++address % 250}` }: Sent) => ({
  'x-api-key': apiKey,
  'x-forwarded-for': from,
  ...(origin !== undefined && { origin }),
  ...(fetchSite !== undefined && { 'sec-fetch-site': fetchSite }),
})

const wallet = () => running.chain.wallets[0]
/** Values for every field of a path. */
function requestFor(method: DescMethod): JsonObject {
  if (method.name === 'CreatePaymentRequest') return {}
  const values = { paymentReference, wallet: wallet(), address: wallet(), id: '00000000-0000-4000-8000-000000000001' }
  const names = new Set(
    method.input.fields.filter(({ fieldKind }) => fieldKind === 'scalar').map(({ jsonName }) => jsonName),
  )
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)))
}

interface Reported {
  readonly status: number
  readonly reason: string | undefined
  readonly text: string
}

/** Calls a method over a protocol that pages speak, and reads the first part of its answer. */
async function call(
  url: string,
  way: 'REST' | 'Connect' | 'gRPC-Web',
  method: DescMethod,
  sent: Sent,
): Promise<Reported> {
  const headers = headersOf(sent)
  const request = requestFor(method)
  const aborter = new AbortController()
  const { signal } = aborter
  const post = (type: string, body: Buffer) =>
    fetch(url + rpcPathOf(method), {
      method: 'POST',
      headers: { ...headers, 'content-type': type },
      body: new Uint8Array(body),
      signal,
    })
  const answer = await {
    REST() {
      const { httpMethod, target, body } = restRequestOf(method, request)
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      return fetch(url + target, { method: httpMethod, headers: { ...headers, ...type }, body: body ?? null, signal })
    },
    Connect() {
      const json = Buffer.from(JSON.stringify(request))
      return method.methodKind === 'unary'
        ? post('application/json', json)
        : post('application/connect+json', envelope(json))
    },
    'gRPC-Web': () => post('application/grpc-web+json', envelope(Buffer.from(JSON.stringify(request)))),
  }[way]()
  let text = `grpc-status-details-bin: ${answer.headers.get('grpc-status-details-bin') ?? ''}\n`
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (text.includes('"STATE"')) break
  }
  aborter.abort()
  return { status: answer.status, reason: reasonIn(text), text }
}

function envelope(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** The reason of an error, which gRPC-Web sends in a header or in the trailers at the end of the body. */
function reasonIn(text: string): string | undefined {
  const [, json] = /"reason":\s*"([A-Z_]+)",\s*"domain":\s*"waybill"/.exec(text) ?? []
  if (json !== undefined) return json
  const encoded = [...text.matchAll(/grpc-status-details-bin: ?([\w+/=]+)/g)].map(([, base64 = '']) => base64)
  const details = encoded.map((base64) => Buffer.from(base64, 'base64').toString('latin1')).join()
  return /[A-Z]{3,}(?:_[A-Z]+)+/.exec(details)?.[0]
}

describe.each(['REST', 'Connect', 'gRPC-Web'] as const)('over %s a publishable key', (way) => {
  let url: string
  let stop: () => Promise<void>
  beforeAll(async () => {
    const listener = await openListener()
    url = listener.url
    stop = () => listener.stop({ graceMs: 0 })
  })
  afterAll(() => stop?.())

  it.each(methods.filter(({ name }) => FOR_PAGES.includes(name)).map((method) => [method.name, method] as const))(
    'calls %s from its own pages alone, and sees nothing that is not for payers',
    async (_, method) => {
      const good = await call(url, way, method, { origin: SHOP })
      expect(good).toMatchObject({ status: 200, reason: undefined })
      for (const secret of ['INV-7', 'salt', 'requestId', 'refundAddress', 'refundReference', '"reference"']) {
        expect(good.text).not.toContain(secret)
      }
      expect(await call(url, way, method, { fetchSite: 'same-origin' })).toMatchObject({ reason: undefined })
      expect(await call(url, way, method, { origin: url, fetchSite: 'same-origin' })).toMatchObject({
        reason: undefined,
      })
      for (const sent of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: `${SHOP}.evil.example` },
        { origin: 'http://shop.example' },
        { origin: `${SHOP}:444` },
        { origin: 'https://evil.example', fetchSite: 'same-origin' },
        { origin: url },
        { origin: url, fetchSite: 'cross-site' },
        { origin: `${url}0`, fetchSite: 'same-origin' },
        { fetchSite: 'cross-site' },
        { fetchSite: 'none' },
        {},
      ]) {
        expect([sent, await call(url, way, method, sent)]).toMatchObject([sent, { reason: 'ORIGIN_NOT_ALLOWED' }])
      }
    },
  )

  it.each(methods.filter(({ name }) => !FOR_PAGES.includes(name)).map((method) => [method.name, method] as const))(
    'does not call %s',
    async (_, method) => {
      for (const sent of [{ origin: SHOP }, { fetchSite: 'same-origin' }, { origin: 'https://evil.example' }, {}]) {
        expect(await call(url, way, method, sent)).toMatchObject({ reason: 'NOT_FOR_PUBLISHABLE_KEYS' })
      }
    },
  )
})

describe('a publishable key', () => {
  const get = (url: string, sent: Sent, path = `/v1/request/${paymentReference}`) =>
    fetch(url + path, { headers: headersOf(sent) })
  const reasonOf = async (answer: Response) => {
    const { details } = (await answer.json()) as { details?: { reason?: string }[] }
    return details?.[0]?.reason
  }

  it('shows its shop, and the way back only to pages of its own origins', async () => {
    const { url, keys } = running
    const repository = createApiKeyRepository(running.database.knex)
    const shop = { name: 'Bay Books', color: '#0a7d4f' }
    const terms = { account: 'shop', now: NOW }
    const named = await issuePublishableKey(repository, { ...terms, origins: [SHOP], shop })
    const elsewhere = await issuePublishableKey(repository, { ...terms, origins: ['https://other.example'] })
    const shown = await get(url, { apiKey: named.key, origin: SHOP }, '/v1/shop')
    expect(await shown.json()).toEqual(shop)
    const bare = await get(url, { apiKey: elsewhere.key, origin: 'https://other.example' }, '/v1/shop')
    expect(await bare.json()).toEqual({})

    const more = { title: 'Two books', returnUrl: `${SHOP}/orders/7` }
    const metadata = { order: 'secret' }
    const body = JSON.stringify({ ...TERMS, payee: running.chain.wallets[1], ...more, metadata })
    const init = { method: 'POST', headers: { 'x-api-key': keys.shop, 'content-type': 'application/json' }, body }
    const created = (await (await fetch(`${url}/v1/request`, init)).json()) as { paymentReference: string }
    expect(created).toMatchObject({ ...more, metadata })
    const path = `/v1/request/${created.paymentReference}`
    expect(await (await get(url, { apiKey: named.key, origin: SHOP }, path)).json()).toMatchObject(more)
    const seen = await get(url, { apiKey: elsewhere.key, origin: 'https://other.example' }, path)
    const text = await seen.text()
    const { title, returnUrl } = JSON.parse(text) as { title?: string; returnUrl?: string }
    expect([title, returnUrl]).toEqual(['Two books', undefined])
    expect(text).not.toContain('secret')
  })

  it('does not see requests of other accounts, and names none', async () => {
    const other = await issue('other', [SHOP])
    const { url } = running
    expect(await reasonOf(await get(url, { apiKey: other, origin: SHOP }))).toBe('REQUEST_NOT_FOUND')
    const headers = { ...headersOf({ origin: SHOP }), 'x-account': 'other' }
    const named = await fetch(`${url}/v1/request/${paymentReference}`, { headers })
    expect(await reasonOf(named)).toBe('ACCOUNT_NOT_ALLOWED')
  })

  it('is counted by client address, however many keys it uses', async () => {
    const listener = await openListener()
    const second = await issue('shop', [SHOP])
    const answers = []
    for (let n = 0; n < 62; n++) {
      answers.push(await get(listener.url, { origin: SHOP, from: '198.51.100.1', apiKey: n % 2 === 0 ? key : second }))
    }
    expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 60 }, () => 200), 429, 429])
    expect(answers[0]?.headers.get('ratelimit-policy')).toBe('"address";q=60;w=60')
    expect(await get(listener.url, { origin: SHOP, from: '198.51.100.2' })).toMatchObject({ status: 200 })
    await listener.stop({ graceMs: 0 })
  })

  it('opens five streams an address, and half of all together', async () => {
    const listener = await running.service.listen({
      host: '127.0.0.1',
      port: 0,
      trustedProxies: ['127.0.0.1'],
      limits: { maxOpenStreams: 14 },
    })
    const aborter = new AbortController()
    const watch = async (from: string) => {
      const target = `${listener.url}/v1/request/${paymentReference}:watch`
      const answer = await fetch(target, { headers: headersOf({ origin: SHOP, from }), signal: aborter.signal })
      return answer.status === 200 ? 'open' : reasonOf(answer)
    }
    const opened = []
    for (let n = 0; n < 6; n++) opened.push(await watch('198.51.100.3'))
    for (let n = 0; n < 3; n++) opened.push(await watch('198.51.100.4'))
    expect(opened).toEqual([
      ...Array.from({ length: 5 }, () => 'open'),
      'TOO_MANY_PAGE_STREAMS',
      'open',
      'open',
      'TOO_MANY_PAGE_STREAMS',
    ])
    aborter.abort()
    await listener.stop({ graceMs: 0 })
  })

  it('is refused once it is revoked', async () => {
    const revoked = await issue('shop', [SHOP])
    const repository = createApiKeyRepository(running.database.knex)
    const stored = (await repository.list('shop')).find(({ hint }) => revoked.startsWith(hint))
    await revokeKey(repository, stored?.id ?? '', NOW)
    expect(await reasonOf(await get(running.url, { apiKey: revoked, origin: SHOP }))).toBe('INVALID_API_KEY')
  })
})

describe('a preflight', () => {
  const preflight = (origin: string, path = `/v1/request/${paymentReference}`) =>
    fetch(running.url + path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-api-key' },
    })

  it('of a key’s origin is answered on every path, at once for a new key', async () => {
    for (const path of ['/payments', '/payments.v1.RequestsService/GetPaymentRequest', undefined]) {
      const answer = await preflight(SHOP, path)
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe(SHOP)
      expect(answer.headers.get('access-control-allow-headers')).toBe('x-api-key')
      expect(answer.headers.get('vary')).toContain('origin')
    }
    const fresh = 'https://new.example'
    await issue('shop', [fresh])
    await vi.waitFor(async () => expect((await preflight(fresh)).status).toBe(204), { timeout: 5_000, interval: 200 })
  })

  it('of another process is enough: the first call there has its headers too', async () => {
    const options = { chains: [], logger: running.logs, now: () => NOW, openCallsPerMinute: 0 }
    const process = await composeService({ knex: running.database.knex, ...options })
    const other = await process.listen({ host: '127.0.0.1', port: 0 })
    const answer = await fetch(`${other.url}/payments`, { headers: { origin: SHOP } })
    await other.stop({ graceMs: 0 })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, SHOP])
  })

  it('of another origin says what to set, in its body and once in the log', async () => {
    for (let n = 0; n < 3; n++) {
      const answer = await preflight('https://unknown.example')
      expect(answer.status).toBe(403)
      expect(answer.headers.has('access-control-allow-origin')).toBe(false)
      const { message } = (await answer.json()) as { message: string }
      expect(message).toMatch(/"https:\/\/unknown\.example".*CORS_ORIGINS.*keys create --publishable --origins/)
    }
    const reported = running.logs.records.filter((record) =>
      JSON.stringify(record).includes('"origin":"https://unknown.example"'),
    )
    expect(reported).toHaveLength(1)
    expect(reported[0]).toMatchObject({ level: 'warn', message: expect.stringContaining('CORS_ORIGINS') as string })
  })
})
