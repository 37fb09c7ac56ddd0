import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuth } from '../../src/auth/auth.ts'
import type { LimitState } from '../../src/auth/caller.ts'
import { MAX_ADDRESSES } from '../../src/auth/limit-addresses.ts'
import { createKeys, issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKey, type Scope } from '../../src/auth/rules/api-key.ts'
import { type ApiKeyRepository, createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createLeaseCalls } from '../../src/auth/sql/call-windows-repository.ts'
import { listAuditEntries } from '../../src/store/audit-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { revokeKey } from '../support/keys.ts'
import { recordLogs } from '../support/logs.ts'

const START = new Date('2026-03-01T12:00:00.000Z')
const HOUR_MS = 3_600_000

/** Long enough for a busy machine: a process must not fall back to counting by itself. */
const LEASE_TIMEOUT_MS = 60_000
const READ: readonly Scope[] = ['payments:read']

let database: TestDatabase
let repository: ApiKeyRepository
/** One clock for the database and all processes. */
let nowMs = START.getTime()
const now = () => new Date(nowMs)

beforeAll(async () => {
  database = await createTestDatabase()
  repository = createApiKeyRepository(database.knex)
})
afterAll(() => database.drop())

/** The authentication of one process of the service. */
function startProcess({ openCallsPerMinute = 0 } = {}) {
  const { authenticate } = createAuth({
    knex: database.knex,
    cursorSecret: Buffer.alloc(32),
    logger: recordLogs(),
    now,
    openCallsPerMinute,
    limitClock: { now, monotonicMs: () => nowMs },
    leaseTimeoutMs: LEASE_TIMEOUT_MS,
  })
  let reported: LimitState | undefined
  const call = async (apiKey: string, address = '192.0.2.1') => {
    reported = undefined
    const credentials = { apiKey, account: null, address: () => address }
    try {
      await authenticate(credentials, 'payments:read', (state) => {
        reported = state
      })
      return 'through'
    } catch (error) {
      return (error as { reason?: string }).reason ?? error
    }
  }
  const through = async (times: number, apiKey: string) => {
    const outcomes = await Promise.all(Array.from({ length: times }, () => call(apiKey)))
    expect(outcomes.filter((outcome) => outcome !== 'through' && outcome !== 'RATE_LIMITED')).toEqual([])
    return outcomes.filter((outcome) => outcome === 'through').length
  }
  return { call, through, reported: () => reported }
}

const issue = (terms: { callsPerMinute?: number; expiresAt?: Date } = {}) =>
  issueApiKey(repository, { account: 'acme', scopes: READ, now: now(), actor: 'ann@host', ...terms })

const rotate = (id: string, overlapMs: number) =>
  createKeys({ repository, now }).rotate({ id }, overlapMs, { actor: 'ann@host' })

const findById = async (id: string) => (await repository.findByIds([id]))[0]

/** The statements that run meanwhile. */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const statements: string[] = []
  const listen = ({ sql }: { sql: string }) => void statements.push(sql)
  database.knex.on('query', listen)
  try {
    await work()
  } finally {
    database.knex.off('query', listen)
  }
  return statements
}

describe('processes on one database', () => {
  it('share the limit of a key: they never pass more calls a minute, and at most a tenth fewer for each other process', async () => {
    const { key } = await issue({ callsPerMinute: 300 })
    const [first, second] = [startProcess(), startProcess()]
    expect(await second.call(key)).toBe('through')
    const counts = await Promise.all([first.through(400, key), second.through(100, key)])
    expect(1 + counts[0] + counts[1]).toBe(300)

    nowMs += 60_000
    expect(await second.call(key)).toBe('through')
    expect(second.reported()).toMatchObject({ policy: 'key', limit: 300, remaining: 299 })
    // The second process keeps the rest of its reserved calls.
    const through = await first.through(400, key)
    expect(through).toBe(300 - 30)
    expect(await second.through(400, key)).toBe(29)
    expect(await first.call(key)).toBe('RATE_LIMITED')
    expect(first.reported()).toMatchObject({ limit: 300, remaining: 0 })
  })

  it('seldom query the database, and never for a key that is refused', async () => {
    const { key } = await issue({ callsPerMinute: 3_000 })
    const { call, through } = startProcess()
    await call(key)
    const statements = await statementsOf(async () => {
      for (let i = 1; i < 3_000; i++) expect(await call(key)).toBe('through')
    })
    expect(statements.filter((sql) => sql.includes('call_windows')).length).toBeLessThan(75)
    expect(statements.length).toBeLessThan(76)
    expect(await statementsOf(() => through(500, key))).toEqual([])
  })
})

