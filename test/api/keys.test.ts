/** What keys may do to keys over the API: what they may not do changes nothing. */
import { inspect } from 'node:util'
import type { JsonObject } from '@bufbuild/protobuf'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { composeService } from '../../src/app.ts'
import { createAuth } from '../../src/auth/auth.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { hashApiKey, type Scope } from '../../src/auth/rules/api-key.ts'
import type { KeyTerms } from '../../src/auth/rules/key-terms.ts'
import { type ApiKeyRepository, createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { listAuditEntries } from '../../src/store/audit-repository.ts'
import { methodNamed, openWays } from '../support/clients/clients.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { issuePublishableKey, revokeKey } from '../support/keys.ts'
import { type LogRecorder, recordLogs } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'

const START = new Date('2026-03-01T12:00:00.000Z')
const DAY_S = 86_400
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

let database: TestDatabase
let repository: ApiKeyRepository
let logs: LogRecorder
let nowMs = START.getTime()
const now = () => new Date(nowMs)
const listeners: { url: string; stop: (options: { graceMs: number }) => Promise<void> }[] = []
let url: string

beforeAll(async () => {
  database = await createTestDatabase()
  repository = createApiKeyRepository(database.knex)
  logs = recordLogs()
  url = await startProcess()
})
afterAll(async () => {
  await Promise.all(listeners.map((listener) => listener.stop({ graceMs: 0 })))
  await database?.drop()
})

async function startProcess(demo?: Parameters<typeof composeService>[0]['demo']): Promise<string> {
  const { knex } = database
  const service = await composeService({ knex, chains: [], logger: logs, now, demo, openCallsPerMinute: 0 })
  const listener = await service.listen({ host: '127.0.0.1', port: 0 })
  listeners.push(listener)
  return listener.url
}

type Terms = Partial<KeyTerms> & { readonly account?: string }

const issue = ({ account = 'shop', scopes = ['keys:write', 'payments:read'], ...terms }: Terms = {}) =>
  issueApiKey(repository, { callsPerMinute: 0, ...terms, scopes, account, now: now() })

interface Json {
  readonly id: string
  readonly key: string
  readonly hint: string
  readonly state: string
  readonly rate?: number
  readonly lastUsedAt?: string
  readonly keys: readonly Json[]
  readonly changes: readonly object[]
  readonly pagination: {
    readonly limit: number
    readonly hasMore: boolean
    readonly nextCursor?: string
    readonly prevCursor?: string
  }
  readonly details?: readonly { readonly reason?: string }[]
}

interface Answered {
  readonly status: number
  readonly reason: string | undefined
  readonly text: string
  readonly json: Json
}

interface Sent {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly at?: string
}

/** POSTs a body, GETs without one. */
async function call(key: string, path: string, { body, headers, at = url }: Sent = {}): Promise<Answered> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(at + path, {
    ...init,
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
  })
  const text = await answer.text()
  const json = JSON.parse(text) as Json
  return { status: answer.status, reason: json.details?.[0]?.reason, text, json }
}

const create = (key: string, body: object, sent: Omit<Sent, 'body'> = {}) => call(key, '/v1/keys', { body, ...sent })
const rotate = (key: string, id: string, body: object = {}) => call(key, `/v1/keys/${id}:rotate`, { body })
const revoke = (key: string, id: string) => call(key, `/v1/keys/${id}:revoke`, { body: {} })
const page = async (key: string, query = '') => (await call(key, `/v1/keys${query}`)).json
const list = async (key: string) => (await page(key)).keys

/** All that is stored of keys, but for their last use. */
async function stored(): Promise<string> {
  const { rows } = await database.knex.raw("select to_jsonb(k) - 'last_used_at' as row from api_keys k order by id")
  return JSON.stringify([rows, await listAuditEntries(database.knex)])
}

/** What a key may not do, with the key that tries it. */
interface Row {
  /** Whose key tries it; default of the shop, with keys:write and payments:read. */
  readonly own?: Terms
  /** The key that is rotated or revoked; default none. */
  readonly other?: Terms
  readonly act: (key: string, otherId: string, ownId: string) => Promise<Answered>
  readonly status: number
  readonly reason: string
}

const READ: readonly Scope[] = ['payments:read']
const PLATFORM: readonly Scope[] = ['keys:write', 'payments:read', 'operations:read', 'accounts:any']
const inShop = { headers: { 'x-account': 'shop' } }
const inDays = (days: number) => ({ expiresAt: new Date(START.getTime() + days * DAY_S * 1_000) })
const creates =
  (body: object, sent?: Omit<Sent, 'body'>) =>
  (key: string): Promise<Answered> =>
    create(key, body, sent)
