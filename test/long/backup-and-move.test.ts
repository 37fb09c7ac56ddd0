/** The commands of docs/guides/backup-and-move.md, each tried. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { Readable } from 'node:stream'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { composeService } from '../../src/app.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importLines } from '../../src/imports/import-lines.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { binariesIn } from '../../src/postgres/embedded/embedded-files.ts'
import { startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { installPostgres } from '../../tools/install/install-postgres.ts'
import { type WatchedJson, watchBy } from '../support/clients/watch-clients.ts'
import { createTestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { recordLogs } from '../support/logs.ts'
import { startWaybill } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { NOW, startTestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
beforeAll(async () => {
  folder = await makeTempFolder('backup-and-move')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const PAYMENTS = 500

async function importInto(knex: Knex, from = 0, count = PAYMENTS): Promise<void> {
  const account = await createApiKeyRepository(knex).ensureAccount('shop')
  const lines = Array.from({ length: count }, (_, at) => ({
    id: `00000000-0000-4000-8000-${String(from + at).padStart(12, '0')}`,
    status: 'CONFIRMED',
    timestamp: '2026-02-01T12:00:00Z',
    amount: `${from + at}.000001`,
    currency: 'USDC-BASE',
    network: 'BASE',
    paymentReference: '0x00000000000000aa',
  }))
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const { bad } = await importLines(Readable.from([Buffer.from(text)]), importPayments(knex, account))
  expect(bad).toBe(0)
}

async function paymentsOf(connection: Connection | string): Promise<string[]> {
  const knex = createDatabase(connection)
  try {
    const { rows } = await knex.raw('select p::text as payment from payments p order by p.account_id, p.id')
    return rows.map(({ payment }: { payment: string }) => payment)
  } finally {
    await knex.destroy()
  }
}

interface Request {
  readonly paymentReference: string
}
interface RequestPage {
  readonly requests: readonly Request[]
  readonly pagination: { readonly nextCursor?: string }
}
interface Page {
  readonly payments: readonly { readonly id: string }[]
  readonly pagination: { readonly nextCursor?: string }
  readonly watchCursor: string
}

function clientOf(url: string, key: string) {
  const call = async (path: string, init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}) => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json', ...init.headers }
    const answer = await fetch(url + path, { ...init, headers })
    const body: unknown = await answer.json()
    expect({ status: answer.status, body }).toMatchObject({ status: 200 })
    return body
  }
  return {
    search: async (query: string) => (await call(`/payments?${query}`)) as Page,
    async create(payee: string, idempotencyKey = 'order-1') {
      const terms = { payee, amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
      const init = { method: 'POST', headers: { 'idempotency-key': idempotencyKey }, body: JSON.stringify(terms) }
      return (await call('/v1/request', init)) as Request
    },
    requests: async (query: string) => (await call(`/v1/request?${query}`)) as RequestPage,
    async ticket() {
      const { ticket } = (await call('/v1/payments:watchTicket', { method: 'POST', body: '{}' })) as { ticket: string }
      return ticket
    },
    async watch(watchCursor: string, count: number): Promise<WatchedJson[]> {
      const events: WatchedJson[] = []
      await watchBy('JSON lines', {
        url,
        request: { watchCursor },
        headers: { 'x-api-key': key },
        onMessage(message) {
          if (message.type !== 'HEARTBEAT') events.push(message)
          return events.length === count ? 'hang up' : 'go on'
        },
      })
      return events
    },
  }
}

const watchByTicket = (url: string, ticket: string) =>
  watchBy('server-sent events', { url, request: { ticket }, headers: {}, onMessage: () => 'hang up' })

it('a client goes on across a move from a server to the embedded database', async () => {
  const old = await startTestService()
  const dataDir = join(folder, 'moved')
  const file = join(folder, 'moved.backup')
  const payee = `0x${'a1'.repeat(20)}`
  try {
    await importInto(old.database.knex)
    const before = clientOf(old.url, old.keys.shop)
    const first = await before.search('limit=100')
    const request = await before.create(payee)
    const newest = await before.create(payee, 'order-2')
    const newestPage = await before.requests('limit=1')
    await importInto(old.database.knex, PAYMENTS, 3)
    const ticket = await before.ticket()

    expect(await runCommand({ DATABASE_URL: urlOfDatabase(old.database) }, ['backup', file])).toMatchObject({ code: 0 })
    expect(await runCommand({ DATA_DIR: dataDir }, ['restore', file])).toMatchObject({ code: 0 })
    expect(await runCommand({ DATA_DIR: dataDir }, ['verify'])).toMatchObject({ code: 0, stdout: '' })

    const server = await startEmbeddedServer({ dataDir })
    const knex = createDatabase(server.connection())
    const service = await composeService({
      knex,
      chains: [old.chain.config({ name: 'ETHEREUM', finalityDepth: 3 })],
      logger: recordLogs(),
      now: () => NOW,
    })
    const listener = await service.listen({ host: '127.0.0.1', port: 0 })
    try {
      const after = clientOf(listener.url, old.keys.shop)
      const ids = first.payments.map(({ id }) => id)
      for (let { nextCursor } = first.pagination; nextCursor !== undefined; ) {
        const page = await after.search(`cursor=${nextCursor}`)
        ids.push(...page.payments.map(({ id }) => id))
        nextCursor = page.pagination.nextCursor
      }
      expect(new Set(ids).size).toBe(ids.length)
      // newest first: the payments of the time between the two pages stand before the first
      expect(ids.length).toBe(PAYMENTS)
      const nextPage = await after.requests(`cursor=${newestPage.pagination.nextCursor}`)
      // both were created at the same moment, so their ids decide which is first
      const walked = [...newestPage.requests, ...nextPage.requests].map(({ paymentReference }) => paymentReference)
      expect(walked.toSorted()).toEqual([request, newest].map(({ paymentReference }) => paymentReference).toSorted())
      expect((await after.create(payee)).paymentReference).toBe(request.paymentReference)
      expect(await watchByTicket(listener.url, ticket)).toMatchObject({ messages: [{ type: 'HEARTBEAT' }] })
      await importInto(knex, PAYMENTS + 3, 2)
      const events = await after.watch(first.watchCursor, 5)
      expect(events.map(({ type }) => type)).toEqual(Array.from({ length: 5 }, () => 'ADDED'))
    } finally {
      await listener.stop({ graceMs: 0 })
      await knex.destroy()
      await server.stop()
    }
  } finally {
    await old.stop()
  }
})

it('a client whose watch cursor is newer than a restored state is told so', async () => {
  const old = await startTestService()
  const restored = await createTestDatabase()
  try {
    const file = join(folder, 'earlier.backup')
    await importInto(old.database.knex, 0, 3)
    await runCommand({ DATABASE_URL: urlOfDatabase(old.database) }, ['backup', file])
    await importInto(old.database.knex, 3, 3)
    const { watchCursor } = await clientOf(old.url, old.keys.shop).search('limit=1')
    expect(await runCommand({ DATABASE_URL: urlOfDatabase(restored) }, ['restore', file])).toMatchObject({ code: 0 })
    const service = await composeService({ knex: restored.knex, chains: [], logger: recordLogs(), now: () => NOW })
    const listener = await service.listen({ host: '127.0.0.1', port: 0 })
    const { error } = await watchBy('JSON lines', {
      url: listener.url,
      request: { watchCursor },
      headers: { 'x-api-key': old.keys.shop },
      onMessage: () => 'hang up',
    })
    await listener.stop({ graceMs: 0 })
    expect(error).toMatchObject({ reason: 'CURSOR_AHEAD' })
  } finally {
    await old.stop()
    await restored.drop()
  }
})

/** A server of another version that listens on TCP, with a migrated database. Undefined where npm could not install it. */
async function startServerOf(version: string, name: string) {
  const native = installPostgres(version)
  if (native === undefined) return undefined
  const port = await findFreePort()
  const server = await startEmbeddedServer({
    dataDir: join(folder, name),
    binaries: await binariesIn(native, ['--locale=C.UTF-8']),
    settings: { listen_addresses: '127.0.0.1', port: String(port), fsync: 'off' },
  })
  const { user, password } = server.connection()
  const urlOf = (database: string) => `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`
  return { native, urlOf, stop: () => server.stop() }
}

