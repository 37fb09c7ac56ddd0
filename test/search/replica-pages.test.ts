/** Searches, summaries and exports of a primary and a real replica whose replay is paused. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createReadPools, type ReadPools } from '../../src/postgres/replicas/read-pools.ts'
import type { ExportInput } from '../../src/search/export/export-payments.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { createPooledReads, type PaymentReads } from '../../src/search/payment-reads.ts'
import { type ReplicatedDatabase, startReplicatedDatabase } from '../support/data/replica.ts'
import {
  chains,
  generatePayments,
  insertPayments,
  type StoredPayment,
  tokens,
} from '../support/data/search-payments.ts'
import { silentLogger } from '../support/logs.ts'
import { idsOf } from './open-search.ts'

let db: ReplicatedDatabase
let pools: ReadPools
let reads: PaymentReads
let account = { id: 0, name: 'none' }

beforeAll(async () => {
  db = await startReplicatedDatabase()
  pools = createReadPools({
    primary: db.primary,
    replicas: [{ name: 'replica', connection: db.replicaConnection }],
    database: {},
    logger: silentLogger,
    monotonicMs: () => performance.now(),
    probeEveryMs: 20,
    // a paused replica stays in use throughout a test
    maxLagMs: 600_000,
  })
  await pools.start()
  reads = createPooledReads(pools, { chains, tokens, cursorSecret: Buffer.alloc(32, 1) })
  await db.primary('chain_state').insert({
    chain_id: 'eip155:8453',
    network: 'BASE',
    genesis_hash: Buffer.alloc(32),
    scanned_block: 1,
    scanned_hash: Buffer.alloc(32),
    scanned_time: '2026-03-01T00:00:05Z',
    head_block: 10,
    final_block: 1,
    start_block: 0,
    updated_at: '2026-03-01T00:00:06Z',
  })
}, 60_000)

afterAll(async () => {
  await pools.stop()
  await db.stop()
})

let old: readonly StoredPayment[]
let newer: readonly StoredPayment[]
let block = 1

/** Stores payments that both servers have, then others that only the primary has, and a block up to which it alone has read. */
beforeEach(async () => {
  account = { id: account.id + 1, name: `account ${account.id + 1}` }
  const all = generatePayments(account.id, 60, account.id)
  old = all.filter((_, n) => n % 2 === 0)
  newer = all.filter((_, n) => n % 2 === 1)
  await insertPayments(db.primary, old)
  await replayed()
  await db.pauseReplay()
  await insertPayments(db.primary, newer)
  block += 1
  await db.primary('chain_state').update({ scanned_block: block })
  return goOn
})

async function goOn(): Promise<void> {
  await db.resumeReplay()
  await replayed()
}

/** Waits until the replica has everything, and is in use. */
async function replayed(): Promise<void> {
  await db.primary('chain_state').update({ updated_at: new Date() })
  const { updated_at: at } = await db.primary('chain_state').first()
  await vi.waitFor(async () => {
    expect((await db.replica()('chain_state').first())?.updated_at).toEqual(at)
    const isReplica = async (pool: typeof db.primary) => pool !== db.primary
    expect(await pools.read(isReplica)).toBe(true)
  }, 20_000)
}

const idsOfStored = (stored: readonly StoredPayment[]) => stored.map(({ payment }) => payment.id).toSorted()
const search = (input: SearchInput) => reads.search(account, { limit: 7, ...input })
const blockOf = ({ asOf }: Awaited<ReturnType<typeof search>>) => Number(asOf[0]?.block)

/** The pages from a cursor to the end. */
async function walk(cursor: string | undefined, back = false): Promise<string[]> {
  if (cursor === undefined) return []
  const page = await search({ cursor })
  const { nextCursor, prevCursor } = page.pagination
  const rest = await walk(back ? prevCursor : nextCursor, back)
  return back ? [...rest, ...idsOf(page)] : [...idsOf(page), ...rest]
}

test('a first page is of the replica, and so are its blocks and the pages after it', async () => {
  const first = await search({})
  expect(blockOf(first)).toBe(block - 1)
  const ids = [...idsOf(first), ...(await walk(first.pagination.nextCursor))]
  expect(ids.toSorted()).toEqual(idsOfStored(old))
})

test.each(['date', 'amount', 'status', 'changed'] as const)(
  'pages by %s after one of the primary repeat and lose nothing while the replica lags, in both directions',
  async (sortBy) => {
    const first = await search({ sortBy, noCache: true })
    expect(blockOf(first)).toBe(block)
    const ids = [...idsOf(first), ...(await walk(first.pagination.nextCursor))]
    expect(ids.toSorted()).toEqual(idsOfStored([...old, ...newer]))
    const second = await search({ cursor: first.pagination.nextCursor })
    const last = await search({ cursor: second.pagination.nextCursor })
    expect(await walk(last.pagination.prevCursor, true)).toEqual(ids.slice(0, 14))
  },
)

test('a walk begun on the lagging replica and continued when it has caught up repeats nothing', async () => {
  const first = await search({})
  await goOn()
  const second = await search({ cursor: first.pagination.nextCursor })
  expect(blockOf(second)).toBe(block)
  const ids = [...idsOf(first), ...idsOf(second), ...(await walk(second.pagination.nextCursor))]
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual(expect.arrayContaining(idsOfStored(old)))
})

test('a single payment, a poll for changes and the names of filters are those of the primary', async () => {
  const [one] = newer
  const id = one?.payment.id ?? ''
  expect((await reads.getPayment(account, id)).id).toBe(id)
  const poll = await search({ sortBy: 'changed', sortOrder: 'asc', limit: 100 })
  expect(idsOf(poll).toSorted()).toEqual(idsOfStored([...old, ...newer]))
  const payment = { ...(one as StoredPayment).payment, id: randomUUID(), eventIndex: 999, currency: 'NEWEST-BASE' }
  await insertPayments(db.primary, [{ accountId: account.id, final: true, payment }])
  expect((await search({ currency: ['NEWEST'] })).payments).toEqual([])
  expect((await search({ currency: ['NEWEST'], noCache: true })).payments).toHaveLength(1)
})

test('an export and a summary are of the replica, and an export that resumes of the primary', async () => {
  expect((await exported({})).toSorted()).toEqual(idsOfStored(old))
  expect((await reads.summarize(account, { groupBy: [] })).count).toBe(old.length)
  const all = [...old, ...newer].map(({ payment }) => payment)
  const sorted = all.toSorted((a, b) => a.timestamp.getTime() - b.timestamp.getTime() || (a.id < b.id ? -1 : 1))
  const ids = sorted.map(({ id }) => id)
  expect(await exported({ after: ids[20] })).toEqual(ids.slice(21))
})

async function exported(input: ExportInput): Promise<string[]> {
  const ids: string[] = []
  for await (const page of reads.readExport(account, input)) ids.push(...page.map(({ id }) => id))
  return ids
}