const rotates =
  (body: object = {}) =>
  (key: string, id: string): Promise<Answered> =>
    rotate(key, id, body)
const beyond = { status: 403, reason: 'KEY_EXCEEDS_OWN' }
const notFound = { status: 404, reason: 'KEY_NOT_FOUND' }
const refused = { status: 401, reason: 'INVALID_API_KEY' }

describe('what a key may not do; nothing gets in', () => {
  it.each<[string, Row]>([
    ['create a key with a scope more', { act: creates({ scopes: ['payments:read', 'requests:write'] }), ...beyond }],
    ['create a platform key', { act: creates({ scopes: ['payments:read', 'accounts:any'] }), ...beyond }],
    ['create a publishable key without its scopes', { act: creates({ origins: ['https://a.example'] }), ...beyond }],
    [
      'create an operator’s key as a platform',
      {
        own: { account: 'platform', scopes: PLATFORM },
        act: creates({ scopes: ['operations:read'] }, inShop),
        ...beyond,
      },
    ],
    [
      'create a platform key in another account',
      { own: { account: 'platform', scopes: PLATFORM }, act: creates({ scopes: PLATFORM }, inShop), ...beyond },
    ],
    [
      'create a key with a higher rate',
      { own: { callsPerMinute: 60 }, act: creates({ scopes: READ, rate: 61 }), ...beyond },
    ],
    [
      'create a key with the usual rate, which is higher',
      { own: { callsPerMinute: 60 }, act: creates({ scopes: READ }), ...beyond },
    ],
    [
      'create a key without a limit',
      { own: { callsPerMinute: 60 }, act: creates({ scopes: READ, rate: 0 }), ...beyond },
    ],
    ['create a key with a larger share', { act: creates({ scopes: READ, share: '0.2' }), ...beyond }],
    [
      'create a key that lives longer',
      { own: inDays(2), act: creates({ scopes: READ, expiresAt: '2026-03-05' }), ...beyond },
    ],
    ['create a key that never ends, if it ends', { own: inDays(2), act: creates({ scopes: READ }), ...beyond }],
    [
      'create a key for a bad origin',
      { act: creates({ origins: ['https://a.example/x'] }), status: 400, reason: 'INVALID_FIELD' },
    ],
    [
      'create a key in another account',
      {
        act: creates({ scopes: READ }, { headers: { 'x-account': 'other' } }),
        status: 403,
        reason: 'ACCOUNT_NOT_ALLOWED',
      },
    ],
    [
      'create a key twice by an idempotency-key',
      {
        act: creates({ scopes: READ }, { headers: { 'idempotency-key': 'a' } }),
        status: 400,
        reason: 'KEY_SHOWN_ONCE',
      },
    ],
    ['rotate a stronger key', { other: { scopes: ['payments:read', 'requests:write'] }, act: rotates(), ...beyond }],
    [
      'rotate a publishable key',
      {
        other: { scopes: ['routes:read', 'requests:read'], origins: ['https://a.example'] },
        act: rotates(),
        ...beyond,
      },
    ],
    ['rotate a platform key', { other: { scopes: ['payments:read', 'accounts:any'] }, act: rotates(), ...beyond }],
    [
      'rotate a key with a higher rate',
      { own: { callsPerMinute: 60 }, other: { scopes: READ, callsPerMinute: 61 }, act: rotates(), ...beyond },
    ],
    ['rotate a key with a larger share', { other: { scopes: READ, share: 0.2 }, act: rotates(), ...beyond }],
    [
      'rotate a key that never ends, if it ends',
      { own: inDays(2), other: { scopes: READ }, act: rotates(), ...beyond },
    ],
    ['rotate a key of another account', { other: { account: 'other', scopes: READ }, act: rotates(), ...notFound }],
    ['rotate an unknown key', { act: (key) => rotate(key, UNKNOWN), ...notFound }],
    [
      'rotate with too long an overlap',
      {
        other: { scopes: READ },
        act: rotates({ overlapSeconds: 30 * DAY_S + 1 }),
        status: 400,
        reason: 'INVALID_FIELD',
      },
    ],
    [
      'rotate twice by an idempotency-key',
      {
        other: { scopes: READ },
        act: (key, id) => call(key, `/v1/keys/${id}:rotate`, { body: {}, headers: { 'idempotency-key': 'a' } }),
        status: 400,
        reason: 'KEY_SHOWN_ONCE',
      },
    ],
    ['revoke a stronger key', { other: { scopes: ['requests:write'] }, act: revoke, ...beyond }],
    ['revoke a platform key', { other: { scopes: ['accounts:any'] }, act: revoke, ...beyond }],
    ['revoke a key of another account', { other: { account: 'other', scopes: READ }, act: revoke, ...notFound }],
    ['revoke an unknown key', { act: (key) => revoke(key, UNKNOWN), ...notFound }],
    [
      'revoke a key that it names by its hint',
      { other: { scopes: READ }, act: (key) => revoke(key, key.slice(0, 7)), ...notFound },
    ],
    [
      'as a platform: revoke a key of its own account in the name of another',
      {
        own: { account: 'platform', scopes: PLATFORM },
        act: (key, _, ownId) => call(key, `/v1/keys/${ownId}:revoke`, { body: {}, ...inShop }),
        ...notFound,
      },
    ],
    [
      'list without the scope',
      { own: { scopes: READ }, act: (key) => call(key, '/v1/keys'), status: 403, reason: 'MISSING_SCOPE' },
    ],
    [
      'create without the scope',
      { own: { scopes: READ }, act: creates({ scopes: READ }), status: 403, reason: 'MISSING_SCOPE' },
    ],
    [
      'revoke itself without the scope',
      { own: { scopes: READ }, act: (key, _, ownId) => revoke(key, ownId), status: 403, reason: 'MISSING_SCOPE' },
    ],
  ])('%s', async (_, { own, other, act, status, reason }) => {
    const [maker, target] = [await issue(own), other === undefined ? undefined : await issue(other)]
    await issue({ account: 'other' })
    const before = await stored()
    const answer = await act(maker.key, target?.stored.id ?? '', maker.stored.id)
    expect([answer.status, answer.reason]).toEqual([status, reason])
    expect(await stored()).toBe(before)
  })

  it('do anything with a publishable key', async () => {
    const { key } = await issuePublishableKey(repository, {
      account: 'shop',
      now: now(),
      origins: ['https://a.example'],
    })
    for (const path of ['/v1/keys', '/v1/keys:changes', '/v1/keys:own']) {
      expect(await call(key, path, { headers: { origin: 'https://a.example' } })).toMatchObject({
        status: 403,
        reason: 'NOT_FOR_PUBLISHABLE_KEYS',
      })
    }
  })

  it('rotate a key that was revoked, has ended or was rotated before', async () => {
    const { key } = await issue()
    const [revoked, ended, rotated] = [await issue(), await issue(inDays(0)), await issue()]
    await revokeKey(repository, revoked.stored.id, now())
    const successor = await rotate(key, rotated.stored.id)
    const before = await stored()
    for (const { stored } of [revoked, ended, rotated]) {
      expect(await rotate(key, stored.id)).toMatchObject({ status: 400, reason: 'KEY_NOT_IN_FORCE' })
    }
    expect(await stored()).toBe(before)
    expect((await rotate(key, rotated.stored.id)).text).toContain(`${successor.json.id} has replaced it`)
    expect((await rotate(key, successor.json.id)).status).toBe(200)
  })

  it('make more keys than 100 in force', async () => {
    const { key, stored: maker } = await issue({ account: 'many' })
    const others = await Promise.all(Array.from({ length: 98 }, () => issue({ account: 'many' })))
    await revokeKey(repository, others[0]?.stored.id ?? '', now())
    for (let n = 0; n < 2; n++) expect((await create(key, { scopes: READ })).status).toBe(200)
    const before = await stored()
    for (const answer of [await create(key, { scopes: READ }), await rotate(key, maker.id)]) {
      expect(answer).toMatchObject({ status: 400, reason: 'TOO_MANY_KEYS' })
    }
    expect(await stored()).toBe(before)
  })
})