it('a server of PostgreSQL 15 moves to one of 18', async (test) => {
  const old = await startServerOf('15', 'fifteen')
  if (old === undefined) return test.skip('npm could not install PostgreSQL 15')
  const newer = await startServerOf('18', 'eighteen')
  if (newer === undefined) return test.skip('npm could not install PostgreSQL 18')
  try {
    const knex = createDatabase(old.urlOf('postgres'))
    await migrate(knex)
    await importInto(knex)
    await knex.destroy()
    const file = join(folder, 'fifteen.backup')
    const taken = await runCommand({ DATABASE_URL: old.urlOf('postgres') }, ['backup', file])
    const moved = { code: 0, stdout: taken.stdout }
    expect(await runCommand({ DATABASE_URL: newer.urlOf('postgres') }, ['restore', file])).toMatchObject(moved)
    expect(await runCommand({ DATABASE_URL: newer.urlOf('postgres') }, ['verify'])).toMatchObject({ code: 0 })
    expect(await paymentsOf(newer.urlOf('postgres'))).toEqual(await paymentsOf(old.urlOf('postgres')))
  } finally {
    await old.stop()
    await newer.stop()
  }
})

describe('the embedded database', () => {
  it('moves to a server', async (test) => {
    const target = await startServerOf('18', 'target')
    if (target === undefined) return test.skip('npm could not install PostgreSQL 18')
    const dataDir = join(folder, 'grown')
    const server = await startEmbeddedServer({ dataDir })
    try {
      const knex = createDatabase(server.connection())
      await migrate(knex)
      await importInto(knex)
      await knex.destroy()
      const file = join(folder, 'grown.backup')
      const taken = await runCommand({ DATA_DIR: dataDir }, ['backup', file])
      const moved = { code: 0, stdout: taken.stdout }
      const there = { DATABASE_URL: target.urlOf('postgres') }
      expect(await runCommand(there, ['restore', file])).toMatchObject(moved)
      expect(await runCommand(there, ['verify'])).toMatchObject({ code: 0, stdout: '' })
      expect(await paymentsOf(target.urlOf('postgres'))).toEqual(await paymentsOf(server.connection()))
    } finally {
      await server.stop()
      await target.stop()
    }
  })

  it('is backed up while a service runs, and its stopped folder can be copied', async () => {
    const dataDir = join(folder, 'running')
    const environment = { DATA_DIR: dataDir, PORT: '0', CHAINS_FILE: 'none' }
    const service = startWaybill(['serve'], environment)
    await service.says(/Waybill on (http:\S+):/)
    const input = Readable.from([
      '{"id":"00000000-0000-4000-8000-000000000001","status":"CONFIRMED","timestamp":"2026-02-01T12:00:00Z","amount":"7","currency":"USDC-BASE","network":"BASE","paymentReference":"0x00000000000000aa"}\n',
    ])
    await runCommand({ DATA_DIR: dataDir }, ['keys', 'create', '--account', 'shop', '--scopes', 'payments:read'])
    expect(
      await startWaybill(['import', 'payments', '-', '--account', 'shop'], environment, input).ended,
    ).toMatchObject({ code: 0 })
    const running = join(folder, 'running.backup')
    const taken = await startWaybill(['backup', running], environment).ended
    expect(taken).toMatchObject({ code: 0 })
    expect(taken.stdout).toMatch(/^payments\t1\t/m)
    service.kill('SIGTERM')
    await service.ended

    const stopped = await startWaybill(['backup', join(folder, 'stopped.backup')], environment).ended
    expect(stopped.stdout.match(/^payments.*$/m)).toEqual(taken.stdout.match(/^payments.*$/m))
    const copy = join(folder, 'copy')
    expect(spawnSync('cp', ['-a', dataDir, copy]).status).toBe(0)
    const copied = await startWaybill(['backup', join(folder, 'copy.backup')], { ...environment, DATA_DIR: copy }).ended
    expect(copied.stdout).toBe(stopped.stdout)
  })

  it('of PostgreSQL 17 is refused with 18, and moves by a backup of the old version', async (test) => {
    const native = installPostgres('17')
    if (native === undefined) return test.skip('npm could not install PostgreSQL 17')
    const dataDir = join(folder, 'seventeen')
    const file = join(folder, 'seventeen.backup')
    const server = await startEmbeddedServer({ dataDir, binaries: await binariesIn(native) })
    const knex = createDatabase(server.connection())
    await migrate(knex)
    await importInto(knex)
    await knex.destroy()
    const payments = await paymentsOf(server.connection())
    const taken = await runCommand({ DATA_DIR: dataDir }, ['backup', file])
    expect(taken).toMatchObject({ code: 0 })
    await server.stop()

    for (const words of [['verify'], ['backup', `${file}-2`]]) {
      const refused = await runCommand({ DATA_DIR: dataDir }, words)
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain(
        `The database in ${dataDir}/pg is of PostgreSQL 17, and PostgreSQL 18 is installed here`,
      )
    }
    expect(existsSync(`${file}-2`)).toBe(false)

    await rename(join(dataDir, 'pg'), join(dataDir, 'pg-before'))
    expect(await runCommand({ DATA_DIR: dataDir }, ['restore', file])).toMatchObject({ code: 0, stdout: taken.stdout })
    expect(await runCommand({ DATA_DIR: dataDir }, ['verify'])).toMatchObject({ code: 0, stdout: '' })
    const newer = await startEmbeddedServer({ dataDir })
    expect(await paymentsOf(newer.connection())).toEqual(payments)
    await newer.stop()
  })
})