describe('the minute of a key', () => {
  const keyId = '00000000-0000-4000-8000-000000000001'

  it('follows the clock of the database', async () => {
    const lease = createLeaseCalls(database.knex)
    const { rows } = await database.knex.raw<{ rows: { left: number }[] }>(
      'select cast((60 - extract(epoch from clock_timestamp()) % 60) * 1000 as float8) as left',
    )
    const { granted, leftMs } = await lease({ keyId, limit: 100, wanted: 1 })
    expect(granted).toBe(10)
    const passedMs = ((rows[0]?.left ?? 0) - leftMs + 60_000) % 60_000
    expect(passedMs).toBeGreaterThanOrEqual(0)
    expect(passedMs).toBeLessThan(5_000)
  })

  it('begins at a second of its own, and ends when the clock is set back by more than a minute', async () => {
    const id = '00000011-0000-4000-8000-000000000002'
    let at = START
    const lease = createLeaseCalls(database.knex, { now: () => at })
    const take = async (wanted: number) => {
      const { granted, remaining, leftMs } = await lease({ keyId: id, limit: 10, wanted })
      return [granted, remaining, leftMs]
    }
    // The id begins with 17, so 17 seconds of its minute are over on the full minute.
    expect(await take(1)).toEqual([1, 9, 43_000])
    expect(await take(20)).toEqual([9, 0, 43_000])
    at = new Date(START.getTime() + 42_999)
    expect(await take(1)).toEqual([0, 0, 1])
    at = new Date(START.getTime() + 43_000)
    expect(await take(1)).toEqual([1, 9, 60_000])
    at = START
    expect(await take(1)).toEqual([1, 8, 103_000])
    at = new Date(START.getTime() - HOUR_MS)
    expect(await take(1)).toEqual([1, 9, 43_000])
  })
})

describe('expiry', () => {
  it('is exact to the millisecond, also in a process that has just seen the key', async () => {
    const { key } = await issue({ expiresAt: new Date(nowMs + 1_000) })
    const { call } = startProcess()
    expect(await call(key)).toBe('through')
    nowMs += 999
    expect(await call(key)).toBe('through')
    nowMs += 1
    expect(await call(key)).toBe('INVALID_API_KEY')
  })
})

describe('rotation', () => {
  it('accepts both keys during the overlap, then only the new one', async () => {
    const old = await issue({ callsPerMinute: 7 })
    const { call } = startProcess()
    expect(await call(old.key)).toBe('through')
    const fresh = await rotate(old.stored.id, HOUR_MS)
    const { account, scopes, callsPerMinute, expiresAt } = fresh.stored
    expect([account.name, scopes, callsPerMinute, expiresAt]).toEqual(['acme', READ, 7, undefined])
    const both = async () => [await call(old.key), await call(fresh.key)]
    nowMs += HOUR_MS - 1
    expect(await both()).toEqual(['through', 'through'])
    nowMs += 1
    expect(await both()).toEqual(['INVALID_API_KEY', 'through'])
  })

  it('ends the old key within 5 seconds without an overlap', async () => {
    const old = await issue()
    const { call } = startProcess()
    expect(await call(old.key)).toBe('through')
    await rotate(old.stored.id, 0)
    nowMs += 5_000
    expect(await call(old.key)).toBe('INVALID_API_KEY')
  })

  it('never lengthens the life of the old key, and gives the new one the same', async () => {
    const old = await issue({ expiresAt: new Date(nowMs + HOUR_MS) })
    nowMs += HOUR_MS / 2
    const fresh = await rotate(old.stored.id, 24 * HOUR_MS)
    expect(fresh.stored.expiresAt).toEqual(new Date(nowMs + HOUR_MS))
    expect((await findById(old.stored.id))?.expiresAt).toEqual(old.stored.expiresAt)
  })

  it.each([
    ['unknown', 'KEY_NOT_FOUND', async () => '00000000-0000-4000-8000-000000000000'],
    [
      'revoked',
      'KEY_NOT_IN_FORCE',
      async () => {
        const { stored } = await issue()
        await revokeKey(repository, stored.id, now())
        return stored.id
      },
    ],
    ['expired', 'KEY_NOT_IN_FORCE', async () => (await issue({ expiresAt: now() })).stored.id],
    [
      'replaced already',
      'KEY_NOT_IN_FORCE',
      async () => {
        const { stored } = await issue()
        await rotate(stored.id, HOUR_MS)
        return stored.id
      },
    ],
  ])('of a key that is %s is refused', async (_, reason, idOf) => {
    const id = await idOf()
    const before = await repository.list()
    await expect(rotate(id, 0)).rejects.toMatchObject({ reason })
    expect(await repository.list()).toEqual(before)
  })
})

