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

interface Answer {
  readonly payments: { readonly reference: string }[]
  readonly pagination: { readonly nextCursor: string }
}

async function call(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const response = await fetch(url, { headers: { 'x-api-key': key, ...headers } })
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

const NO_CACHE = { 'cache-control': 'no-cache' }
const referencesOf = ({ payments }: Answer) => payments.map(({ reference }) => reference)
const found = async (url: string, headers?: typeof NO_CACHE) => referencesOf(await call(`${url}/payments`, headers))

let imported = 0

const idOf = (n: number) => `0b7d2a31-6f0e-4c55-9d3b-00000000000${n}`

/** Imports a payment by a command; each is older than the one before. */
async function importPayment(): Promise<string> {
  imported += 1
  const reference = `INV-${imported}`
  const line = {
    id: idOf(imported),
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

test('processes read from a replica, and from the primary what it lacks, or all while it is gone', async () => {
  const first = await importPayment()
  const [one, other] = await Promise.all([startService(), startService()])
  await vi.waitFor(async () => {
    for (const url of [one, other]) expect(await found(url)).toEqual([first])
    expect(await readersOnReplica()).toBeGreaterThanOrEqual(2)
  }, 20_000)

  await db.pauseReplay()
  const second = await importPayment()
  expect(await found(one)).toEqual([first])
  expect(await found(one, NO_CACHE)).toEqual([first, second])
  expect(await found(one)).toEqual([first])
  expect(await call(`${one}/v1/payments/${idOf(2)}`)).toMatchObject({ reference: second })

  const page = await call(`${one}/payments?limit=1`, NO_CACHE)
  expect(referencesOf(page)).toEqual([first])
  expect(referencesOf(await call(`${other}/payments?cursor=${page.pagination.nextCursor}`))).toEqual([second])
  await db.resumeReplay()

  await db.killReplica()
  for (const url of [one, other]) {
    expect(await found(url)).toEqual([first, second])
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  }
  await db.startReplica()
  await vi.waitFor(async () => {
    await found(one)
    expect(await readersOnReplica()).toBeGreaterThanOrEqual(1)
  }, 20_000)
}, 60_000)