const TOOLS = ['pg_dump', 'pg_restore', 'pg_basebackup'] as const

/** The major version of PostgreSQL's tools on this machine; undefined where they are missing. */
function toolsVersion(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  if (!TOOLS.every((name) => folders.some((path) => existsSync(join(path, name))))) return undefined
  const { stdout } = spawnSync(TOOLS[0], ['--version'], { encoding: 'utf8' })
  return /\) (\d+)/.exec(stdout)?.[1]
}

describe("PostgreSQL's own tools", () => {
  let server: Awaited<ReturnType<typeof startServerOf>>
  let why = ''
  beforeAll(async () => {
    const version = toolsVersion()
    if (version === undefined) why = `${TOOLS.join(', ')} are not installed`
    if (version === undefined) return
    server = await startServerOf(version, 'tools')
    if (server === undefined) why = `npm could not install PostgreSQL ${version}`
    if (server === undefined) return
    const knex = createDatabase(urlOf('postgres'))
    await migrate(knex)
    await importInto(knex)
    await knex.raw('create database restored')
    await knex.destroy()
  })
  afterAll(() => server?.stop())

  const urlOf = (database: string) => server?.urlOf(database) ?? ''
  const run = (program: string, args: readonly string[]) => {
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
    expect({ status, stderr }).toMatchObject({ status: 0 })
  }

  it('pg_dump and pg_restore move a server', async (test) => {
    if (server === undefined) return test.skip(why)
    const dump = join(folder, 'waybill.dump')
    run('pg_dump', ['--format=custom', `--file=${dump}`, urlOf('postgres')])
    run('pg_restore', ['--no-owner', '--exit-on-error', `--dbname=${urlOf('restored')}`, dump])
    expect(await runCommand({ DATABASE_URL: urlOf('restored') }, ['verify'])).toMatchObject({ code: 0, stdout: '' })
    const backups = await Promise.all(
      ['postgres', 'restored'].map((name) => runCommand({ DATABASE_URL: urlOf(name) }, ['backup', join(folder, name)])),
    )
    expect(backups[1]?.stdout).toBe(backups[0]?.stdout)
  })

  it('pg_basebackup copies a server that runs', async (test) => {
    if (server === undefined) return test.skip(why)
    const copy = join(folder, 'base')
    run('pg_basebackup', [
      `--pgdata=${copy}/pg/data`,
      '--wal-method=stream',
      '--checkpoint=fast',
      `--dbname=${urlOf('')}`,
    ])
    cpSync(join(folder, 'tools/pg/password'), join(copy, 'pg/password'))
    const { native } = server
    const copied = await startEmbeddedServer({
      dataDir: copy,
      binaries: await binariesIn(native, ['--locale=C.UTF-8']),
    })
    expect(await paymentsOf(copied.connection())).toEqual(await paymentsOf(urlOf('postgres')))
    await copied.stop()
  })
})

it('the guide names each command that is tried here', async () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/backup-and-move.md'), 'utf8')
  for (const command of [
    'waybill -- backup',
    'waybill -- restore',
    'waybill -- check',
    'pg_dump',
    'pg_restore',
    'pg_basebackup',
    'cp -a data copy',
  ])
    expect(guide).toContain(command)
  expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([])
})
