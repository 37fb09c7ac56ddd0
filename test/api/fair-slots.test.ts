import { once } from 'node:events'
import { connect } from 'node:net'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { composeService, type ListenOptions } from '../../src/app.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createReadPools } from '../../src/postgres/replicas/read-pools.ts'
import { methodNamed, openWays, type Way } from '../support/clients/clients.ts'
import { PATIENCE } from '../support/patience.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

/**
 * The calls of one key do not delay those of others. A lock on the table of payments holds the searches, so that they stay in progress
 * while a test looks at them.
 */

let running: TestService
/** Locks and counts over connections of its own, not of the service. */
let aside: Knex

beforeAll(async () => {
  running = await startTestService()
  aside = createDatabase(running.database.connection, { poolMax: 2 })
})
afterAll(async () => {
  await aside.destroy()
  await running.stop()
})

async function listen(limits: NonNullable<ListenOptions['limits']>) {
  const { url, port } = await running.listen(limits)
  return { url, port, ...askAt(url) }
}

function askAt(url: string) {
  const ways = openWays(url)
  const rest = ways.named('REST')
  const ask = (apiKey: string, asked: Asked = {}) => {
    const { way = rest, method = 'SearchPayments', request = {}, headers, signal } = asked
    const terms = { method: methodNamed(method), request, headers: { 'x-api-key': apiKey, ...headers } }
    return way.ask({ ...terms, ...(signal && { signal }) })
  }
  return { ways, ask }
}

type Ask = ReturnType<typeof askAt>['ask']

