/**
 * Two processes of the release before serve; the schema is migrated under them, a third of them starts, and then processes of this release
 * take their places, while a client searches, walks pages, imports, creates requests that are paid on a chain, and watches.
 *
 * The client stands behind a balancer that gives calls to its processes in turn and is not told when one is about to stop. A call whose
 * connection is refused or closed before an answer begins goes to the next process, as balancers do; the watch goes on from its last cursor
 * when it ends with SHUTTING_DOWN or its connection closes. Anything else but 200 is a failed call.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Hex } from '../../src/domain/hex.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import type { Migration, TransactionMigration } from '../../src/postgres/migrations/migration.ts'
import type { MigrationEvent } from '../../src/postgres/migrations/migration-report.ts'
import { judgeMigrations } from '../../tools/migrations/check-migrations.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type Balancer, createBalancer } from '../support/clients/balancer.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { type Ended, startWaybill, type WaybillProcess } from '../support/process.ts'
import { RELEASE_BEFORE, unpackRelease, whyNoRelease } from '../support/release-before.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const SEEDS = 2_000
const PAGE = 100
const NETWORK = 'BASE'
const missing = await whyNoRelease(RELEASE_BEFORE)
const skipped = missing === undefined ? '' : ` (skipped: ${missing})`

let folder: string
let database: TestDatabase
let chain: TestChain
let settings: Record<string, string>
let balancer: Balancer
const processes: WaybillProcess[] = []

beforeAll(async () => {
  if (missing !== undefined) return
  folder = await makeTempFolder('rolling')
  ;[chain, database] = await Promise.all([startTestChain({ chainId: 31_590 }), createTestDatabase()])
  await unpackRelease(RELEASE_BEFORE, join(folder, 'before'))
  await database.knex.raw('drop schema public cascade')
  await database.knex.raw('create schema public')
  const file = join(folder, 'chains.json')
  const config = { ...chain.config({ name: NETWORK, finalityDepth: 3 }), blockTimeSeconds: 0.5 }
  await writeFile(file, JSON.stringify({ chains: [config] }))
  settings = { DATA_DIR: join(folder, 'unused'), PORT: '0', CHAINS_FILE: file, DATABASE_URL: urlOfDatabase(database) }
  const keys = [
    'keys',
    'create',
    '--account',
    'shop',
    '--rate',
    '0',
    '--scopes',
    'payments:read,requests:read,requests:write',
  ]
  const { stdout } = await run('before', keys)
  balancer = createBalancer(stdout.trim())
})
afterAll(async () => {
  for (const process of processes) {
    process.kill('SIGKILL')
    await process.ended
  }
  await chain?.stop()
  await database?.drop()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
})

type Release = 'before' | 'now'

const start = (release: Release, words: readonly string[], input?: readonly string[]) =>
  startWaybill(words, settings, Readable.from(input ?? []), release === 'before' ? join(folder, 'before') : undefined)

async function run(release: Release, words: readonly string[], input?: readonly string[]): Promise<Ended> {
  const ended = await start(release, words, input).ended
  expect([words.join(' '), ended.code, ended.code === 0 ? '' : ended.stderr]).toEqual([words.join(' '), 0, ''])
  return ended
}

async function serve(release: Release): Promise<{ readonly url: string; readonly process: WaybillProcess }> {
  const process = start(release, ['serve'])
  processes.push(process)
  const [, url = ''] = await process.says(/Waybill on (http:\S+):/)
  balancer.add(url)
  return { url, process }
}

/** What the processes logged as errors: a chain that stands still answers every call. */
const loggedErrors = () =>
  processes.flatMap((process) =>
    process
      .stderr()
      .split('\n')
      .filter((line) => line.startsWith('{"level":"error"')),
  )

/** Stops a process as a deployment does; the balancer finds out by itself. */
async function stop({ url, process }: Awaited<ReturnType<typeof serve>>): Promise<void> {
  process.kill('SIGTERM')
  expect(await process.ended).toMatchObject({ code: 0 })
  balancer.remove(url)
}

/** A step of each kind that may run beside the release before. */
const locks = (table: string) => [{ table, mode: 'ACCESS EXCLUSIVE', passes: 0 }] as const
const step = (name: string, sql: string, more: Partial<TransactionMigration>): Migration => ({
  ...more,
  name,
  up: async (trx) => void (await trx.raw(sql)),
})
const expanding: readonly Migration[] = [
  step('9001-column', 'alter table payments add column rolled integer default 7', {
    locks: locks('payments'),
  }),
  step('9002-column', 'alter table requests add column rolled text', { locks: locks('requests') }),
  step('9003-check', 'alter table requests add constraint rolled_amount check (amount > 0) not valid', {
    locks: locks('requests'),
  }),
  step('9004-valid', 'alter table requests validate constraint rolled_amount', {
    locks: [{ table: 'requests', mode: 'SHARE UPDATE EXCLUSIVE', passes: 1 }],
  }),
  {
    name: '9005-index',
    indexes: [{ build: 'payments_rolled', table: 'payments', definition: '(account_id, rolled, id)' }],
  },
  step('9006-table', 'create table rolled (account_id integer primary key)', {}),
]
const contracting = step('9007-contract', 'alter table payments drop column rolled', {
  locks: locks('payments'),
  contract: { unusedSince: MIGRATIONS.at(-1)?.name ?? '' },
})

