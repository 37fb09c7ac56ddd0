/** The commands of docs/guides/backup-and-move.md, each tried. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { Readable } from 'node:stream'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { binariesIn } from '../../src/postgres/embedded/embedded-files.ts'
import { startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { installPostgres } from '../../tools/install/install-postgres.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type WatchedJson, watchBy } from '../support/clients/watch-clients.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { recordLogs } from '../support/logs.ts'
import { runCommand } from '../support/run-command.ts'
import { NOW } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/backup-and-move.md'), 'utf8')
const SCOPES = ['payments:read', 'requests:read', 'requests:write'] as const

let folder: string
let chain: TestChain
beforeAll(async () => {
  ;[folder, chain] = await Promise.all([makeTempFolder('backup-and-move'), startTestChain({ chainId: 31_577 })])
})
afterAll(async () => {
  await chain?.stop()
  await rm(folder, { recursive: true, force: true })
})

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

/** The command of the guide under a heading that begins with a program. */
function commandOf(program: string): string {
  const found = [...guide.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) => block.trim().split('\n'))
  const command = found.find((line) => line.startsWith(program))
  if (command === undefined) throw new Error(`the guide has no command that begins with ${program}`)
  return command
}

function runInShell(command: string, cwd: string, environment: Readonly<Record<string, string>> = {}): void {
  const { status, stderr } = spawnSync('sh', ['-c', command], {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  expect({ status, stderr }).toMatchObject({ status: 0 })
}

/** A service on an embedded database. */
async function serveFrom(dataDir: string) {
  const server = await startEmbeddedServer({ dataDir })
  const knex = createDatabase(server.connection())
  await migrate(knex)
  const service = await composeService({
    knex,
    chains: [chain.config({ name: 'ETHEREUM', finalityDepth: 3 })],
    logger: recordLogs(),
    now: () => NOW,
  })
  const listener = await service.listen({ host: '127.0.0.1', port: 0 })
  return {
    knex,
    url: listener.url,
    async stop() {
      await listener.stop({ graceMs: 0 })
      await knex.destroy()
      await server.stop()
    },
  }
}

const COPY = commandOf('cp -a')

async function copied(
  name: string,
): Promise<{ readonly dataDir: string; readonly copyDir: string; readonly copy: () => void }> {
  const home = join(folder, name)
  await mkdir(home)
  return { dataDir: join(home, 'data'), copyDir: join(home, 'copy'), copy: () => runInShell(COPY, home) }
}

it('a client goes on with a copy of the stopped folder', async () => {
  const { dataDir, copyDir, copy } = await copied('moved')
  const payee = `0x${'a1'.repeat(20)}`
  const old = await serveFrom(dataDir)
  const { key } = await issueApiKey(createApiKeyRepository(old.knex), { account: 'shop', scopes: SCOPES, now: NOW })
  await importInto(old.knex)
  const before = clientOf(old.url, key)
  const first = await before.search('limit=100')
  const request = await before.create(payee)
  const newest = await before.create(payee, 'order-2')
  const newestPage = await before.requests('limit=1')
  await importInto(old.knex, PAYMENTS, 3)
  const ticket = await before.ticket()
  await old.stop()
  copy()
  const now = await serveFrom(copyDir)
  try {
    const after = clientOf(now.url, key)
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
    expect(await watchByTicket(now.url, ticket)).toMatchObject({ messages: [{ type: 'HEARTBEAT' }] })
    await importInto(now.knex, PAYMENTS + 3, 2)
    const events = await after.watch(first.watchCursor, 5)
    expect(events.map(({ type }) => type)).toEqual(Array.from({ length: 5 }, () => 'ADDED'))
  } finally {
    await now.stop()
  }
  expect(await runCommand({ DATA_DIR: copyDir, CHAINS_FILE: 'none' }, ['verify'])).toMatchObject({
    code: 0,
    stdout: '',
  })
})

it('a client whose watch cursor is newer than a restored state learns so', async () => {
  const { dataDir, copyDir, copy } = await copied('earlier')
  const old = await serveFrom(dataDir)
  const { key } = await issueApiKey(createApiKeyRepository(old.knex), { account: 'shop', scopes: SCOPES, now: NOW })
  await importInto(old.knex, 0, 3)
  await old.stop()
  copy()
  const later = await serveFrom(dataDir)
  await importInto(later.knex, 3, 3)
  const { watchCursor } = await clientOf(later.url, key).search('limit=1')
  await later.stop()
  const restored = await serveFrom(copyDir)
  const { error } = await watchBy('JSON lines', {
    url: restored.url,
    request: { watchCursor },
    headers: { 'x-api-key': key },
    onMessage: () => 'hang up',
  })
  await restored.stop()
  expect(error).toMatchObject({ reason: 'CURSOR_EXPIRED' })
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

it('an embedded database of PostgreSQL 17 is refused with 18, and stays as it is', async (test) => {
  const native = installPostgres('17')
  if (native === undefined) return test.skip('npm could not install PostgreSQL 17')
  const dataDir = join(folder, 'seventeen')
  const server = await startEmbeddedServer({ dataDir, binaries: await binariesIn(native) })
  await server.stop()
  const refused = await runCommand({ DATA_DIR: dataDir, CHAINS_FILE: 'none' }, ['verify'])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(
    `The database in ${dataDir}/pg is of PostgreSQL 17, and PostgreSQL 18 is installed here`,
  )
  const again = await startEmbeddedServer({ dataDir, binaries: await binariesIn(native) })
  await again.stop()
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

  it('pg_dump and pg_restore move a server', async (test) => {
    if (server === undefined) return test.skip(why)
    const [from, to] = [urlOf('postgres'), urlOf('restored')]
    runInShell(commandOf('pg_dump'), folder, { DATABASE_URL: from })
    runInShell(commandOf('pg_restore'), folder, { NEW_DATABASE_URL: to })
    expect(await runCommand({ DATABASE_URL: to }, ['verify'])).toMatchObject({ code: 0, stdout: '' })
    expect(await paymentsOf(to)).toEqual(await paymentsOf(from))
  })

  it('move an embedded database into another over their sockets', async (test) => {
    if (server === undefined) return test.skip(why)
    const binaries = await binariesIn(server.native, ['--locale=C.UTF-8'])
    // A socket's path may have 107 bytes.
    const home = await mkdtemp('/tmp/wb-')
    const [oldHome, newHome] = [join(home, 'a'), join(home, 'b')]
    const [old, fresh] = [
      await startEmbeddedServer({ dataDir: join(oldHome, 'data'), binaries, settings: { fsync: 'off' } }),
      await startEmbeddedServer({ dataDir: join(newHome, 'data'), binaries, settings: { fsync: 'off' } }),
    ]
    try {
      for (const [nth, { connection }] of [old, fresh].entries()) {
        const knex = createDatabase(connection())
        await migrate(knex)
        if (nth === 0) await importInto(knex)
        await knex.destroy()
      }
      runInShell(commandOf('PGPASSWORD=$(cat data/pg/password) pg_dump'), oldHome)
      cpSync(join(oldHome, 'waybill.dump'), join(newHome, 'waybill.dump'))
      runInShell(commandOf('PGPASSWORD=$(cat data/pg/password) pg_restore'), newHome)
      expect(await paymentsOf(fresh.connection())).toEqual(await paymentsOf(old.connection()))
    } finally {
      await Promise.all([old.stop(), fresh.stop()])
      await rm(home, { recursive: true })
    }
  })

  it('pg_basebackup copies a server that runs', async (test) => {
    if (server === undefined) return test.skip(why)
    const copy = join(folder, 'based')
    await mkdir(join(copy, 'pg'), { recursive: true })
    runInShell(commandOf('pg_basebackup'), folder, { DATABASE_URL: urlOf('postgres') })
    await rename(join(folder, 'base'), join(copy, 'pg/data'))
    cpSync(join(folder, 'tools/pg/password'), join(copy, 'pg/password'))
    const binaries = await binariesIn(server.native, ['--locale=C.UTF-8'])
    const copiedServer = await startEmbeddedServer({ dataDir: copy, binaries })
    expect(await paymentsOf(copiedServer.connection())).toEqual(await paymentsOf(urlOf('postgres')))
    await copiedServer.stop()
  })
})
