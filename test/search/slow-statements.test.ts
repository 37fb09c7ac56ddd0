import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { createPaymentsServices } from '../../src/api/services/payments-services.ts'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createPaymentSearch } from '../../src/search/page/payment-search.ts'
import { createSummarizePayments } from '../../src/search/totals/summarize-payments.ts'
import { methodNamed, openWays, type Ways } from '../support/clients/clients.ts'
import { authenticateGood } from '../support/clients/echo-service.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  chains,
  generatePayments,
  insertPayments,
  type StoredPayment,
  tokens,
} from '../support/data/search-payments.ts'
import { recordLogs } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'

/** Statements that exceed their timeout, and summaries with too many groups, over every protocol. */

/** So many slots that no call waits. */
const allAtOnce = { maxSearches: 20, maxSearchesPerKey: 20, maxSummaries: 20, maxSummariesPerKey: 20 }

let database: TestDatabase
const stack = new AsyncDisposableStack()

beforeAll(async () => {
  database = stack.adopt(await createTestDatabase(), (each) => each.drop())
})
afterAll(() => stack.disposeAsync())

/** Locks the tables: while the work runs, every statement on payments or requests waits. */
async function whileLocked<T>(body: () => Promise<T>): Promise<T> {
  return database.knex.transaction(async (trx) => {
    await trx.raw('lock table payments, requests in access exclusive mode')
    return body()
  })
}

async function statementsWaiting(): Promise<number> {
  const { rows } = await database.knex.raw<{ rows: unknown[] }>(
    `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}

const opened = (listener: Listener): Ways => {
  stack.defer(() => listener.stop({ graceMs: 0 }))
  return stack.adopt(openWays(listener.url), (ways) => ways.close())
}

describe('a statement that exceeds the statement timeout', () => {
  let ways: Ways
  let url: string
  let key: string

  beforeAll(async () => {
    const hasty = createDatabase(database.connection, { statementTimeoutMs: 200 })
    stack.defer(() => hasty.destroy())
    const logger = recordLogs()
    const service = await composeService({ knex: hasty, chains: [], logger, now: () => new Date() })
    const listener = await service.listen({ host: '127.0.0.1', port: 0, limits: allAtOnce })
    url = listener.url
    ways = opened(listener)
    const terms = { account: 'shop', scopes: ['payments:read', 'requests:read'], callsPerMinute: 0 } as const
    key = (await issueApiKey(createApiKeyRepository(database.knex), { ...terms, now: new Date() })).key
  })

  it.each([
    ['SearchPayments', {}],
    ['SearchPayments', { includeTotal: 'EXACT', minAmount: '1' }],
    ['GetPayment', { id: '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11' }],
    ['SummarizePayments', { groupBy: ['DAY'] }],
    ['ListPaymentRequests', {}],
    ['SummarizePaymentRequests', {}],
    ['GetPaymentRequest', { paymentReference: '0x00000000000000ff' }],
  ] as const)('%s %o answers 504 with a reason, the same over every protocol', async (name, request) => {
    const method = methodNamed(name)
    const ask = { method, request: request as Record<string, string>, headers: { 'x-api-key': key } }
    await whileLocked(async () => {
      const answers = await Promise.all(ways.all.map(async (way) => ({ name: way.name, ...(await way.ask(ask)) })))
      for (const { name: way, httpStatus = 504, error } of answers) {
        expect([way, httpStatus, error]).toMatchObject([
          way,
          504,
          {
            code: 'deadline_exceeded',
            message: 'the database did not answer in time; ask for less, or try again later',
            info: { reason: 'DATABASE_TIMEOUT' },
          },
        ])
      }
      await expect.poll(statementsWaiting).toBe(0)
    })
    // with so short a timeout, a pause of the machine could end the statement as well
    await vi.waitFor(async () => {
      const { error } = await ways.named('REST').ask(ask)
      expect(error?.info).not.toMatchObject({ reason: 'DATABASE_TIMEOUT' })
    }, PATIENCE)
  })

  it('ends an export before its first payment with 504 as well', async () => {
    await whileLocked(async () => {
      const answer = await fetch(`${url}/v1/payments:export`, { headers: { 'x-api-key': key } })
      expect(answer.status).toBe(504)
      expect(await answer.text()).toContain('DATABASE_TIMEOUT')
    })
  })
})

describe('a summary', () => {
  const GROUPS = 10_001
  const summarize = async (request: object, timeoutMs?: number) => {
    const search = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 1) })
    const parseFilter: typeof search.parseFilter = (...asked) => search.parseFilter(...asked)
    const options = { knex: database.knex, parseFilter, timeoutMs }
    const services = createPaymentsServices({ payments: { summarize: createSummarizePayments(options) } } as never)
    const listener = await serveApi({
      host: '127.0.0.1',
      port: 0,
      services,
      authenticate: authenticateGood,
      logger: recordLogs(),
      limits: allAtOnce,
      ready: async () => true,
    })
    const method = methodNamed('SummarizePayments')
    const headers = { 'x-api-key': 'good' }
    const ask = { method, request: request as Record<string, string>, headers }
    return Promise.all(opened(listener).all.map(async (way) => ({ name: way.name, ...(await way.ask(ask)) })))
  }

  beforeAll(async () => {
    const [row] = generatePayments(1, 1, 1)
    const { payment, ...rest } = row as StoredPayment
    const stored = Array.from({ length: GROUPS }, (_, n): StoredPayment => {
      const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
      return { ...rest, payment: { ...payment, id, eventIndex: n, currency: `T${n}-BASE`, amountInUsd: '1' } }
    })
    await insertPayments(database.knex, stored)
  })

  it('that takes too long is answered with 504 and its reason over every protocol, and its statement is cancelled', async () => {
    const answers = await whileLocked(async () => {
      const all = await summarize({ groupBy: ['STATUS'] }, 100)
      await expect.poll(statementsWaiting).toBe(0)
      return all
    })
    for (const { name, httpStatus = 504, error } of answers) {
      expect([name, httpStatus, error]).toMatchObject([
        name,
        504,
        {
          code: 'deadline_exceeded',
          message: 'the summary took longer than 100 ms; narrow the filters: everything that matches is read',
          info: { reason: 'SUMMARY_TIMEOUT', metadata: { timeoutMs: '100' } },
        },
      ])
    }
  })

  it('of more than ten thousand groups is refused, one of exactly ten thousand is not', async () => {
    for (const { name, httpStatus = 400, error } of await summarize({ groupBy: ['CURRENCY'] })) {
      expect([name, httpStatus, error]).toMatchObject([
        name,
        400,
        {
          code: 'invalid_argument',
          message: 'the summary would have more than 10000 groups; narrow the filters, or use a coarser grouping',
          info: { reason: 'TOO_MANY_GROUPS', metadata: { limit: '10000' } },
        },
      ])
    }
    await database.knex('payments').where({ currency: 'T0-BASE' }).delete()
    const [{ answer } = {}] = await summarize({ groupBy: ['CURRENCY'] })
    expect(answer).toMatchObject({ count: GROUPS - 1, groups: { length: GROUPS - 1 } })
  })
})
