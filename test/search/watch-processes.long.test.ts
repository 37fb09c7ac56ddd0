import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { type WatchedJson, watchBy } from '../support/clients/watch-clients.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'

// A client that watches two processes one after the other, one of which is killed, while others write, ends up with the stored payments.

const LINES = 1_000

let database: TestDatabase
let environment: Record<string, string>
let processes: readonly WaybillProcess[]
let urls: readonly string[]
let account: Account
let headers: { 'x-api-key': string }

beforeAll(async () => {
  database = await createTestDatabase()
  environment = { PORT: '0', CHAINS_FILE: 'none', DATABASE_URL: urlOfDatabase(database), DATA_DIR: '/nowhere' }
  const terms = { account: 'shop', scopes: ['payments:read'], now: new Date(), callsPerMinute: 0 } as const
  const { key, stored } = await issueApiKey(createApiKeyRepository(database.knex), terms)
  account = stored.account
  headers = { 'x-api-key': key }
  processes = [startWaybill(['serve'], environment), startWaybill(['serve'], environment)]
  urls = await Promise.all(processes.map(async (each) => (await each.says(/on (http:\/\/[^:]+:\d+)/))[1] ?? ''))
})
afterAll(async () => {
  for (const each of processes ?? []) each.kill('SIGTERM')
  await Promise.all((processes ?? []).map(({ ended }) => ended))
  await database?.drop()
})

/** Import lines of the same payments in one version: newer versions replace older ones, whatever the order of imports. */
function linesOf(version: number): string {
  const lines = Array.from({ length: LINES }, (_, n) =>
    JSON.stringify({
      id: `5e000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`,
      status: (n + version) % 3 === 0 ? 'PENDING' : 'CONFIRMED',
      timestamp: '2026-03-01T12:00:00Z',
      updatedAt: new Date(Date.UTC(2026, 2, 1, 12, 0, version)).toISOString(),
      amount: String(version),
      currency: 'USDC-BASE',
      network: 'BASE',
    }),
  )
  return `${lines.join('\n')}\n`
}

async function importVersion(version: number): Promise<void> {
  const words = ['import', 'payments', '-', '--account', 'shop']
  const { code, stderr } = await startWaybill(words, environment, Readable.from([linesOf(version)])).ended
  if (code !== 0) throw new Error(stderr)
}

/** Changes or deletes a few payments in transactions of their own, as detection does. */
async function changeSome(times: number, seed: number): Promise<void> {
  const random = seededRandom(seed)
  for (let time = 0; time < times; time++) {
    const like = `%${Math.floor(random() * 256).toString(16)}`
    await database.knex.transaction(async (trx) => {
      const locked = await lockAccount(trx, account.id, new Date())
      if (random() < 0.5) {
        const sql =
          'update payments set status = 6 - status, amount = amount + 1 where account_id = ? and status <> 3 and id::text like ?'
        await changePayments(locked, { sql, bindings: [account.id, like] })
      } else {
        await changePayments(locked, {
          sql: 'delete from payments where account_id = ? and id::text like ?',
          bindings: [account.id, like],
        })
      }
    })
  }
}

async function cursorNow(): Promise<string> {
  const answer = await fetch(`${urls[1]}/payments`, { headers })
  return ((await answer.json()) as { watchCursor: string }).watchCursor
}

const briefOf = ({ id, status, amount, updatedAt }: Readonly<Record<string, unknown>>) => [
  id,
  status,
  amount,
  updatedAt,
]

it('a watch misses and repeats nothing over every broken connection', async () => {
  const random = seededRandom(5)
  const ways = ['JSON lines', 'server-sent events', 'grpc-js', 'connect-json'] as const
  const state = new Map<unknown, unknown>()
  const end: { cursor?: string } = {}
  let watchCursor = await cursorNow()
  const seen = { events: 0, breaks: 0, isThere: false }

  const onMessage = (message: WatchedJson) => {
    const { type, id, payment } = message
    watchCursor = message.watchCursor
    if (type === 'HEARTBEAT') seen.isThere = watchCursor === end.cursor
    else {
      seen.events += 1
      if (state.has(id) === (type === 'ADDED')) throw new Error(`${type} as event ${seen.events}`)
      if (type === 'REMOVED') state.delete(id)
      else state.set(id, briefOf(payment as Record<string, unknown>))
    }
    if (seen.events >= 800) processes[0]?.kill('SIGKILL')
    return seen.isThere || random() < 0.01 ? 'hang up' : 'go on'
  }

  async function watch(): Promise<void> {
    while (!seen.isThere) {
      const call = {
        url: urls[seen.breaks % 2] ?? '',
        request: { watchCursor, status: ['CONFIRMED'] },
        headers,
        onMessage,
      }
      const way = ways[seen.breaks % ways.length] ?? 'grpc-js'
      const { error } = await watchBy(way, call).catch((thrown: unknown) => ({ error: thrown }))
      // the killed process only gives connection errors
      const isKilled = seen.events >= 800 && seen.breaks % 2 === 0
      if (error !== undefined && !isKilled) throw new Error(`${way} ended by itself`, { cause: error })
      seen.breaks += 1
    }
  }

  async function write(): Promise<void> {
    await Promise.all([importVersion(1), importVersion(3), importVersion(2), changeSome(60, 1)])
    await Promise.all([importVersion(4), changeSome(20, 2), changeSome(20, 3)])
    end.cursor = await cursorNow()
  }

  await Promise.all([watch(), write()])
  expect([seen.events > 1_500, seen.breaks > 10, (await processes[0]?.ended)?.signal]).toEqual([true, true, 'SIGKILL'])
  const exported = await (await fetch(`${urls[1]}/v1/payments:export?status=confirmed`, { headers })).text()
  const lines = exported.trimEnd().split('\n')
  const stands = lines.map((line) => briefOf(JSON.parse(line) as Record<string, unknown>))
  const byId = (a: unknown, b: unknown) => (String(a) < String(b) ? -1 : 1)
  expect([...state.values()].toSorted(byId)).toEqual(stands.toSorted(byId))
}, 60_000)
