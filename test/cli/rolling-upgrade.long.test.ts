/**
 * Two processes are replaced by those of the next release, whose schema has grown, while clients search and store requests without a pause: no call
 * fails. The next release is this code with steps of its own.
 */
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'
import { addressesOf, callMeanwhile, grpcCaller } from '../support/rolling.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Where the list of steps ends in the code. */
const END_OF_STEPS = /\]\n*$/

/** A column, an index, a table; and a release later what is unused goes. */
const STEPS = `
  { name: '9002-note', up: async (knex) => void (await knex.raw('alter table requests add column note text')) },
  { name: '9003-note-index', indexes: [{ build: 'requests_note', table: 'requests', definition: '(account_id, note)' }] },
  { name: '9004-notes', up: async (knex) => void (await knex.raw('create table notes (account_id bigint, id bigint, primary key (account_id, id))')) },
  { name: '9005-without-note', contract: { unusedSince: '9004-notes' }, up: async (knex) => void (await knex.raw('alter table requests drop column note')) },
]`

let database: TestDatabase
let key: string
let folder: string
let next: string
let chain: TestChain
let ports: readonly [number, number]
const running = new Map<number, WaybillProcess>()

beforeAll(async () => {
  database = await createTestDatabase()
  const terms = { account: 'acme', scopes: ['payments:read', 'requests:write'], now: new Date() } as const
  ;({ key } = await issueApiKey(createApiKeyRepository(database.knex), { ...terms, callsPerMinute: 0 }))
  ports = [await findFreePort(), await findFreePort()]
  folder = await makeTempFolder('rolling-upgrade')
  chain = await startTestChain()
  const chains = [chain.config({ name: 'BASE', finalityDepth: 3 })]
  await writeFile(join(folder, 'chains.json'), JSON.stringify({ chains }))
  next = await writeNext(join(folder, 'next'))
})
afterAll(async () => {
  for (const each of running.values()) each.kill('SIGKILL')
  await Promise.all([...running.values()].map(({ ended }) => ended))
  await chain?.stop()
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

/** Writes the code of the next release. */
async function writeNext(to: string): Promise<string> {
  await mkdir(join(to, 'apps'), { recursive: true })
  for (const part of ['src', 'tools']) await cp(join(ROOT, part), join(to, part), { recursive: true })
  for (const part of ['gen', 'package.json', 'node_modules', 'apps/dist'])
    await symlink(join(ROOT, part), join(to, part))
  const list = join(to, 'src/postgres/migrations/list.ts')
  const code = await readFile(list, 'utf8')
  expect(code).toMatch(END_OF_STEPS)
  await writeFile(list, code.replace(END_OF_STEPS, `,${STEPS}`))
  return to
}

const environment = () => ({ DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: join(folder, 'chains.json') })

async function start(port: number, root?: string): Promise<WaybillProcess> {
  const settings = { ...environment(), PORT: `${port}`, DATABASE_CONNECTIONS: '4', SHUTDOWN_DELAY_SECONDS: '1' }
  const service = startWaybill(['serve'], settings, undefined, root)
  running.set(port, service)
  await service.says(/Waybill on/)
  return service
}

const migrate = (...words: readonly string[]) =>
  startWaybill(['migrate', ...words], environment(), undefined, next).ended

let stored = 0

/** Stores a request at a process that takes connections; a refused one is sent to the other, as a balancer does. */
async function store(): Promise<void> {
  stored += 1
  const terms = {
    amount: '1',
    invoiceCurrency: 'USDC',
    paymentCurrency: 'USDC',
    network: 'BASE',
    reference: `${stored}`,
  }
  const body = JSON.stringify({ ...terms, payee: chain.wallets[1] })
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  for (const port of stored % 2 === 0 ? ports : ports.toReversed()) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/request`, { method: 'POST', headers, body })
      if (answer.status < 300) return void (await answer.text())
      throw new Error(await answer.text())
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code !== 'ECONNREFUSED') throw error
    }
  }
  throw new Error('no process takes connections')
}

it('fails no call, and refuses the old release once what it uses is gone', async () => {
  await Promise.all(ports.map((port) => start(port)))
  await store()
  const client = grpcCaller(addressesOf(ports), key)
  const upgrade = async () => {
    expect(await migrate()).toMatchObject({ code: 0, stdout: expect.stringContaining('9004-notes') })
    for (const port of ports) {
      running.get(port)?.kill('SIGTERM')
      await running.get(port)?.ended
      const successor = await start(port, next)
      await successor.says(/"msg":"call"/, 'stderr')
    }
    expect(await migrate('--contract')).toMatchObject({ code: 0, stdout: expect.stringContaining('9005-without-note') })
  }
  const upgraded = upgrade()
  const [read, written] = await Promise.all([
    callMeanwhile(client.call, () => upgraded),
    callMeanwhile(store, () => upgraded, 2),
  ])
  client.close()
  expect({ read: read.failed, written: written.failed }).toEqual({ read: [], written: [] })
  expect(read.calls).toBeGreaterThan(200)
  expect(written.calls).toBeGreaterThan(50)
  const { rows } = await database.knex.raw<{ rows: { count: string }[] }>('select count(*) from requests')
  expect(Number(rows[0]?.count)).toBe(stored)

  const old = startWaybill(['serve'], { ...environment(), PORT: `${await findFreePort()}` })
  expect(await old.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('9005-without-note') })
})
