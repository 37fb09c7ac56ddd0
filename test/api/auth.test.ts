import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuth } from '../../src/auth/auth.ts'
import type { Authenticate, ProcessKey } from '../../src/auth/authenticate.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKey, hashApiKey, isApiKey, type Scope } from '../../src/auth/rules/api-key.ts'
import { type ApiKeyRepository, createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { revokeKey } from '../support/keys.ts'
import { recordLogs } from '../support/logs.ts'

const NOW = new Date('2026-03-01T12:00:00Z')

let database: TestDatabase
let repository: ApiKeyRepository
let authenticate: AsCaller
let acmeKey: string
let platformKey: string

beforeAll(async () => {
  database = await createTestDatabase()
  repository = createApiKeyRepository(database.knex)
  authenticate = startProcess()
  acmeKey = (await issueApiKey(repository, { account: 'acme', scopes: ['routes:read'], now: NOW })).key
  platformKey = (
    await issueApiKey(repository, { account: 'platform', scopes: ['payments:read', 'accounts:any'], now: NOW })
  ).key
})
afterAll(() => database.drop())

type AsCaller = (
  credentials: Pick<Parameters<Authenticate>[0], 'apiKey' | 'account'>,
  scope: Scope,
) => ReturnType<Authenticate>

function startProcess(processKey?: ProcessKey): AsCaller {
  const processKeys = processKey === undefined ? [] : [processKey]
  const { authenticate } = createAuth({
    knex: database.knex,
    cursorSecret: Buffer.alloc(32),
    logger: recordLogs(),
    now: () => NOW,
    processKeys,
  })
  return (credentials, scope) => authenticate({ ...credentials, address: () => '192.0.2.1' }, scope, () => {})
}

function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no error',
    (error) => error.reason,
  )
}

it('an operator’s key, and no other, may see events of all accounts', async () => {
  const issue = async (...held: Scope[]) =>
    (await issueApiKey(repository, { account: 'ops', scopes: held, now: NOW })).key
  const [operator, platform, reader] = await Promise.all([
    issue('operations:read', 'chains:read'),
    issue('operations:read', 'accounts:any'),
    issue('chains:read'),
  ])
  const asOperator = authenticate({ apiKey: operator, account: null }, 'operations:read')
  expect((await asOperator).operates).toBe('ALL')
  const asPlatform = authenticate({ apiKey: platform, account: 'acme' }, 'operations:read')
  expect(await asPlatform).toMatchObject({ account: { name: 'acme' }, operates: 'ACCOUNT' })
  expect((await authenticate({ apiKey: reader, account: null }, 'chains:read')).operates).toBeUndefined()
})

describe('API keys', () => {
  it('have 40 random base62 characters', () => {
    const keys = new Set(Array.from({ length: 200 }, createApiKey))
    expect(keys.size).toBe(200)
    for (const key of keys) expect(key).toMatch(/^wb_[0-9A-Za-z]{40}$/)
  })

  it('are stored as hashes only', async () => {
    const { rows } = await database.knex.raw('select to_jsonb(k) as row from api_keys k')
    const text = JSON.stringify(rows)
    expect(text).toContain(hashApiKey(acmeKey).toString('hex'))
    expect(text).not.toContain(acmeKey)
    expect(text).not.toContain(acmeKey.slice(3, 20))
  })

  it('identify the account', async () => {
    const caller = await authenticate({ apiKey: acmeKey, account: null }, 'routes:read')
    expect(caller.account.name).toBe('acme')
    expect(await authenticate({ apiKey: acmeKey, account: 'acme' }, 'routes:read')).toEqual(caller)
  })

  it('stop working when revoked', async () => {
    const { key, stored } = await issueApiKey(repository, { account: 'acme', scopes: ['routes:read'], now: NOW })
    expect(await revokeKey(repository, stored.id, NOW)).toBe(true)
    expect(await revokeKey(repository, stored.id, NOW)).toBe(false)
    expect(await reasonOf(authenticate({ apiKey: key, account: null }, 'routes:read'))).toBe('INVALID_API_KEY')
  })

  it('are listed without the keys themselves', async () => {
    const listed = await repository.list('platform')
    expect(listed.map(({ account, hint, scopes }) => ({ account: account.name, hint, scopes }))).toEqual([
      { account: 'platform', hint: platformKey.slice(0, 7), scopes: ['payments:read', 'accounts:any'] },
    ])
  })

  it.each([
    ['no key', null, null, 'MISSING_API_KEY'],
    ['an empty key', '', null, 'MISSING_API_KEY'],
    ['a word', 'demo', null, 'INVALID_API_KEY'],
    ['an unknown key', `wb_${'a'.repeat(40)}`, null, 'INVALID_API_KEY'],
    ['a key with a character more', `wb_${'a'.repeat(41)}`, null, 'INVALID_API_KEY'],
    ['a key in a megabyte', 'a'.repeat(1_000_000), null, 'INVALID_API_KEY'],
  ] as const)('%s is refused', async (_, apiKey, account, reason) => {
    expect(await reasonOf(authenticate({ apiKey, account }, 'routes:read'))).toBe(reason)
  })

  it('are refused without the required scope', async () => {
    expect(await reasonOf(authenticate({ apiKey: acmeKey, account: null }, 'requests:write'))).toBe('MISSING_SCOPE')
  })

  it('cannot name another account', async () => {
    const refused = authenticate({ apiKey: acmeKey, account: 'platform' }, 'routes:read')
    expect(await reasonOf(refused)).toBe('ACCOUNT_NOT_ALLOWED')
  })
})

it('a caller has the share of its key', async () => {
  const terms = { account: 'acme', scopes: ['payments:read'], now: NOW } as const
  const share = async (given?: number) => {
    const { key } = await issueApiKey(repository, { ...terms, share: given })
    return (await authenticate({ apiKey: key, account: null }, 'payments:read')).share
  }
  expect([await share(0.25), await share()]).toEqual([0.25, undefined])
})

describe('platform keys', () => {
  it('act for the account that they name', async () => {
    const caller = await authenticate({ apiKey: platformKey, account: 'acme' }, 'payments:read')
    expect(caller.account.name).toBe('acme')
  })

  it.each([
    [null, 'MISSING_ACCOUNT'],
    ['', 'MISSING_ACCOUNT'],
    ['nobody', 'UNKNOWN_ACCOUNT'],
    ['a'.repeat(60_000), 'UNKNOWN_ACCOUNT'],
  ])('must name a known account, not %s', async (account, reason) => {
    expect(await reasonOf(authenticate({ apiKey: platformKey, account }, 'payments:read'))).toBe(reason)
  })
})

describe("a process's own key", () => {
  it('works in that process only, for its account, and is never stored', async () => {
    const account = await repository.ensureAccount('demo')
    const inDemo = startProcess({ key: 'demo', account })
    expect((await inDemo({ apiKey: 'demo', account: null }, 'payments:read')).account).toEqual(account)
    expect(await reasonOf(inDemo({ apiKey: 'demo', account: 'acme' }, 'payments:read'))).toBe('ACCOUNT_NOT_ALLOWED')
    expect(await reasonOf(authenticate({ apiKey: 'demo', account: null }, 'payments:read'))).toBe('INVALID_API_KEY')
    expect(await repository.list('demo')).toEqual([])
    expect((await inDemo({ apiKey: 'demo', account: null }, 'operations:read')).operates).toBe('ACCOUNT')
  })
})

it('isApiKey accepts keys only', () => {
  expect(isApiKey(createApiKey())).toBe(true)
  expect(isApiKey('demo')).toBe(false)
})
