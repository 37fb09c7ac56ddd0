import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createAuth } from '../../src/auth/auth.ts'
import type { ProcessKey } from '../../src/auth/authenticate.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { hashApiKey } from '../../src/auth/rules/api-key.ts'
import { type ApiKeyRepository, createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { revokeKey } from '../support/keys.ts'
import { recordLogs } from '../support/logs.ts'

// A ticket replaces the key that it was created with: once, for a minute, in any process.

const BEGIN = new Date('2026-03-01T12:00:00.000Z')

let database: TestDatabase
let repository: ApiKeyRepository
let now = BEGIN

beforeAll(async () => {
  database = await createTestDatabase()
  repository = createApiKeyRepository(database.knex)
})
afterAll(() => database.drop())
beforeEach(() => {
  now = BEGIN
})

function startProcess({
  knex = database.knex,
  processKey,
}: {
  knex?: TestDatabase['knex']
  processKey?: ProcessKey
} = {}) {
  const processKeys = processKey === undefined ? [] : [processKey]
  const auth = createAuth({
    knex,
    cursorSecret: Buffer.alloc(32),
    logger: recordLogs(),
    now: () => now,
    processKeys,
    openCallsPerMinute: 0,
  })
  const redeem = (ticket: string, account: string | null = null) => {
    const credentials = { apiKey: null, ticket, account, address: () => '192.0.2.1' }
    return auth.authenticate(credentials, 'payments:read', () => {})
  }
  return { ...auth, redeem }
}

async function makeCaller(account = 'acme', scopes: Parameters<typeof issueApiKey>[1]['scopes'] = ['payments:read']) {
  const { stored } = await issueApiKey(repository, { account, scopes, now: BEGIN, callsPerMinute: 0 })
  return { account: stored.account, keyId: stored.id }
}

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'through',
    (error) => error.reason as unknown,
  )

it('authenticates its caller once', async () => {
  const process = startProcess()
  const caller = await makeCaller()
  const { ticket, expiresAt } = await process.issueTicket(caller)
  expect(ticket).toMatch(/^wt_[0-9A-Za-z]{40}$/)
  expect(expiresAt).toEqual(new Date('2026-03-01T12:01:00.000Z'))
  expect(await process.redeem(ticket)).toEqual(caller)
  expect(await reasonOf(process.redeem(ticket))).toBe('INVALID_TICKET')
})

it('is accepted once when many use it at the same time, in several processes', async () => {
  const other = createDatabase(database.connection)
  try {
    const processes = [startProcess(), startProcess({ knex: other })]
    const { ticket } = await startProcess().issueTicket(await makeCaller())
    const tries = Array.from({ length: 10 }, () => processes.map(({ redeem }) => reasonOf(redeem(ticket))))
    const outcomes = await Promise.all(tries.flat())
    expect(outcomes.filter((outcome) => outcome === 'through')).toHaveLength(1)
    expect(outcomes.filter((outcome) => outcome === 'INVALID_TICKET')).toHaveLength(19)
  } finally {
    await other.destroy()
  }
})

it('expires after a minute, and is deleted when a later one is created', async () => {
  const process = startProcess()
  const caller = await makeCaller()
  const [late, unused] = [await process.issueTicket(caller), await process.issueTicket(caller)]
  now = new Date('2026-03-01T12:00:59.999Z')
  expect(await reasonOf(process.redeem(unused.ticket))).toBe('through')
  now = new Date('2026-03-01T12:01:00.000Z')
  expect(await reasonOf(process.redeem(late.ticket))).toBe('INVALID_TICKET')
  now = new Date('2026-03-01T12:01:00.001Z')
  const { ticket } = await process.issueTicket(caller)
  const hashes = await database.knex('watch_tickets').pluck<Buffer[]>('ticket_hash')
  expect(hashes.map(String)).toEqual([String(hashApiKey(ticket))])
})

