/**
 * A database that hangs instead of failing: its processes are stopped by SIGSTOP, so that sockets stay open and nothing answers. A database that is
 * down: test/cli/bad-days.long.test.ts.
 */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { clientPids, fillPool, freeze } from '../support/data/freeze.ts'
import { silentLogger } from '../support/logs.ts'

const POOL_MAX = 6
const KEYS = 12

let database: TestDatabase
let admin: Knex
let listener: Listener
let keys: string[]
let thaw = () => {}

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: POOL_MAX, statementTimeoutMs: 60_000 })
  admin = createDatabase(database.connection, { poolMax: 1 })
  const { knex } = database
  const repository = createApiKeyRepository(knex)
  const terms = { scopes: ['payments:read', 'requests:read'], now: new Date(), callsPerMinute: 600 } as const
  keys = []
  for (let nth = 0; nth < KEYS; nth++) {
    keys.push((await issueApiKey(repository, { ...terms, account: `shop${nth}` })).key)
  }
})
beforeEach(async () => {
  // a service that has looked up no key yet
  const { knex } = database
  const service = await composeService({ knex, chains: [], logger: silentLogger, now: () => new Date() })
  listener = await service.listen({ host: '127.0.0.1', port: 0 })
})
afterEach(async () => {
  thaw()
  await listener?.stop({ graceMs: 0 })
})
afterAll(async () => {
  await admin?.destroy()
  await database?.drop()
})

interface Outcome {
  readonly status: number
  readonly tookMs: number
}

async function ask(path: string, init: RequestInit = {}): Promise<Outcome> {
  const startedAtMs = performance.now()
  const answer = await fetch(`${listener.url}${path}`, init)
  await answer.text()
  return { status: answer.status, tookMs: performance.now() - startedAtMs }
}

const search = (key = '') => ask('/payments', { headers: { 'x-api-key': key } })

const TIMEOUT_MS = 3_000

/** Asks for a request that does not exist, with one statement, and no longer than {@link TIMEOUT_MS}. */
const findRequest = (key = '') =>
  ask('/payments.v1.RequestsService/GetPaymentRequest', {
    method: 'POST',
    headers: {
      'x-api-key': key,
      'content-type': 'application/json',
      'connect-protocol-version': '1',
      'connect-timeout-ms': String(TIMEOUT_MS),
    },
    body: JSON.stringify({ paymentReference: '0x0123456789abcdef' }),
  })

describe('one of six connections hangs', () => {
  it('and every key is looked up; only the call whose own statement hangs fails', async () => {
    thaw = freeze((await fillPool(database.knex)).slice(-1))
    const first = await Promise.all(keys.map(search))
    expect(first.map(({ status }) => status)).toEqual(keys.map(() => 200))
    for (const { tookMs } of first) expect(tookMs).toBeLessThan(3_000)
    thaw()
    expect((await search(keys[0])).status).toBe(200)
  })

  it.each(['/readyz', '/healthz'])('and %s answers well within a second', async (path) => {
    thaw = freeze((await fillPool(database.knex)).slice(-1))
    for (let nth = 0; nth < 3; nth++) {
      const { status, tookMs } = await ask(path)
      expect(status).toBe(200)
      expect(tookMs).toBeLessThan(1_500)
    }
  })

  it('and a call that got it costs nobody else anything', async () => {
    for (const key of keys) expect((await search(key)).status).toBe(200)
    thaw = freeze((await fillPool(database.knex)).slice(-1))
    const answers = await Promise.all(keys.map(findRequest))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 504)).toHaveLength(1)
    expect(statuses.filter((status) => status === 404)).toHaveLength(KEYS - 1)
    for (const { tookMs } of answers) expect(tookMs).toBeLessThan(TIMEOUT_MS + 1_000)
  })

  it('and its place in the pool is taken by another, and nothing is left when it goes on', async () => {
    const pids = await fillPool(database.knex)
    thaw = freeze(pids.slice(-1))
    for (const key of keys) expect((await search(key)).status).toBe(200)
    const filled = await fillPool(database.knex)
    expect(filled).toHaveLength(POOL_MAX)
    expect(filled).not.toContain(pids.at(-1))
    thaw()
    await expect.poll(async () => new Set(await clientPids(admin))).toEqual(new Set(filled))
  })

  it('and open watches learn of changes in time', async () => {
    const stopping = new AbortController()
    const answer = await fetch(`${listener.url}/v1/payments:watch`, {
      headers: { 'x-api-key': keys[0] ?? '' },
      signal: stopping.signal,
    })
    const id = randomUUID()
    const seen = (async () => {
      const decoder = new TextDecoder()
      let reported = ''
      for await (const chunk of answer.body ?? []) {
        reported += decoder.decode(chunk, { stream: true })
        if (reported.includes(id)) return performance.now()
      }
      return Number.POSITIVE_INFINITY
    })()
    thaw = freeze((await fillPool(database.knex)).slice(-1))
    const line = {
      id,
      timestamp: '2026-11-01T12:00:00Z',
      amount: '1',
      currency: 'USDC-BASE',
      network: 'BASE',
      status: 'CONFIRMED',
    }
    const account = await createApiKeyRepository(admin).findAccount('shop0')
    if (account === undefined) throw new Error('there is no account shop0')
    const changedAtMs = performance.now()
    await importLines(Readable.from([Buffer.from(JSON.stringify(line))]), importPayments(admin, account))
    expect((await seen) - changedAtMs).toBeLessThan(5_000)
    stopping.abort()
  })
})