describe('a key that has ended', () => {
  it('manages no keys from that moment on, also where a process still knows it as valid', async () => {
    const { key, stored: own } = await issue()
    expect((await call(key, '/payments')).status).toBe(200)
    await revokeKey(repository, own.id, now())
    const before = await stored()
    expect((await call(key, '/payments')).status).toBe(200)
    for (const answer of [await create(key, { scopes: READ }), await rotate(key, own.id), await revoke(key, own.id)]) {
      expect(answer).toMatchObject(refused)
    }
    expect(await stored()).toBe(before)
  })

  it('makes no key while it is being revoked', async () => {
    const { key, stored: own } = await issue()
    const count = async () => (await repository.list('shop')).length
    const before = await count()
    const revoking = await database.knex.transaction()
    await revoking('api_keys').where({ id: own.id }).update({ revoked_at: now() })
    const creating = create(key, { scopes: READ })
    await vi.waitFor(async () => {
      const waiting = await database.knex.raw(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and query like '%for no key update%'`,
      )
      expect(waiting.rows).toHaveLength(1)
    }, PATIENCE)
    await revoking.commit()
    expect(await creating).toMatchObject(refused)
    expect(await count()).toBe(before)
  })

  it('is refused by every process within 5 seconds, and after the overlap at once', async () => {
    const { key: maker } = await issue()
    const [revoked, rotated] = [await issue(), await issue()]
    const limitClock = { now, monotonicMs: () => nowMs }
    const processes = [1, 2].map(() =>
      createAuth({ knex: database.knex, cursorSecret: Buffer.alloc(32), logger: logs, now, limitClock }),
    )
    const outcomes = (key: string) =>
      Promise.all(
        processes.map(({ authenticate }) =>
          authenticate({ apiKey: key, account: null, address: () => '192.0.2.1' }, 'payments:read', () => {}).then(
            () => 'through',
            ({ reason }) => reason,
          ),
        ),
      )
    expect(await outcomes(revoked.key)).toEqual(['through', 'through'])
    expect((await revoke(maker, revoked.stored.id)).status).toBe(200)
    expect((await rotate(maker, rotated.stored.id, { overlapSeconds: 60 })).status).toBe(200)
    expect(await outcomes(rotated.key)).toEqual(['through', 'through'])
    nowMs += 5_000
    expect(await outcomes(revoked.key)).toEqual(['INVALID_API_KEY', 'INVALID_API_KEY'])
    nowMs += 54_999
    expect(await outcomes(rotated.key)).toEqual(['through', 'through'])
    nowMs += 1
    expect(await outcomes(rotated.key)).toEqual(['INVALID_API_KEY', 'INVALID_API_KEY'])
  })
})

describe('keys over the API', () => {
  it('are created with all that the command gives, and shown in one answer alone', async () => {
    const { key: maker } = await issue({ account: 'acme', share: 0.5 })
    const terms = { scopes: ['payments:read'], rate: 60, share: '0.25', note: 'export', expiresAt: '2027-12-31' }
    const { json, status } = await create(maker, terms)
    expect([status, json]).toEqual([
      200,
      {
        ...terms,
        id: expect.any(String),
        hint: json.key.slice(0, 7),
        origins: [],
        state: 'IN_FORCE',
        createdAt: now().toISOString().replace('.000', ''),
        expiresAt: '2027-12-31T23:59:59.999Z',
        key: expect.stringMatching(/^wb_[0-9A-Za-z]{40}$/),
      },
    ])
    expect((await call(json.key, '/payments')).status).toBe(200)
    const { key: shown, ...listed } = json
    const rotated = await rotate(maker, json.id, { overlapSeconds: 0 })
    expect(rotated.json).toMatchObject({ scopes: ['payments:read'], rate: 60, share: '0.25', note: 'export' })
    const found = async () => (await list(maker)).find(({ id }) => id === json.id)
    await vi.waitFor(async () => expect((await found())?.lastUsedAt).toBeDefined(), PATIENCE)
    const keys = [await found()]
    expect(keys[0]).toMatchObject({
      ...listed,
      state: 'EXPIRED',
      expiresAt: now().toISOString().replace('.000', ''),
      replacedBy: rotated.json.id,
    })
    const [row] = await database.knex('api_keys').where({ id: json.id })
    expect(row.key_hash.equals(hashApiKey(shown))).toBe(true)
    const { rows } = await database.knex.raw(
      `select table_name as name from information_schema.tables where table_schema = 'public'`,
    )
    const dumps = await Promise.all(
      rows.map(({ name }: { name: string }) => database.knex.raw('select t::text from ?? t', [name])),
    )
    const changes = await call(maker, '/v1/keys:changes')
    const again = await revoke(maker, rotated.json.id)
    const said = [dumps.map((dump) => dump.rows), keys, changes.text, again.text, logs.records]
    for (const secret of [shown, rotated.json.key]) {
      expect(inspect(said, { depth: null, maxArrayLength: null, maxStringLength: null })).not.toContain(secret.slice(7))
    }
  })

  it('are publishable for origins, with the shop of the checkout page', async () => {
    const { key } = await issue({ account: 'pages', scopes: ['keys:write', 'routes:read', 'requests:read'] })
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    const shop = { name: 'Bay Books', color: '#0A7D4F', cornerRadius: 8 }
    const logo = Buffer.from(svg).toString('base64')
    const { json } = await create(key, { origins: ['https://a.example'], ...shop, logo })
    const seen = { ...shop, color: '#0a7d4f', logo: `data:image/svg+xml;base64,${logo}` }
    expect(json).toMatchObject({ scopes: ['routes:read', 'requests:read'], shop: seen })
    expect([json.rate, json.key.slice(0, 4)]).toEqual([undefined, 'wbp_'])
    const shown = await call(json.key, '/v1/shop', { headers: { origin: 'https://a.example' } })
    expect(shown.json).toEqual(seen)
  })

  it('are revoked once and for all, and listed: those in force first, each newest first', async () => {
    const { key, stored: own } = await issue({ account: 'listed' })
    nowMs += 1_000
    const second = await create(key, { scopes: READ })
    nowMs += 1_000
    const third = await create(key, { scopes: READ })
    const revoked = await revoke(key, third.json.id)
    nowMs += 1_000
    expect((await revoke(key, third.json.id.toUpperCase())).json).toEqual(revoked.json)
    expect((await list(key)).map(({ id, state }) => [id, state])).toEqual([
      [second.json.id, 'IN_FORCE'],
      [own.id, 'IN_FORCE'],
      [third.json.id, 'REVOKED'],
    ])
    expect((await revoke(key, own.id)).json.state).toBe('REVOKED')
    expect(await call(key, '/v1/keys:changes', { at: await startProcess() })).toMatchObject(refused)
  })

  it('are listed by pages, forward and back, also those that end meanwhile', async () => {
    const { key } = await issue({ account: 'paged' })
    // Of equal times, and of three kinds.
    for (let n = 0; n < 60; n++) {
      const { stored } = await issue({ account: 'paged', ...(n % 3 === 0 && inDays(n % 2)) })
      if (n % 3 === 1) await revokeKey(repository, stored.id, now())
      if (n % 7 === 0) nowMs += 1
    }
    const { keys: all } = await page(key, '?limit=100')
    expect(all).toHaveLength(61)
    const whole = all.map(({ id }) => id)
    const ended = all.map(({ state }) => state !== 'IN_FORCE')
    expect(ended.indexOf(true)).toBe(ended.filter((each) => !each).length)
    const byDefault = await page(key)
    expect([byDefault.keys.length, byDefault.pagination.limit]).toEqual([20, 20])
    const before = nowMs
    let at = await page(key, '?limit=7')
    const pages = [at.keys]
    // Keys with two days end: they keep their places.
    nowMs += 2 * DAY_S * 1_000
    while (at.pagination.nextCursor !== undefined) {
      expect(at.pagination).toMatchObject({ limit: 7, hasMore: true })
      at = await page(key, `?cursor=${at.pagination.nextCursor}`)
      pages.push(at.keys)
    }
    expect(pages.flat().map(({ id }) => id)).toEqual(whole)
    expect(at.pagination.hasMore).toBe(false)
    const back = [at.keys]
    while (at.pagination.prevCursor !== undefined) {
      at = await page(key, `?cursor=${at.pagination.prevCursor}`)
      back.unshift(at.keys)
    }
    expect(back.map((each) => each.map(({ id }) => id))).toEqual(pages.map((each) => each.map(({ id }) => id)))
    const wider = await page(key, `?cursor=${byDefault.pagination.nextCursor}&limit=1000`)
    expect([wider.keys.length, wider.pagination.limit]).toEqual([41, 100])
    nowMs = before
  })

  it('say of themselves what they may do, whatever that is', async () => {
    for (const scopes of [['chains:read'], ['operations:read'], ['requests:write', 'keys:write']] as const) {
      const { key, stored: own } = await issue({ scopes, callsPerMinute: 60, note: 'mine', ...inDays(9) })
      const { json, text } = await call(key, '/v1/keys:own')
      const { id, hint } = own
      expect(json).toMatchObject({ id, hint, scopes, rate: 60, note: 'mine', state: 'IN_FORCE' })
      expect(text).not.toContain(key)
      await revokeKey(repository, id, now())
      expect(await call(key, '/v1/keys:own')).toMatchObject(refused)
    }
    const { key, stored: own } = await issue({ account: 'platform', scopes: PLATFORM })
    expect(await call(key, '/v1/keys:own')).toMatchObject({ status: 400, reason: 'MISSING_ACCOUNT' })
    expect((await call(key, '/v1/keys:own', inShop)).json).toMatchObject({ id: own.id, scopes: PLATFORM })
    expect(await call('', '/v1/keys:own')).toMatchObject({ status: 401, reason: 'MISSING_API_KEY' })
  })

  it.each([
    ['?limit=-1', 'INVALID_LIMIT'],
    ['?limit=many', 'INVALID_LIMIT'],
    ['?limit=1.5', 'INVALID_LIMIT'],
    ['?limit=99999999999', 'INVALID_LIMIT'],
    ['?cursor=', 'INVALID_CURSOR'],
    ['?cursor=AAAA', 'INVALID_CURSOR'],
    ['?cursor=OTHERS', 'INVALID_CURSOR'],
    ['?cursor=TAMPERED', 'INVALID_CURSOR'],
    ['?state=IN_FORCE', 'UNKNOWN_PARAMETER'],
    ['?limit=1&limit=2', 'DUPLICATE_PARAMETER'],
  ])('are not listed by %s: %s', async (query, reason) => {
    const cursorOf = async (account: string) => {
      const { key } = await issue({ account })
      await issue({ account })
      return { key, cursor: (await page(key, '?limit=1')).pagination.nextCursor ?? '' }
    }
    const [own, foreign] = [await cursorOf('lists'), await cursorOf('others')]
    const { cursor } = own
    const sent = query
      .replace('OTHERS', foreign.cursor)
      .replace('TAMPERED', `${cursor.slice(0, -2)}${cursor.endsWith('A') ? 'B' : 'A'}${cursor.at(-1)}`)
    expect(await call(own.key, `/v1/keys${sent}`)).toMatchObject({ status: 400, reason })
  })

  it('have their changes listed, newest first, with the key that made them', async () => {
    const { key, stored: own } = await issue({ account: 'audited' })
    const made = await create(key, { scopes: READ })
    const successor = await rotate(key, made.json.id)
    await revokeKey(repository, made.json.id, now())
    await issue({ account: 'other' })
    const changes = async (query = '') => (await call(key, `/v1/keys:changes${query}`)).json
    const at = now().toISOString().replace('.000', '')
    const { changes: all, pagination } = await changes()
    expect([all, pagination]).toEqual([
      [
        { at, action: 'REVOKED', keyId: made.json.id, scopes: [] },
        { at, action: 'CREATED', keyId: successor.json.id, madeBy: own.id, scopes: READ, replaces: made.json.id },
        { at, action: 'ROTATED', keyId: made.json.id, madeBy: own.id, scopes: [], replacedBy: successor.json.id },
        { at, action: 'CREATED', keyId: made.json.id, madeBy: own.id, scopes: READ },
        { at, action: 'CREATED', keyId: own.id, scopes: ['keys:write', 'payments:read'] },
      ],
      { limit: 20, hasMore: false },
    ])
    expect((await changes(`?id=${made.json.id.toUpperCase()}`)).changes).toEqual([all[0], all[2], all[3]])
    expect((await changes(`?id=${own.id}`)).changes).toEqual([all[4]])
    expect((await changes(`?id=${UNKNOWN}`)).changes).toEqual([])
  })

  const OTHER_KEY = '00000000-0000-4000-8000-00000000000b'

  /** Changes of these accounts, alternately of two keys, numbered, among entries that are no changes of keys. */
  async function fillLog(accounts: readonly string[], from: number, to: number): Promise<void> {
    const rows = Array.from({ length: to - from }, (_, at) => from + at).flatMap((n) =>
      accounts.flatMap((account) => {
        const row = { at: now(), actor: 'ann@host', key_id: n % 2 === 0 ? UNKNOWN : OTHER_KEY, account }
        const action = ['CREATE_KEY', 'ROTATE_KEY', 'REVOKE_KEY'][n % 3]
        const changed = { ...row, action, details: { replaces: `${account} ${n}` } }
        return n % 5 === 0 ? [changed, { ...row, action: 'UPDATE_REQUEST', details: {} }] : [changed]
      }),
    )
    await database.knex('audit_log').insert(rows)
  }

  interface Changes {
    readonly changes: readonly { readonly keyId: string; readonly replaces: string }[]
    readonly pagination: Json['pagination']
  }

  it.each([
    ['REST', 'all changes', {}],
    ['gRPC', 'all changes', {}],
    ['REST', 'one key', { id: OTHER_KEY }],
    ['gRPC', 'one key', { id: OTHER_KEY }],
  ])('have their changes paged, forward and back, while others are made, over %s: %s', async (over, what, asked) => {
    const account = `paged-${over}-${what}`.toLowerCase().replace(' ', '-')
    const { key, stored: own } = await issue({ account })
    await fillLog([account, 'beside'], 0, 250)
    const ways = openWays(url)
    const ask = async (request: JsonObject) => {
      const way = ways.named(over)
      const outcome = await way.ask({ method: methodNamed('ListKeyChanges'), request, headers: { 'x-api-key': key } })
      expect(outcome.error).toBeUndefined()
      return outcome.answer as unknown as Changes
    }
    const madeOf = ({ changes }: Changes) => changes.map(({ keyId, replaces }) => replaces ?? keyId)
    let made = 250
    const arrive = () => fillLog(['beside', account], made, ++made)
    const everything = () =>
      Array.from({ length: made }, (_, n) => n)
        .filter((n) => what === 'all changes' || n % 2 === 1)
        .toReversed()
        .map((n) => `${account} ${n}`)
        .concat(what === 'all changes' ? own.id : [])
    const whole = everything()
    let at = await ask({ ...asked, limit: 7 })
    const pages = [madeOf(at)]
    while (at.pagination.nextCursor !== undefined) {
      expect(at.pagination).toMatchObject({ limit: 7, hasMore: true })
      await arrive()
      at = await ask({ cursor: at.pagination.nextCursor, ...(pages.length % 2 === 0 && asked) })
      pages.push(madeOf(at))
    }
    expect(at.pagination.hasMore).toBe(false)
    expect(pages.flat()).toEqual(whole)
    const back = [madeOf(at)]
    while (at.pagination.prevCursor !== undefined) {
      await arrive()
      at = await ask({ cursor: at.pagination.prevCursor })
      back.unshift(madeOf(at))
    }
    expect(back.flat()).toEqual(everything())
    expect(everything().length).toBeGreaterThan(whole.length + 10)
    const wider = await ask({ ...asked, limit: 1_000 })
    expect([wider.changes.length, wider.pagination.limit]).toEqual([100, 100])
    ways.close()
  })

  it.each([
    ['limit=-1', 'INVALID_LIMIT'],
    ['limit=many', 'INVALID_LIMIT'],
    ['limit=1.5', 'INVALID_LIMIT'],
    ['limit=99999999999', 'INVALID_LIMIT'],
    ['cursor=', 'INVALID_CURSOR'],
    ['cursor=AAAA', 'INVALID_CURSOR'],
    ['cursor=TAMPERED', 'INVALID_CURSOR'],
    ['cursor=OTHERS', 'INVALID_CURSOR'],
    ['cursor=KEYS', 'INVALID_CURSOR'],
    ['cursor=ALL&id=FIRST', 'INVALID_CURSOR'],
    ['cursor=OF_FIRST&id=SECOND', 'INVALID_CURSOR'],
    ['cursor=OTHERS_OF_FIRST&id=FIRST', 'INVALID_CURSOR'],
    ['cursor=ALL&id=mine', 'KEY_NOT_FOUND'],
    ['cursor=AAAA&id=mine', 'INVALID_CURSOR'],
    ['cursor=ALL&cursor=ALL', 'DUPLICATE_PARAMETER'],
    ['state=IN_FORCE', 'UNKNOWN_PARAMETER'],
  ])('do not have their changes listed by %s: %s', async (query, reason) => {
    const cursorsOf = async (account: string) => {
      const { key } = await issue({ account })
      await fillLog([account], 0, 5)
      const cursorAt = async (path: string) => (await call(key, path)).json.pagination.nextCursor ?? ''
      const all = await cursorAt('/v1/keys:changes?limit=1')
      const ofFirst = await cursorAt(`/v1/keys:changes?limit=1&id=${UNKNOWN}`)
      return { key, all, ofFirst, cursorAt }
    }
    const [own, foreign] = [await cursorsOf('lists-changes'), await cursorsOf('others-changes')]
    await issue({ account: 'lists-changes' })
    const values = {
      TAMPERED: `${own.all.slice(0, -2)}${own.all.at(-2) === 'A' ? 'B' : 'A'}${own.all.at(-1)}`,
      OTHERS: foreign.all,
      KEYS: await own.cursorAt('/v1/keys?limit=1'),
      ALL: own.all,
      OF_FIRST: own.ofFirst,
      OTHERS_OF_FIRST: foreign.ofFirst,
      FIRST: UNKNOWN,
      SECOND: OTHER_KEY,
    }
    expect(Object.values(values)).not.toContain('')
    const sent = query.replaceAll(/[A-Z_]{3,}\b/g, (name) => values[name as keyof typeof values] ?? name)
    const path = `/v1/keys:changes?${sent}`
    expect(await call(own.key, path)).toMatchObject({ status: reason === 'KEY_NOT_FOUND' ? 404 : 400, reason })
    expect((await call(own.key, `/v1/keys?cursor=${own.all}`)).reason).toBe('INVALID_CURSOR')
  })

  it('have pages of changes that read no more of the log than they show, and cursors that count no others', async () => {
    const { key } = await issue({ account: 'long' })
    await database.knex.raw(
      `insert into audit_log (at, actor, action, account)
       select now(), 'ann@host', 'ROTATE_KEY', case when n < 2000 then 'long' else 'longer-' || n % 3 end
       from generate_series(1, 20000) n`,
    )
    await database.knex.raw('vacuum analyze audit_log')
    const statements: { sql: string; bindings: Knex.RawBinding[] }[] = []
    const note = (query: (typeof statements)[number]) => query.sql.includes('"audit_log"') && statements.push(query)
    database.knex.on('query', note)
    const first = await call(key, '/v1/keys:changes?limit=5')
    const next = await call(key, `/v1/keys:changes?cursor=${first.json.pagination.nextCursor}`)
    const { prevCursor = '' } = next.json.pagination
    await call(key, `/v1/keys:changes?cursor=${prevCursor}`)
    database.knex.off('query', note)
    expect(statements).toHaveLength(3)
    // Of many changes, all old; of few; of none.
    for (const account of ['long', 'audited', 'nobody-at-all']) {
      for (const { sql, bindings } of statements) {
        const explain = `explain (analyze, costs off, timing off, summary off) ${sql.replaceAll(/\$\d+/g, '?')}`
        const named = bindings.map((each) => (each === 'long' ? account : each))
        const { rows } = await database.knex.raw(explain, named)
        const plan = rows.map((row: { 'QUERY PLAN': string }) => row['QUERY PLAN']).join('\n')
        expect(plan).toContain('audit_log_account')
        // A few may be sorted.
        expect(plan).not.toMatch(account === 'long' ? /Sort|Seq Scan|Rows Removed/ : /Seq Scan|Rows Removed|pkey/)
      }
    }
    const ids = (await listAuditEntries(database.knex, { account: 'long' })).map(({ id }) => id)
    const carried = Buffer.from(prevCursor, 'base64url').subarray(16).toString('utf8')
    expect(carried).toContain('"limit":5')
    expect(ids.filter((id) => id.length > 2 && carried.includes(`"${id}"`))).toEqual([])
  })

  it('of one account are managed by a platform that names it, and belong to it', async () => {
    const { key, stored: own } = await issue({ account: 'platform', scopes: PLATFORM })
    await issue({ account: 'tenant' })
    const headers = { 'x-account': 'tenant' }
    const made = await create(key, { scopes: READ }, { headers })
    expect(made.status).toBe(200)
    expect((await call(made.json.key, '/payments')).status).toBe(200)
    const { json } = await call(key, '/v1/keys:changes', { headers })
    expect(json.changes[0]).toMatchObject({ keyId: made.json.id, madeBy: own.id })
    expect((await repository.list('tenant')).map(({ id }) => id)).toContain(made.json.id)
    const own2 = await create(key, { scopes: PLATFORM }, { headers: { 'x-account': 'platform' } })
    expect(own2.status).toBe(200)
  })

  it('replace each other at the same moment without an error of the service', async () => {
    for (let n = 0; n < 10; n++) {
      const [a, b] = [await issue(), await issue()]
      const answers = await Promise.all([
        rotate(a.key, b.stored.id),
        rotate(b.key, a.stored.id),
        rotate(a.key, a.stored.id),
        revoke(b.key, a.stored.id),
      ])
      for (const { status, reason } of answers) {
        // A key that was replaced makes none that lives longer.
        expect([undefined, 'KEY_NOT_IN_FORCE', 'INVALID_API_KEY', 'KEY_EXCEEDS_OWN']).toContain(reason)
        expect(status).toBeLessThan(500)
      }
    }
  })

  it('of a demo are made by its key, which makes none that reaches beyond its account', async () => {
    const publishable = { key: `wbp_${'d'.repeat(40)}`, origins: ['http://localhost:3000'] }
    const at = await startProcess({ account: 'demo', publishable })
    const demo = (path: string, body?: object) => call('demo', path, { at, ...(body && { body }) })
    const made = await demo('/v1/keys', { scopes: ['payments:read', 'keys:write'] })
    expect(made.status).toBe(200)
    expect((await repository.list('demo')).map(({ id }) => id)).toEqual([made.json.id])
    expect((await demo('/v1/keys:changes')).json.changes).toMatchObject([{ keyId: made.json.id, madeBy: 'demo' }])
    for (const scopes of [['accounts:any'], ['operations:read'], ['chains:read', 'operations:read']]) {
      expect(await demo('/v1/keys', { scopes })).toMatchObject(beyond)
    }
    expect(await demo('/v1/keys/demo:rotate', {})).toMatchObject(notFound)
    expect(await create('demo', { scopes: READ })).toMatchObject(refused)
  })
})
