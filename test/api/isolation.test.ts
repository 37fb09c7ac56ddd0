/**
 * No key reads or changes anything of another account. Every method of the definitions is called with every identifier that an
 * account has, by the keys of others: the answers must be, byte for byte, those of the same calls after that account's rows were
 * removed, and the calls must not change the rows. A new method or a new field of a request fails here until it has a probe.
 */
import { randomBytes } from 'node:crypto'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { type DescMethod, type DescService, fromJson } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { openWays, restRequestOf, type Ways } from '../support/clients/clients.ts'
import { insertPayments } from '../support/data/search-payments.ts'
import { seedPayments, type Values } from '../support/data/seed-payments.ts'
import { EVERY_SCOPE, NOW, startTestService, type TestService } from '../support/service.ts'
import { describeProbes, ownNames, type Probe } from './isolation-probes.ts'

const gen = join(import.meta.dirname, '../../gen')
const WAYS = ['Connect JSON without a client', 'gRPC'] as const

let running: TestService
let ways: Ways
let methods: ReadonlyMap<string, DescMethod>
/** All tables with the rows of the account. */
let dumpBefore = ''
let probes: Readonly<Record<string, readonly Probe[]>>

beforeAll(async () => {
  running = await startTestService()
  ways = openWays(running.url)
  methods = await readMethods()
  const begin = await takeWatchCursor()
  const values = await seedPayments(running)
  await insertOwnNames()
  await claimIdempotencyKey(values)
  await registerWallets(values)
  await storeWebhooks()
  await storeKeys()
  const cursors = { 'cursor.begin': begin, 'cursor.watch': await takeWatchCursor() }
  probes = describeProbes({ ...values, ...webhookIds, ...keyIds, ...(await takeCursors()), ...cursors })
})
afterAll(async () => {
  ways?.close()
  await running?.stop()
})

/** Every method of every service of ours, by its full name. */
async function readMethods(): Promise<Map<string, DescMethod>> {
  const files = globSync('payments/**/*_pb.js', { cwd: gen })
  const modules = await Promise.all(files.map((file) => import(join(gen, file)) as Promise<Record<string, unknown>>))
  const services = modules.flatMap((module) => Object.values(module)).filter(isService)
  return new Map(services.flatMap((service) => service.methods.map((method) => [fullName(method), method])))
}

function isService(value: unknown): value is DescService {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'service'
}