describe('last use', () => {
  it('is recorded once a minute by a process, without delaying the calls', async () => {
    const { key, stored } = await issue()
    const lastUse = async () => (await findById(stored.id))?.lastUsedAt?.getTime()
    const { call } = startProcess()
    expect(await lastUse()).toBeUndefined()
    const firstMs = nowMs
    const updates = async (work: () => Promise<unknown>) =>
      (await statementsOf(work)).filter((sql) => sql.startsWith('update "api_keys"')).length
    expect(
      await updates(async () => {
        for (let i = 0; i < 20; i++) await call(key)
        await expect.poll(lastUse).toBe(firstMs)
        nowMs += 59_999
        await call(key)
      }),
    ).toBe(1)
    expect(await lastUse()).toBe(firstMs)
    nowMs += 1
    await call(key)
    await expect.poll(lastUse).toBe(nowMs)
    await repository.recordUse([stored.id], new Date(nowMs - HOUR_MS))
    expect(await lastUse()).toBe(nowMs)
  })

  it('does not include calls whose key was refused', async () => {
    const { key, stored } = await issue({ expiresAt: now() })
    await startProcess().call(key)
    expect((await findById(stored.id))?.lastUsedAt).toBeUndefined()
  })
})

describe('the audit log', () => {
  it('says who changed which key, when and how, without the key itself', async () => {
    const { key, stored } = await issueApiKey(repository, {
      account: 'audited',
      scopes: READ,
      now: START,
      callsPerMinute: 5,
      expiresAt: new Date(START.getTime() + HOUR_MS),
      actor: 'ann@host',
    })
    const later = new Date(START.getTime() + 1_000)
    const rotated = await createKeys({ repository, now: () => later }).rotate({ id: stored.id }, 60_000, {
      actor: 'bob@host',
    })
    const newId = rotated.stored.id
    expect(await revokeKey(repository, stored.id, later, 'cy@host')).toBe(true)
    expect(await revokeKey(repository, stored.id, later, 'cy@host')).toBe(false)
    const terms = { scopes: READ, callsPerMinute: 5 }
    const entries = await listAuditEntries(database.knex, { account: 'audited' })
    const id = expect.any(String) as string
    const bobs = { id, at: later, actor: 'bob@host', account: 'audited' }
    expect(entries).toEqual([
      {
        id,
        at: START,
        actor: 'ann@host',
        action: 'CREATE_KEY',
        keyId: stored.id,
        account: 'audited',
        details: { ...terms, expiresAt: '2026-03-01T13:00:00.000Z' },
      },
      {
        ...bobs,
        action: 'ROTATE_KEY',
        keyId: stored.id,
        details: { replacedBy: newId, oldExpiresAt: '2026-03-01T12:01:01.000Z' },
      },
      {
        ...bobs,
        action: 'CREATE_KEY',
        keyId: newId,
        details: { ...terms, expiresAt: '2026-03-01T13:00:01.000Z', replaces: stored.id },
      },
      { id, at: later, actor: 'cy@host', action: 'REVOKE_KEY', keyId: stored.id, account: 'audited', details: {} },
    ])
    expect(JSON.stringify(await listAuditEntries(database.knex))).not.toContain(key.slice(0, 12))
  })

  it('is written in the transaction of the change', async () => {
    const { stored } = await issue()
    const change = { actor: 'ann@host', at: now() }
    const count = async () => (await listAuditEntries(database.knex)).length
    const before = await count()
    const insert = repository.change((keys) => keys.insert(stored, change))
    await expect(insert).rejects.toThrow('api_keys')
    const replace = repository.change((keys) => keys.replace(stored, stored, now(), change))
    await expect(replace).rejects.toThrow('api_keys')
    expect(await count()).toBe(before)
    expect((await findById(stored.id))?.expiresAt).toBeUndefined()
  })
})