it.each<[string, (caller: { account: { name: string }; keyId: string }) => Promise<unknown>]>([
  ['is revoked', ({ keyId }) => revokeKey(repository, keyId, BEGIN)],
  ['is expired', ({ keyId }) => database.knex('api_keys').where({ id: keyId }).update({ expires_at: BEGIN })],
])('is refused once its key %s, and the key no longer counts as valid', async (_, end) => {
  const process = startProcess()
  const caller = await makeCaller()
  const { ticket } = await process.issueTicket(caller)
  expect(await process.isKeyInForce(caller.keyId)).toBe(true)
  await end(caller)
  expect(await process.isKeyInForce(caller.keyId)).toBe(false)
  expect(await reasonOf(process.redeem(ticket))).toBe('INVALID_TICKET')
})

it.each([
  ['an empty ticket', ''],
  ['an unknown ticket', `wt_${'a'.repeat(40)}`],
  ['a key', `wb_${'a'.repeat(40)}`],
  ['a megabyte of text', 'a'.repeat(1_000_000)],
])('%s is refused', async (_, ticket) => {
  expect(await reasonOf(startProcess().redeem(ticket))).toBe('INVALID_TICKET')
})

it('is valid for its own account alone', async () => {
  const process = startProcess()
  const caller = await makeCaller()
  const [wrong, right] = [await process.issueTicket(caller), await process.issueTicket(caller)]
  expect(await reasonOf(process.redeem(wrong.ticket, 'other'))).toBe('ACCOUNT_NOT_ALLOWED')
  expect(await reasonOf(process.redeem(right.ticket, 'acme'))).toBe('through')
})

it('is valid for the account that a platform key named', async () => {
  const process = startProcess()
  const { keyId } = await makeCaller('platform', ['payments:read', 'accounts:any'])
  const account = await repository.ensureAccount('acme')
  const { ticket } = await process.issueTicket({ account, keyId })
  expect(await process.redeem(ticket)).toEqual({ account, keyId })
})

it('has no scope that its key lacks', async () => {
  const process = startProcess()
  const { ticket } = await process.issueTicket(await makeCaller('acme', ['requests:write']))
  expect(await reasonOf(process.redeem(ticket))).toBe('MISSING_SCOPE')
})

it("counts against the key's limit, and an invalid one against the client address", async () => {
  const auth = createAuth({
    knex: database.knex,
    cursorSecret: Buffer.alloc(32),
    logger: recordLogs(),
    now: () => now,
    openCallsPerMinute: 1,
  })
  const { stored } = await issueApiKey(repository, {
    account: 'acme',
    scopes: ['payments:read'],
    now,
    callsPerMinute: 1,
  })
  const caller = { account: stored.account, keyId: stored.id }
  const redeem = (ticket: string) => {
    const credentials = { apiKey: null, ticket, account: null, address: () => '192.0.2.2' }
    return reasonOf(auth.authenticate(credentials, 'payments:read', () => {}))
  }
  const tickets = [await auth.issueTicket(caller), await auth.issueTicket(caller)]
  expect(await redeem(tickets[0]?.ticket ?? '')).toBe('through')
  expect(await redeem(tickets[1]?.ticket ?? '')).toBe('RATE_LIMITED')
  expect(await redeem('bad')).toBe('INVALID_TICKET')
  expect(await redeem('bad')).toBe('RATE_LIMITED')
})

it('is stored as a hash alone', async () => {
  const { ticket } = await startProcess().issueTicket(await makeCaller())
  const { rows } = await database.knex.raw('select t::text as row from watch_tickets t')
  const text = JSON.stringify(rows)
  expect(text).toContain(hashApiKey(ticket).toString('hex'))
  expect(text).not.toContain(ticket.slice(3))
})

it("replaces the demo's key as well, within the demo's process", async () => {
  const account = await repository.ensureAccount('demo')
  const demo = startProcess({ processKey: { key: 'demo', account } })
  const [first, second] = [
    await demo.issueTicket({ account, keyId: 'demo' }),
    await demo.issueTicket({ account, keyId: 'demo' }),
  ]
  expect(await reasonOf(demo.redeem(first.ticket))).toBe('through')
  expect(await reasonOf(startProcess().redeem(second.ticket))).toBe('INVALID_TICKET')
})
