import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { hashApiKey } from '../../src/auth/api-key.ts'
import { createAuth } from '../../src/auth/auth.ts'
import type { ProcessKey } from '../../src/auth/authenticate.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { type ApiKeyRepository, createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { recordLogs } from '../support/logs.ts'

// A ticket stands for the key that it was asked for with: once, for a minute, in whatever process.

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
  const auth = createAuth({ knex, logger: recordLogs(), now: () => now, processKey, openCallsPerMinute: 0 })
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

it('stands for its caller once', async () => {
  const process = startProcess()
  const caller = await makeCaller()
  const { ticket, expiresAt } = await process.issueTicket(caller)
  expect(ticket).toMatch(/^wt_[0-9A-Za-z]{40}$/)
  expect(expiresAt).toEqual(new Date('2026-03-01T12:01:00.000Z'))
  expect(await process.redeem(ticket)).toEqual(caller)
  expect(await reasonOf(process.redeem(ticket))).toBe('INVALID_TICKET')
})

it('is taken by one of many that try at once, in several processes', async () => {
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

it('is good for a minute, and is removed when another is made after that', async () => {
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
  ['is revoked', ({ keyId }) => repository.revoke(keyId, BEGIN)],
  ['is expired', ({ keyId }) => database.knex('api_keys').where({ id: keyId }).update({ expires_at: BEGIN })],
])('is good no more when its key %s, and no stream goes on with it', async (_, end) => {
  const process = startProcess()
  const caller = await makeCaller()
  const { ticket } = await process.issueTicket(caller)
  expect(await process.isKeyInForce(caller.keyId)).toBe(true)
  await end(caller)
  expect(await process.isKeyInForce(caller.keyId)).toBe(false)
  expect(await reasonOf(process.redeem(ticket))).toBe('INVALID_TICKET')
})

it.each([
  ['nothing', ''],
  ['an unknown one', `wt_${'a'.repeat(40)}`],
  ['a key', `wb_${'a'.repeat(40)}`],
  ['a megabyte', 'a'.repeat(1_000_000)],
])('is not %s', async (_, ticket) => {
  expect(await reasonOf(startProcess().redeem(ticket))).toBe('INVALID_TICKET')
})

it('stands for no other account than its own', async () => {
  const process = startProcess()
  const caller = await makeCaller()
  const [wrong, right] = [await process.issueTicket(caller), await process.issueTicket(caller)]
  expect(await reasonOf(process.redeem(wrong.ticket, 'other'))).toBe('ACCOUNT_NOT_ALLOWED')
  expect(await reasonOf(process.redeem(right.ticket, 'acme'))).toBe('through')
})

it('stands for the account that a platform key named', async () => {
  const process = startProcess()
  const { keyId } = await makeCaller('platform', ['payments:read', 'accounts:any'])
  const account = await repository.ensureAccount('acme')
  const { ticket } = await process.issueTicket({ account, keyId })
  expect(await process.redeem(ticket)).toEqual({ account, keyId })
})

it('has no scope that its key has not', async () => {
  const process = startProcess()
  const { ticket } = await process.issueTicket(await makeCaller('acme', ['requests:write']))
  expect(await reasonOf(process.redeem(ticket))).toBe('MISSING_SCOPE')
})

it("counts its call against the key's limit, and a bad one against the address", async () => {
  const auth = createAuth({ knex: database.knex, logger: recordLogs(), now: () => now, openCallsPerMinute: 1 })
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

it('is in the table as a hash alone', async () => {
  const { ticket } = await startProcess().issueTicket(await makeCaller())
  const { rows } = await database.knex.raw('select t::text as row from watch_tickets t')
  const text = JSON.stringify(rows)
  expect(text).toContain(hashApiKey(ticket).toString('hex'))
  expect(text).not.toContain(ticket.slice(3))
})

it("stands for the demo's key as well, in its process alone", async () => {
  const account = await repository.ensureAccount('demo')
  const demo = startProcess({ processKey: { key: 'demo', account } })
  const [first, second] = [
    await demo.issueTicket({ account, keyId: 'demo' }),
    await demo.issueTicket({ account, keyId: 'demo' }),
  ]
  expect(await reasonOf(demo.redeem(first.ticket))).toBe('through')
  expect(await reasonOf(startProcess().redeem(second.ticket))).toBe('INVALID_TICKET')
})