describe('wrong keys', () => {
  it('of one address are looked up no more often than its limit, and good keys from there still work', async () => {
    const { call, reported } = startProcess({ openCallsPerMinute: 20 })
    const good = await issue()
    expect(await call(good.key)).toBe('through')
    nowMs += 6_000
    const outcomes: unknown[] = []
    const statements = await statementsOf(async () => {
      for (let i = 0; i < 50; i++) outcomes.push(await call(createApiKey()))
    })
    expect(outcomes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'INVALID_API_KEY'))
    expect(outcomes.slice(20)).toEqual(Array.from({ length: 30 }, () => 'RATE_LIMITED'))
    // The minute began with the good key, which was unknown then and was not counted.
    expect(reported()).toEqual({ policy: 'address', limit: 20, remaining: 0, resetSeconds: 54 })
    expect(statements).toHaveLength(20)
    expect(await call(good.key)).toBe('through')
    expect(reported()).toMatchObject({ policy: 'key' })
    // A key that this process has not seen yet counts until it proves good.
    expect(await call((await issue()).key)).toBe('RATE_LIMITED')
    expect(await call((await issue()).key, '192.0.2.2')).toBe('through')
  })

  it('that were good once count again', async () => {
    const { call } = startProcess({ openCallsPerMinute: 2 })
    const { key } = await issue({ expiresAt: new Date(nowMs + 1) })
    expect(await call(key)).toBe('through')
    nowMs += 1
    const outcomes = [await call(key), await call(key), await call(key)]
    expect(outcomes).toEqual(['INVALID_API_KEY', 'INVALID_API_KEY', 'RATE_LIMITED'])
  })

  it('25,000 at once from as many addresses, after as many as the limiter remembers: few statements, bounded memory, and a good key among them', {
    timeout: 60_000,
  }, async () => {
    // 75,000 calls, each with a key of its own.
    const { call } = startProcess({ openCallsPerMinute: 300 })
    const good = await issue()
    let underWay = 0
    let mostUnderWay = 0
    const follow = () => {
      underWay += 1
      mostUnderWay = Math.max(mostUnderWay, underWay)
    }
    const finish = () => {
      underWay -= 1
    }
    const { knex } = database
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const heapBytes = () => {
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    const flood = async (from: number, count: number) => {
      const keys = Array.from({ length: count }, createApiKey)
      return Promise.all(keys.map((key, i) => call(key, `2001:db8:${(from + i).toString(16)}:0::/64`)))
    }
    const first = await flood(0, MAX_ADDRESSES)
    const beforeBytes = heapBytes()
    knex.on('query', follow).on('query-response', finish).on('query-error', finish)
    const statements = await statementsOf(async () => {
      const [second, goodOutcome] = await Promise.all([flood(MAX_ADDRESSES, 25_000), call(good.key)])
      expect(goodOutcome).toBe('through')
      expect(new Set([...first, ...second])).toEqual(new Set(['INVALID_API_KEY']))
    })
    knex.off('query', follow).off('query-response', finish).off('query-error', finish)
    // 500 keys at most a lookup; where the machine is busy, some begin with fewer.
    expect(statements.length).toBeLessThan((2 * 25_000) / 500)
    // One lookup at a time, beside the lease and the last use of the good key.
    expect(mostUnderWay).toBeLessThanOrEqual(3)
    // 2.1 MB; without the limit of addresses 5.7.
    expect(heapBytes() - beforeBytes).toBeLessThan(4 * 1024 * 1024)
  })
})
