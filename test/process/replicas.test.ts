import { realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { type ReplicatedDatabase, startReplicatedDatabase } from '../support/data/replica.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let db: ReplicatedDatabase
let folder: string
let environment: Record<string, string>
let key: string
const running: WaybillProcess[] = []

const urlOf = ({ host, port, user, password, database }: Connection) =>
  `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?host=${realpathSync(host)}`

async function startService(): Promise<string> {
  const service = startWaybill(['serve'], environment)
  running.push(service)
  const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
  return url
}

beforeAll(async () => {
  folder = await makeTempFolder('replicas')
  db = await startReplicatedDatabase()
  environment = {
    DATA_DIR: folder,
    PORT: '0',
    CHAINS_FILE: 'none',
    DATABASE_URL: urlOf(db.primaryConnection),
    DATABASE_REPLICA_URLS: urlOf(db.replicaConnection),
  }
  const terms = {
    account: 'shop',
    scopes: ['payments:read', 'requests:read'],
    now: new Date(),
    callsPerMinute: 0,
  } as const
  key = (await issueApiKey(createApiKeyRepository(db.primary), terms)).key
}, 60_000)

afterAll(async () => {
  for (const service of running) service.kill('SIGTERM')
  await Promise.all(running.map(({ ended }) => ended))
  await db.stop()
  await rm(folder, { recursive: true, force: true })
})

async function call(url: string, seen?: string) {
  const response = await fetch(url, {
    headers: { 'x-api-key': key, ...(seen !== undefined && { 'x-waybill-seen': seen }) },
  })
  const body = (await response.json()) as Answer
  return { status: response.status, body, seen: response.headers.get('x-waybill-seen') ?? undefined }
}

interface Answer {
  readonly payments: { readonly reference: string }[]
  readonly pagination: { readonly nextCursor: string }
  readonly details: { readonly reason: string }[]
}

const found = async (url: string, seen?: string) =>
  (await call(`${url}/payments`, seen)).body.payments.map(({ reference }) => reference)

let imported = 0

/** Imports a payment by a command; each is older than the one before. */
async function importPayment(): Promise<string> {
  imported += 1
  const reference = `INV-${imported}`
  const line = {
    id: `0b7d2a31-6f0e-4c55-9d3b-00000000000${imported}`,
    status: 'CONFIRMED',
    timestamp: new Date(Date.UTC(2026, 2, 20 - imported)).toISOString(),
    amount: '150',
    currency: 'USDC-BASE',
    network: 'BASE',
    reference,
  }
  const words = ['import', 'payments', '-', '--account', 'shop']
  const { code } = await startWaybill(words, environment, Readable.from([`${JSON.stringify(line)}\n`])).ended
  expect(code).toBe(0)
  return reference
}

const readersOnReplica = async () => {
  const { rows } = await db.replica().raw(`select 1 from pg_stat_activity where application_name = 'waybill'`)
  return rows.length as number
}

test('processes read from a replica, and no caller reads an older state than it has seen on any of them', async () => {
  const first = await importPayment()
  const [one, other, third] = await Promise.all([startService(), startService(), startService()])
  await vi.waitFor(async () => {
    for (const url of [one, other, third]) expect(await found(url)).toEqual([first])
    expect(await readersOnReplica()).toBeGreaterThanOrEqual(3)
  }, 20_000)

  await db.replica().raw('select pg_wal_replay_pause()')
  const second = await importPayment()
  // No caller has seen it yet, so an answer without it is correct.
  expect(await found(one)).toEqual([first])
  expect(await found(other)).toEqual([first])

  const { seen } = await call(`${one}/v1/request`)
  expect(seen).toEqual(expect.any(String))
  expect(await found(one)).toEqual([first, second])
  expect(await found(other, seen)).toEqual([first, second])
  expect(await found(other)).toEqual([first, second])

  const page = await call(`${one}/payments?limit=1`)
  expect(page.body.payments).toMatchObject([{ reference: first }])
  const next = await call(`${third}/payments?cursor=${page.body.pagination.nextCursor}`)
  expect(next.body.payments).toMatchObject([{ reference: second }])

  const summary = await fetch(`${other}/v1/payments:summarize`, { headers: { 'x-api-key': key } })
  expect(await summary.json()).toMatchObject({ count: 2 })
  const exported = await fetch(`${other}/v1/payments:export`, { headers: { 'x-api-key': key } })
  expect((await exported.text()).trim().split('\n')).toHaveLength(2)
  expect(exported.headers.get('x-waybill-seen')).toEqual(expect.any(String))
  await db.replica().raw('select pg_wal_replay_resume()')

  const { seen: damaged = '' } = await call(`${one}/payments`)
  const refused = await call(`${one}/payments`, `${damaged.slice(0, -2)}AA`)
  expect([refused.status, refused.body.details[0]?.reason]).toEqual([400, 'INVALID_FIELD'])

  await db.killReplica()
  for (const url of [one, other, third]) {
    expect(await found(url)).toEqual([first, second])
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  }
  await db.startReplica()
  await vi.waitFor(async () => {
    // At the end of a page of the log the two positions can differ by its header; any write moves past it.
    await db.primary.raw(`select pg_logical_emit_message(false, 'test', '')`)
    await found(one)
    expect(await readersOnReplica()).toBeGreaterThanOrEqual(1)
  }, 20_000)
}, 60_000)