interface Asked {
  readonly way?: Way
  readonly method?: string
  readonly request?: Record<string, string>
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** While it runs, every search waits for its table. */
async function whileLocked<T>(body: () => Promise<T>): Promise<T> {
  return aside.transaction(async (trx) => {
    await trx.raw('lock table payments, requests in access exclusive mode')
    return body()
  })
}

/** The searches in progress: one without a slot does not reach the database. */
async function underWay(): Promise<number> {
  const { rows } = await aside.raw<{ rows: unknown[] }>(
    `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}

const untilUnderWay = (count: number) => vi.waitFor(async () => expect(await underWay()).toBe(count), PATIENCE)

const statusOf = async (asked: Promise<{ readonly httpStatus?: number }>) => (await asked).httpStatus

describe('a key at the limit of its calls in progress', () => {
  it('has its further calls wait and then answered, while another key is served', async () => {
    const { ask } = await listen({ maxSearches: 2, maxSearchesPerKey: 1 })
    const { shop, other } = running.keys
    const asked = await whileLocked(async () => {
      const all = Array.from({ length: 5 }, () => statusOf(ask(shop)))
      await untilUnderWay(1)
      // One is in progress and four wait; other keys still have space.
      all.push(statusOf(ask(other)))
      await untilUnderWay(2)
      return all
    })
    expect(await Promise.all(asked)).toEqual([200, 200, 200, 200, 200, 200])
  })

  it('is refused further calls, in the same way over every protocol, with the time to retry after', async () => {
    const { url, ways, ask } = await listen({ maxSearchesPerKey: 1, maxCallMs: 4_000 })
    const { shop } = running.keys
    // The time is that for which the call has waited.
    const seconds = expect.stringMatching(/^[1-9]\d*$/)
    const held = await whileLocked(async () => {
      const first = [statusOf(ask(shop))]
      await untilUnderWay(1)
      const asked = ['SearchPayments', 'ListPaymentRequests'].flatMap((method) =>
        ways.all.map(async (way) => [way.name, (await ask(shop, { way, method })).error]),
      )
      const answer = await fetch(`${url}/payments`, { headers: { 'x-api-key': shop } })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, seconds])
      for (const refused of await Promise.all(asked)) {
        expect(refused).toMatchObject([
          expect.any(String),
          {
            code: 'resource_exhausted',
            info: { reason: 'TOO_MANY_AT_ONCE', metadata: { limit: '1', retryAfterSeconds: seconds } },
            details: [expect.stringContaining('ErrorInfo'), expect.stringContaining('RetryInfo')],
          },
        ])
      }
      return first
    })
    expect(await Promise.all(held)).toEqual([200])
    ways.close()
  })

  it('is refused after half of the time of a call, so that calls with a slot have the other half', async () => {
    const { ways, ask } = await listen({ maxSearchesPerKey: 1 })
    const { shop } = running.keys
    const held = await whileLocked(async () => {
      const first = [statusOf(ask(shop))]
      await untilUnderWay(1)
      const way = ways.named('gRPC')
      const { error } = await ask(shop, { way, headers: { 'grpc-timeout': '1000m' } })
      expect(error).toMatchObject({ code: 'resource_exhausted', info: { reason: 'TOO_MANY_AT_ONCE' } })
      return first
    })
    expect(await Promise.all(held)).toEqual([200])
    ways.close()
  })

  it('still has its summaries and watches', async () => {
    const { url, ask } = await listen({ maxSearchesPerKey: 1 })
    const { shop } = running.keys
    const watching = new AbortController()
    const watches = await Promise.all(
      Array.from({ length: 3 }, () =>
        fetch(`${url}/v1/payments:watch`, { headers: { 'x-api-key': shop }, signal: watching.signal }),
      ),
    )
    expect(watches.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await statusOf(ask(shop))).toBe(200)
    const asked = await whileLocked(async () => {
      const all = [statusOf(ask(shop)), statusOf(ask(shop))]
      await untilUnderWay(1)
      all.push(statusOf(ask(shop, { method: 'SummarizePayments' })))
      await untilUnderWay(2)
      return all
    })
    expect(await Promise.all(asked)).toEqual([200, 200, 200])
    watching.abort()
  })

  it('waits for one account only, if it is a platform key', async () => {
    const { ask } = await listen({ maxSearchesPerKey: 1 })
    const { platform } = running.keys
    const asked = await whileLocked(async () => {
      const both = ['shop', 'other'].map((account) => statusOf(ask(platform, { headers: { 'x-account': account } })))
      await untilUnderWay(2)
      return both
    })
    expect(await Promise.all(asked)).toEqual([200, 200])
  })
})

describe('calls that need no slot find a free connection of the database, however many calls are in progress', () => {
  it('with one server', async () => {
    const { ask } = await listen({})
    expect(await ticketBesideAll(ask)).toBe(200)
  })

  it('with four connections', async () => {
    const knex = createDatabase(running.database.connection, { poolMax: 4 })
    const service = await composeService({ knex, logger: running.logs, chains: [], now: () => NOW })
    const listener = await service.listen({ host: '127.0.0.1', port: 0 })
    try {
      expect(await ticketBesideAll(askAt(listener.url).ask, 3)).toBe(200)
    } finally {
      await listener.stop({ graceMs: 0 })
      await knex.destroy()
    }
  })

  it('when the primary takes over the calls of all replicas', async () => {
    const { knex } = running.database
    const gone = { name: 'gone', connection: 'postgres://127.0.0.1:1/gone' }
    const terms = { logger: running.logs, monotonicMs: () => performance.now() }
    const readPools = createReadPools({ ...terms, primary: knex, replicas: [gone], database: {} })
    const service = await composeService({ ...terms, knex, readPools, chains: [], now: () => NOW })
    const listener = await service.listen({ host: '127.0.0.1', port: 0 })
    try {
      expect(await ticketBesideAll(askAt(listener.url).ask)).toBe(200)
    } finally {
      await listener.stop({ graceMs: 0 })
      await readPools.stop()
    }
  })

  /**
   * Makes a call that looks up its key and writes a row, while two other keys have all their slots.
   *
   * @param slots - the number of their slots: all connections except one
   */
  async function ticketBesideAll(ask: Ask, slots = 7): Promise<number | undefined> {
    const { shop, other, nobody } = running.keys
    const methods = [...Array<string>(4).fill('SearchPayments'), 'SummarizePayments']
    const [status, asked] = await whileLocked(async () => {
      const all = [shop, other].flatMap((key) => methods.map((method) => statusOf(ask(key, { method }))))
      await untilUnderWay(slots)
      return [await statusOf(ask(nobody, { method: 'CreateWatchTicket' })), Promise.all(all)] as const
    })
    expect(new Set(await asked)).toEqual(new Set([200]))
    return status
  }
})

describe('a slot is given back', () => {
  /** A listener where one search of a key is in progress and further ones wait for their slot. */
  const open = () => listen({ maxSearchesPerKey: 1 })

  /** @returns the status of one more search of the key, when it has its slot */
  async function searchOnceMore({ ask }: Awaited<ReturnType<typeof open>>): Promise<() => Promise<unknown>> {
    const status = statusOf(ask(running.keys.shop))
    await untilUnderWay(1)
    return () => status
  }

  it('when the caller hangs up, over every protocol', async () => {
    const opened = await open()
    for (const way of opened.ways.all) {
      const next = await whileLocked(async () => {
        const caller = new AbortController()
        const gone = opened.ask(running.keys.shop, { way, signal: caller.signal }).catch(() => {})
        await untilUnderWay(1)
        caller.abort()
        await gone
        await untilUnderWay(0)
        return searchOnceMore(opened)
      })
      expect([way.name, await next()]).toEqual([way.name, 200])
    }
    opened.ways.close()
  })

  it.each(['/payments', '/v1/payments:export'])('when the connection breaks, under %s', async (path) => {
    const opened = await open()
    const next = await whileLocked(async () => {
      const socket = connect({ port: opened.port, host: '127.0.0.1' })
      await once(socket, 'connect')
      socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nx-api-key: ${running.keys.shop}\r\n\r\n`)
      await untilUnderWay(1)
      socket.resetAndDestroy()
      await untilUnderWay(0)
      return searchOnceMore(opened)
    })
    expect(await next()).toBe(200)
  })

  it('when the deadline passes', async () => {
    const opened = await open()
    const next = await whileLocked(async () => {
      const way = opened.ways.named('gRPC')
      const { error } = await opened.ask(running.keys.shop, { way, headers: { 'grpc-timeout': '50m' } })
      expect(error?.info).toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
      return searchOnceMore(opened)
    })
    expect(await next()).toBe(200)
    opened.ways.close()
  })

  it('when the search fails, or failed while it waited', async () => {
    const opened = await open()
    const request = { cursor: 'none' }
    const fails = async () => (await opened.ask(running.keys.shop, { request })).error?.info
    for (let n = 0; n < 3; n++) expect(await fails()).toMatchObject({ reason: 'INVALID_CURSOR' })
    const next = await whileLocked(async () => {
      const first = await searchOnceMore(opened)
      const caller = new AbortController()
      const second = opened.ask(running.keys.shop, { signal: caller.signal }).catch((error: Error) => error.name)
      const way = opened.ways.named('gRPC')
      const third = await opened.ask(running.keys.shop, { way, headers: { 'grpc-timeout': '400m' } })
      expect(third.error?.info).toMatchObject({ reason: 'TOO_MANY_AT_ONCE' })
      caller.abort()
      expect(await second).toBe('AbortError')
      return first
    })
    expect(await next()).toBe(200)
    expect(await statusOf(opened.ask(running.keys.shop))).toBe(200)
    opened.ways.close()
  })
})