const fullName = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`

/** Gives the account's payments and requests names that no other account has. */
async function insertOwnNames(): Promise<void> {
  const shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
  await insertPayments(running.database.knex, [{ accountId: shop.id, final: true, payment: ownNames }])
  const { knex } = running.database
  const row = await knex('requests').where({ account_id: shop.id }).first()
  const names = { network: 'SHOPNET', payment_currency: 'BEADS-SHOPNET', invoice_currency: 'BEADS-SHOPNET' }
  await knex('requests').insert({
    ...row,
    ...names,
    ...Object.fromEntries(ownKeys.map((name) => [name, randomBytes(33)])),
  })
}

const ownKeys = ['request_id', 'payment_reference', 'topic'] as const

/** Calls as the account's own software does. */
async function claimIdempotencyKey({ payee }: Values): Promise<void> {
  const terms = { payee, amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
  const claimed = await fetch(`${running.url}/v1/request`, {
    method: 'POST',
    headers: { 'x-api-key': running.keys.shop, 'content-type': 'application/json', 'idempotency-key': 'order-1' },
    body: JSON.stringify({ ...terms, reference: 'INV-7' }),
  })
  if (!claimed.ok) throw new Error(await claimed.text())
}

async function registerWallets(values: Values): Promise<void> {
  for (const address of [values['wallet.funded'], values['wallet.empty']]) {
    const answer = await fetch(`${running.url}/v1/wallets`, {
      method: 'POST',
      headers: { 'x-api-key': running.keys.shop, 'content-type': 'application/json' },
      body: JSON.stringify({ address, note: 'of the shop' }),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }
}

const webhookIds = {
  'webhook.id': '7e000000-0000-4000-8000-00000000bbbb',
  'webhook.other': '7e000000-0000-4000-8000-00000000cccc',
}

/** Nothing is sent to their address. */
async function storeWebhooks(): Promise<void> {
  const { knex } = running.database
  const { id: account_id } = await createApiKeyRepository(knex).ensureAccount('shop')
  const row = {
    account_id,
    url: 'http://127.0.0.1:1/',
    kinds: ['payment.added'],
    filter: '',
    created_at: NOW,
    position: 0,
  }
  await knex('webhook_endpoints').insert(Object.values(webhookIds).map((id) => ({ ...row, id })))
}

const keyIds = {
  'key.id': '7e000000-0000-4000-8000-00000000dddd',
  'key.other': '7e000000-0000-4000-8000-00000000eeee',
}

/** Nobody has these keys. */
async function storeKeys(): Promise<void> {
  const repository = createApiKeyRepository(running.database.knex)
  const account = await repository.ensureAccount('shop')
  const terms = { account, scopes: ['payments:read'], callsPerMinute: 1, hint: 'wb_none', createdAt: NOW } as const
  await repository.change(async (keys) => {
    for (const id of Object.values(keyIds)) {
      const key = { ...terms, id, keyHash: randomBytes(32) }
      await keys.insert(key, { actor: 'ann@host', at: NOW })
      await keys.revoke(key, { actor: 'ann@host', at: NOW })
    }
  })
}

/** Cursors from the answers of the account. */
async function takeCursors(): Promise<Values> {
  const take = async (path: string, headers: Record<string, string> = { 'x-api-key': running.keys.shop }) => {
    const answer = await fetch(running.url + path, { headers })
    return ((await answer.json()) as { pagination: { nextCursor: string; prevCursor: string } }).pagination
  }
  const first = await take('/payments?limit=2')
  const second = await take(`/payments?cursor=${first.nextCursor}`)
  const requests = await take('/v1/request?limit=2')
  const asPlatform = { 'x-api-key': running.keys.platform, 'x-account': 'shop' }
  const keys = await take('/v1/keys?limit=1')
  const changes = await take('/v1/keys:changes?limit=1')
  const changesOfKey = await take(`/v1/keys:changes?limit=1&id=${keyIds['key.id']}`)
  const unmatched = await take('/v1/unmatched?limit=1', asPlatform)
  return {
    'cursor.next': first.nextCursor,
    'cursor.prev': second.prevCursor,
    'cursor.requests': requests.nextCursor,
    'cursor.keys': keys.nextCursor,
    'cursor.changes': changes.nextCursor,
    'cursor.changes.key': changesOfKey.nextCursor,
    'cursor.unmatched': unmatched.nextCursor,
  }
}

/** The present watchCursor of the account. */
async function takeWatchCursor(): Promise<string> {
  const answer = await fetch(`${running.url}/payments`, { headers: { 'x-api-key': running.keys.shop } })
  return ((await answer.json()) as { watchCursor: string }).watchCursor
}

/**
 * The answers of callers, in the order of the probes: over HTTP byte for byte, over the other protocols as the client gives them. Every caller
 * sends every probe over HTTP. Of several callers each also sends a probe over one other protocol, which differs by caller and by probe; a single
 * caller sends it over all.
 */
async function askAll(only: (method: DescMethod) => boolean, callers: readonly Caller[]): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  for (const [slot, caller] of callers.entries()) {
    for (const [name, list] of Object.entries(probes)) {
      const method = methodOf(name)
      if (!only(method)) continue
      for (const [place, probe] of list.entries()) {
        const at = `${caller.name}: ${name} ${probe.name}`
        answers.set(
          `${at} over HTTP`,
          withoutOwnKeys(name, await askOverHttp(method, probe, await caller.headers('HTTP'))),
        )
        if (method.methodKind !== 'unary') continue
        for (const way of callers.length === 1 ? WAYS : [WAYS[(slot + place) % WAYS.length] ?? WAYS[0]]) {
          const headers = { ...probe.headers, ...(await caller.headers(way)) }
          const { requestId, ...outcome } = await ways.named(way).ask({ method, request: probe.request, headers })
          expect(requestId).toMatch(/./)
          answers.set(
            `${at} over ${way}`,
            withoutOwnKeys(name, JSON.stringify(outcome).replaceAll(TICKETS, 'a ticket')),
          )
        }
      }
    }
  }
  return answers
}

/** Every caller has keys of its own, which others of its account made too. An answer stays whole where it names a key of the account. */
function withoutOwnKeys(name: string, answer: string): string {
  const isOfKeys =
    /KeysService.(?:GetOwnKey|ListKeys|ListKeyChanges)$/.test(name) && !ownKeyIds.some((id) => answer.includes(id))
  return isOfKeys ? (/"(?:reason|error)"/.test(answer) ? answer : 'own keys') : answer
}

/** Values that differ from call to call: ids, times, and how many calls are left. */
const VOLATILE_HEADERS = /^(?:x-request-id|date|.*ratelimit.*)$/

async function askOverHttp(method: DescMethod, probe: Probe, headers: Readonly<Record<string, string>>) {
  const { httpMethod, target, body } = restRequestOf(method, probe.request)
  const answer = await fetch(running.url + target, {
    method: httpMethod,
    body: body ?? null,
    headers: { ...probe.headers, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
  })
  const reported = [...answer.headers].filter(([name]) => !VOLATILE_HEADERS.test(name))
  return JSON.stringify([answer.status, reported, (await readAnswer(answer)).replaceAll(TICKETS, 'a ticket')])
}

/** Random values. */
const TICKETS = /wt_[0-9A-Za-z]{40}/g

/** The whole answer; of a watch, which has no end, the events of the past, or the present state. */
async function readAnswer(answer: Response): Promise<string> {
  let text = ''
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (/"type":"(?:HEARTBEAT|STATE)"/.test(text)) break
  }
  return text
}

function methodOf(name: string): DescMethod {
  const method = methods.get(name)
  if (method === undefined) throw new Error(`there is no method ${name}`)
  return method
}

interface Caller {
  readonly name: string
  headers(way: string): Promise<Readonly<Record<string, string>>>
}

/** Of all keys of the account. */
const ownKeyIds: string[] = []

const issued: string[] = []

/** A caller with a key of its own for each protocol, so that no limit of calls is reached. */
function callerOf(account: string, as?: string): Caller {
  const keys = new Map<string, Promise<string>>()
  const issue = async () => {
    const repository = createApiKeyRepository(running.database.knex)
    const platform = as === undefined ? [] : (['accounts:any', 'operations:read'] as const)
    const { key } = await issueApiKey(repository, { account, scopes: [...EVERY_SCOPE, ...platform], now: NOW })
    issued.push(key)
    return key
  }
  return {
    name: as === undefined ? account : `${account} as ${as}`,
    async headers(way) {
      const key = keys.get(way) ?? issue()
      keys.set(way, key)
      return { 'x-api-key': await key, ...(as !== undefined && { 'x-account': as }) }
    },
  }
}

const readsOnly = ({ idempotency }: DescMethod) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
const writes = (method: DescMethod) => !readsOnly(method)

/** All rows of an account, by table, also of tables that are added later. */
async function rowsOf(account: string): Promise<Record<string, string[]>> {
  const { knex } = running.database
  const { id } = await createApiKeyRepository(knex).ensureAccount(account)
  const rows: Record<string, string[]> = {}
  for (const table of await tablesOfAccounts()) {
    const found = await knex.raw(`select t::text as row from ?? t where account_id = ? order by 1`, [table, id])
    rows[table] = found.rows.map(({ row }: { row: string }) => row)
  }
  return rows
}

/** The tables with rows of accounts, except the keys, in which calls record their last use. */
async function tablesOfAccounts(): Promise<string[]> {
  return running.database
    .knex('information_schema.columns')
    .where({ table_schema: 'public', column_name: 'account_id' })
    .whereNot({ table_name: 'api_keys' })
    .orderBy('table_name')
    .pluck('table_name')
}

/** Every row of every table, as text. */
async function dumpTables(): Promise<string> {
  const { knex } = running.database
  const tables: string[] = await knex('information_schema.tables')
    .where({ table_schema: 'public', table_type: 'BASE TABLE' })
    .pluck('table_name')
  const dumps = await Promise.all(
    tables.map((table) => knex.raw(`select string_agg(t::text, ' ') as rows from ?? t`, [table])),
  )
  return dumps.map(({ rows: [{ rows }] }) => rows).join('\n')
}

async function deleteRowsOf(account: string): Promise<void> {
  const { knex } = running.database
  const { id } = await createApiKeyRepository(knex).ensureAccount(account)
  for (const table of await tablesOfAccounts()) await knex(table).where({ account_id: id }).delete()
}

describe('the probes', () => {
  it('cover every method of every service, and every field of every request', () => {
    expect(Object.keys(probes).toSorted()).toEqual([...methods.keys()].toSorted())
    for (const [name, list] of Object.entries(probes)) {
      const { input } = methodOf(name)
      for (const { request } of list) fromJson(input, request)
      const given = new Set(list.flatMap(({ request }) => Object.keys(request)))
      expect([name, [...given].toSorted()]).toEqual([name, input.fields.map(({ jsonName }) => jsonName).toSorted()])
    }
  })

  it('hold data of the account: its own key gets other answers than a stranger', async () => {
    const { keys } = running
    const nobody = callerOf('nobody-at-all')
    for (const [name, list] of Object.entries(probes)) {
      for (const probe of list) {
        if (probe.tellsNothing === true) continue
        const method = methodOf(name)
        const own = await askOverHttp(method, probe, { 'x-api-key': keys.shop })
        const strange = await askOverHttp(method, probe, await nobody.headers('HTTP'))
        expect(own, `${name} ${probe.name}`).not.toBe(strange)
      }
    }
  })
})

it('no other key reads, counts, infers or changes anything of the account', async () => {
  const readers = () => [callerOf('other'), callerOf('nobody'), callerOf('platform', 'other')]
  const before = await rowsOf('shop')
  for (const table of [
    'payments',
    'requests',
    'idempotency_keys',
    'refunds',
    'refund_wallets',
    'reference_topics',
    'webhook_endpoints',
  ]) {
    expect([table, before[table]?.length]).not.toEqual([table, 0])
  }

  const { knex } = running.database
  const shop = knex('accounts').select('id').where({ name: 'shop' })
  const readKeys = () =>
    knex('api_keys')
      .where('account_id', shop)
      .orderBy('id')
      .select(knex.raw("to_jsonb(api_keys) - 'last_used_at' as row"))
  const keysBefore = await readKeys()
  ownKeyIds.push(...keysBefore.map(({ row }: { row: { id: string } }) => row.id))
  const reads = await askAll(readsOnly, readers())
  const written = await askAll(writes, [callerOf('writer-1')])
  expect(await rowsOf('shop')).toEqual(before)
  expect(await readKeys()).toEqual(keysBefore)

  dumpBefore = await dumpTables()
  await deleteRowsOf('shop')
  const readsAlone = await askAll(readsOnly, readers())
  // Another account, since the first now has rows of its own; answers do not name the account.
  const writtenAlone = await askAll(writes, [callerOf('writer-2')])
  expect(reads.size).toBeGreaterThan(300)
  expect(Object.fromEntries(reads)).toEqual(Object.fromEntries(readsAlone))
  expect([...written.values()]).toEqual([...writtenAlone.values()])
}, 60_000)

it('no key can name another account, and existing and unknown accounts get the same answer', async () => {
  const headers = { 'x-api-key': running.keys.other }
  const method = methodOf('payments.v1.PaymentSearchService/SearchPayments')
  const ask = (account: string) =>
    askOverHttp(method, { name: account, request: {} }, { ...headers, 'x-account': account })
  expect(JSON.parse(await ask('shop'))[0]).toBe(403)
  expect(await ask('shop')).toBe(await ask('no-such-account'))
})

describe('keys', () => {
  const wrongPlaces: [string, (key: string) => [path: string, init: RequestInit]][] = [
    ['a key with a letter more', (key) => ['/payments', { headers: { 'x-api-key': `${key}x` } }]],
    ['a key with a prefix', (key) => ['/payments', { headers: { 'x-api-key': `Bearer ${key}` } }]],
    ['a key as another header', (key) => ['/payments', { headers: { authorization: `Bearer ${key}` } }]],
    ['a key as the account', (key) => ['/payments', { headers: { 'x-api-key': key, 'x-account': key } }]],
    ['a key in the query', (key) => [`/payments?x-api-key=${key}`, { headers: { 'x-api-key': key } }]],
    ['a key as the name of a parameter', (key) => [`/payments?${key}=1`, { headers: { 'x-api-key': key } }]],
    ['a key as a filter', (key) => [`/payments?txHash=${key}`, { headers: { 'x-api-key': key } }]],
    ['a key as a currency', (key) => [`/payments?currency=${key}`, { headers: { 'x-api-key': key } }]],
    ['a key as a payment', (key) => [`/v1/payments/${key}`, { headers: { 'x-api-key': key } }]],
    ['a key as a request', (key) => [`/v1/request/${key}`, { headers: { 'x-api-key': key } }]],
    [
      'a key in the body',
      (key) => [
        '/v1/request',
        {
          method: 'POST',
          body: `{"${key}":1,"payee":"${key}"}`,
          headers: { 'x-api-key': key, 'content-type': 'application/json' },
        },
      ],
    ],
    ['a key without a call', (key) => [`/nowhere?key=${key}`, {}]],
  ]

  it.each(wrongPlaces)('are in no error: %s', async (_, write) => {
    for (const key of [running.keys.other, running.keys.platform]) {
      const [path, init] = write(key)
      const answer = await fetch(running.url + path, init)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(await answer.text()).not.toContain(key.slice(8))
    }
  })

  it('are in no error and no log line of a call with an internal error', async () => {
    const { knex } = running.database
    const key = (await callerOf('other').headers('broken'))['x-api-key'] ?? ''
    await knex.raw('alter table api_keys rename to api_keys_away')
    try {
      const answer = await fetch(`${running.url}/payments`, { headers: { 'x-api-key': key } })
      expect(answer.status).toBe(500)
      expect(await answer.text()).not.toContain(key.slice(3))
    } finally {
      await knex.raw('alter table api_keys_away rename to api_keys')
    }
    expect(running.logs.records.some(({ level }) => level === 'error')).toBe(true)
  })

  it('are in no table and no log line', async () => {
    const keys = [...Object.values(running.keys), ...issued].map((key) => key.slice(3))
    expect(keys.length).toBeGreaterThan(15)
    const text = dumpBefore + (await dumpTables())
    expect(text).toContain('routes:read')
    const logged = running.logs.records.map((record) => inspect(record, { depth: null, maxStringLength: null })).join()
    expect(logged).toContain('SearchPayments')
    for (const key of keys) {
      for (const form of [key, Buffer.from(key).toString('hex'), Buffer.from(key).toString('base64').slice(0, 50)]) {
        expect(text.includes(form), 'in a table').toBe(false)
        expect(logged.includes(form), 'in a log line').toBe(false)
      }
    }
  })
})