interface Load {
  /** Rounds of each kind that went well. */
  readonly rounds: Record<'searches' | 'walks' | 'imports' | 'requests', number>
  readonly failures: unknown[]
  /** Which code imports next. */
  importer: Release
  readonly paid: { readonly requestId: string; readonly hash: Hex }[]
  readonly watched: string[]
  imported: number
}

const idOf = (n: number) => `0b7d2a31-6f0e-8c55-9d3b-${String(n).padStart(12, '0')}`

function lineOf(n: number, updatedSec = 0): string {
  const timestamp = new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString()
  const updatedAt = new Date(Date.UTC(2026, 6, 1) + updatedSec * 1_000).toISOString()
  const status = 'CONFIRMED'
  return `${JSON.stringify({ id: idOf(n), status, timestamp, updatedAt, amount: String(n + 1), currency: 'USDC-BASE', network: NETWORK })}\n`
}

interface Page {
  readonly payments: readonly { readonly id: string }[]
  readonly pagination: { readonly nextCursor?: string }
  readonly watchCursor: string
}

/** Every seed stands in a walk exactly once, and nothing stands in it twice. */
async function walk(): Promise<void> {
  const ids: string[] = []
  let next = `/payments?limit=${PAGE}`
  for (;;) {
    const page = await balancer.call<Page>(next)
    ids.push(...page.payments.map(({ id }) => id))
    if (page.pagination.nextCursor === undefined) break
    next = `/payments?cursor=${encodeURIComponent(page.pagination.nextCursor)}`
  }
  const found = new Set(ids)
  expect(ids.length).toBe(found.size)
  const missed = Array.from({ length: SEEDS }, (_, n) => idOf(n)).filter((id) => !found.has(id))
  expect(missed).toEqual([])
}

const searches = [
  'sortBy=amount&sortOrder=asc',
  'currency=USDC-BASE&includeTotal=exact',
  'status=CONFIRMED',
  `network=${NETWORK}`,
]

async function search(round: number): Promise<void> {
  const { payments } = await balancer.call<Page>(`/payments?limit=20&${searches[round % searches.length]}`)
  expect(payments).toHaveLength(20)
}

/** New payments, and changes of those of the round before. */
async function importSome(load: Load): Promise<void> {
  const from = SEEDS + load.imported
  const fresh = Array.from({ length: 40 }, (_, n) => lineOf(from + n))
  const changed = load.imported === 0 ? [] : Array.from({ length: 10 }, (_, n) => lineOf(from - 10 + n, from))
  const { stderr } = await run(load.importer, ['import', 'payments', '-', '--account', 'shop'], [...changed, ...fresh])
  expect(stderr).toContain(`${fresh.length + changed.length} written, 0 unchanged, 0 bad`)
  load.imported += fresh.length
}

async function createAndPay(load: Load): Promise<void> {
  const payee = `0x${(load.paid.length + 1).toString(16).padStart(40, '5')}` as const
  const body = { payee, amount: '1', invoiceCurrency: 'ETH-BASE', paymentCurrency: 'ETH-BASE', network: NETWORK }
  const request = await balancer.call<{ requestId: string; paymentReference: Hex }>('/v1/request', {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'idempotency-key': `rolling-${load.paid.length}` },
  })
  const terms = { kind: 'NATIVE', to: payee, amount: 10n ** 18n, paymentReference: request.paymentReference } as const
  const { transactionHash } = await chain.pay(chain.wallets[0], terms)
  load.paid.push({ requestId: request.requestId, hash: transactionHash })
}

/** Repeats work until the signal fires. */
async function repeat(
  load: Load,
  kind: keyof Load['rounds'],
  signal: AbortSignal,
  work: (round: number) => Promise<void>,
) {
  while (!signal.aborted) {
    try {
      await work(load.rounds[kind])
      load.rounds[kind]++
    } catch (error) {
      load.failures.push(error)
    }
    await sleep(20)
  }
}

async function rounds(load: Load, more: number): Promise<void> {
  const wanted = Object.entries(load.rounds).map(([kind, n]) => [kind, n + more] as const)
  await expect
    .poll(
      () => load.failures.length > 0 || wanted.every(([kind, n]) => load.rounds[kind as keyof Load['rounds']] >= n),
      { timeout: 120_000, interval: 100 },
    )
    .toBe(true)
}

it.skipIf(missing !== undefined)(
  `no call fails and no payment is missed or repeated while a fleet is upgraded${skipped}`,
  async () => {
    await run(
      'before',
      ['import', 'payments', '-', '--account', 'shop'],
      Array.from({ length: SEEDS }, (_, n) => lineOf(n)),
    )
    const old = [await serve('before'), await serve('before')]
    const { watchCursor } = await balancer.call<Page>('/payments?limit=1')
    const changes = await changesOf()
    const load: Load = {
      rounds: { searches: 0, walks: 0, imports: 0, requests: 0 },
      failures: [],
      importer: 'before',
      paid: [],
      watched: [],
      imported: 0,
    }
    const stopping = new AbortController()
    const watching = new AbortController()
    const watch = balancer.watch(watchCursor, watching.signal, ({ type, id }) => load.watched.push(`${type} ${id}`))
    const working = Promise.all([
      repeat(load, 'searches', stopping.signal, search),
      repeat(load, 'walks', stopping.signal, walk),
      repeat(load, 'imports', stopping.signal, () => importSome(load)),
      repeat(load, 'requests', stopping.signal, () => createAndPay(load)),
    ])
    const phase = async (name: string, work: () => Promise<unknown>) => {
      const startedMs = performance.now()
      const before = { ...load.rounds }
      await work()
      await rounds(load, 2)
      const done = Object.entries(load.rounds).map(([kind, n]) => `${n - before[kind as keyof typeof before]} ${kind}`)
      console.log(
        `${name}: ${((performance.now() - startedMs) / 1_000).toFixed(1)} s, ${done.join(', ')}, ${load.failures.length} failed`,
      )
      expect(load.failures).toEqual([])
      expect(loggedErrors()).toEqual([])
    }
    const readiness = () => Promise.all(old.map(async ({ url }) => (await fetch(`${url}/readyz`)).status))

    await phase('the release before', async () => {})
    const events: MigrationEvent[] = []
    await phase('migrated beside it', async () => {
      const migrations = [...MIGRATIONS, ...expanding, contracting]
      const ran = await migrate(database.knex, { migrations, report: (event) => events.push(event) })
      expect(ran.slice(-expanding.length)).toEqual(expanding.map(({ name }) => name))
      expect(await readiness()).toEqual([200, 200])
    })
    await phase('another process of the release before starts', async () => void old.push(await serve('before')))
    load.importer = 'now'
    const now: Awaited<ReturnType<typeof serve>>[] = []
    for (const each of old) {
      await phase('a process is replaced', async () => {
        if (now.length < 2) now.push(await serve('now'))
        await stop(each)
      })
    }
    await phase('a column that nobody uses is removed', async () => {
      const migrations = [...MIGRATIONS, ...expanding, contracting]
      expect(await migrate(database.knex, { migrations, contract: true })).toEqual([contracting.name])
    })
    stopping.abort()
    await working
    console.log(`migrated with ${events.filter(({ kind }) => kind === 'FAILED').length} tries for a lock that failed`)
    console.log(
      `${balancer.calls} calls, ${balancer.repeated} repeated on a closed connection, ${balancer.watches} watches`,
    )
    expect(load.failures).toEqual([])
    await nothingMissedOrRepeated(load, changes, async () => {
      watching.abort()
      await watch
    })
  },
)

async function changesOf(): Promise<bigint> {
  const row = await database.knex('account_changes').first('last_change')
  return row.last_change
}

async function nothingMissedOrRepeated(load: Load, since: bigint, endWatch: () => Promise<void>): Promise<void> {
  const patience = { timeout: 30_000, interval: 100 }
  const found = () => database.knex('payments').where({ detected: true })
  await expect.poll(async () => (await found()).length, patience).toBe(load.paid.length)
  const hashes = (await found()).map(({ tx_hash }) => `0x${tx_hash.toString('hex')}`)
  expect(hashes.toSorted()).toEqual(load.paid.map(({ hash }) => hash).toSorted())
  expect(await database.knex('payments').where({ detected: false })).toHaveLength(SEEDS + load.imported)
  expect(await database.knex('requests')).toHaveLength(load.paid.length)

  // settling goes on for a while after the last payment
  const words = ['', 'ADDED', 'UPDATED', 'REMOVED']
  const logged = async () => {
    const rows = await database.knex('payment_changes').where('change', '>', String(since)).orderBy('change')
    return rows.map(({ kind, payment_id }) => `${words[kind]} ${payment_id}`)
  }
  await expect.poll(async () => (await logged()).length - load.watched.length, patience).toBe(0)
  await endWatch()
  expect(load.watched).toEqual(await logged())
  await run('now', ['check', '--account', 'shop'])
}

it('the steps of this test keep the rules of migrations', async () => {
  const own = await createTestDatabase()
  await own.knex.raw('drop schema public cascade')
  await own.knex.raw('create schema public')
  expect(await judgeMigrations(own.knex, [...MIGRATIONS, ...expanding, contracting])).toEqual([])
  await own.drop()
})
