import { afterAll, beforeAll, expect, it } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import type { WatchMessage } from '../../src/search/watch/watch-payments.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../src/store/payment-row.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { PAYEES, PAYERS, REQUEST_IDS } from '../support/data/search-payments.ts'
import { applyMessage, createWriter, searchAll, startWatchProcess, type WatchProcess, type Writer } from './watching.ts'

// The events of a watch, applied one by one, give the payments that a search finds, while others write and however often the watch resumes.

const account: Account = { id: 1, name: 'one' }
const other: Account = { id: 2, name: 'two' }

let database: TestDatabase
let processes: readonly WatchProcess[]

beforeAll(async () => {
  database = await createTestDatabase()
  processes = [
    startWatchProcess(database),
    startWatchProcess(database, { batch: { changes: 50, events: 10, bytes: 4_000 } }),
  ]
})
afterAll(async () => {
  for (const process of processes) await process.stop()
  await database.drop()
})

/** Filters, and the same conditions without SQL. */
const filters: readonly { readonly input: SearchInput; readonly matches: (payment: Payment) => boolean }[] = [
  { input: {}, matches: () => true },
  { input: { status: ['CONFIRMED'] }, matches: ({ status }) => status === 'CONFIRMED' },
  { input: { status: ['PENDING', 'FAILED'] }, matches: ({ status }) => status === 'PENDING' || status === 'FAILED' },
  { input: { minAmount: '100' }, matches: ({ amountInUsd }) => Number(amountInUsd ?? -1) >= 100 },
  { input: { reference: ['INV-1'] }, matches: ({ reference }) => reference === 'INV-1' },
  { input: { network: ['base'] }, matches: ({ network, sourceNetwork }) => [network, sourceNetwork].includes('BASE') },
  { input: { payee: [PAYEES[0] ?? ''] }, matches: ({ payee }) => payee === PAYEES[0] },
  {
    input: { walletAddress: [PAYEES[0] ?? ''], type: ['DIRECT', 'CONVERSION'] },
    matches: ({ payer, payee, type = '' }) =>
      [payer, payee].includes(PAYEES[0]) && ['DIRECT', 'CONVERSION'].includes(type),
  },
  { input: { payer: [PAYERS[3] ?? ''] }, matches: ({ payer }) => payer === PAYERS[3] },
  { input: { currency: ['USDC-BASE'] }, matches: ({ currency }) => currency === 'USDC-BASE' },
  {
    input: { invoiceCurrency: ['EUR'], fromDate: '2026-03-03', toDate: '2026-03-12' },
    matches: ({ invoiceCurrency, timestamp }) =>
      invoiceCurrency === 'EUR' && timestamp >= new Date('2026-03-03') && timestamp < new Date('2026-03-13'),
  },
  {
    input: { 'exclude.status': ['CONFIRMED'], 'exclude.network': ['base'] },
    matches: ({ status, network, sourceNetwork }) =>
      status !== 'CONFIRMED' && ![network, sourceNetwork].includes('BASE'),
  },
  {
    input: { 'exclude.payer': PAYERS.slice(0, 4) },
    matches: ({ payer }) => !PAYERS.slice(0, 4).some((each) => each === payer),
  },
  { input: { referencePrefix: 'INV-' }, matches: ({ reference = '' }) => reference.startsWith('INV-') },
  {
    input: { requestId: REQUEST_IDS.slice(0, 2) },
    matches: ({ requestId = '' }) => REQUEST_IDS.slice(0, 2).includes(requestId),
  },
]

interface Watched {
  readonly input: SearchInput
  readonly events: WatchMessage[]
  readonly state: Map<string, Payment>
}

/** Watches from the beginning of the log until `isEnough`; hangs up at random moments and resumes in the other process. */
async function watchAll(
  input: SearchInput,
  isEnough: (heartbeatCursor: string) => boolean,
  seed: number,
): Promise<Watched> {
  const random = seededRandom(seed)
  const watched: Watched = { input, events: [], state: new Map() }
  let watchCursor = await cursorOfBeginning()
  for (let round = 0; ; round++) {
    const { signal } = new AbortController()
    const process = processes[round % processes.length] as WatchProcess
    let left = Math.floor(random() * 60)
    for await (const message of process.watch(account, input, { watchCursor, signal })) {
      watchCursor = message.watchCursor
      if (message.type !== 'HEARTBEAT') {
        watched.events.push(message)
        applyMessage(watched.state, message)
      } else if (isEnough(watchCursor)) return watched
      if (left-- === 0) break
    }
  }
}

let beginning: string | undefined

/** The cursor before the first change. */
async function cursorOfBeginning(): Promise<string> {
  if (beginning === undefined) throw new Error('the cursor was not taken while the log was empty')
  return beginning
}

async function cursorNow(): Promise<string> {
  for await (const { watchCursor } of processes[0]?.watch(
    account,
    {},
    {
      watchCursor: undefined,
      signal: new AbortController().signal,
    },
  ) ?? [])
    return watchCursor
  throw new Error('the watch sent nothing')
}

it('a watch misses and repeats nothing while four processes write', async () => {
  beginning = await cursorNow()
  const end: { cursor?: string } = {}
  const watching = filters.map(({ input }, at) => watchAll(input, (cursor) => cursor === end.cursor, at))
  const writers = Array.from({ length: 4 }, (_, at) =>
    createWriter(processes[at % 2]?.knex ?? database.knex, account, at + 1),
  )
  const stranger = createWriter(database.knex, other, 9)
  await Promise.all([...writers.map((writer) => writeTimes(writer, 20)), writeTimes(stranger, 10)])
  end.cursor = await cursorNow()

  const all = await Promise.all(watching)
  const log = await replayLog()
  for (const [at, { input, events, state }] of all.entries()) {
    const found = await searchAll(processes[0] as WatchProcess, account, input)
    expect(found.size).toBeGreaterThan(0)
    expect(sorted(state)).toEqual(sorted(found))
    const expected = expectedEvents(log, filters[at]?.matches ?? (() => false))
    expect(events.map(shortForm)).toEqual(expected)
    // once more, now that later changes stand in the log
    const again = await watchAll(input, (cursor) => cursor === end.cursor, at)
    expect(again.events.map(shortForm)).toEqual(expected)
  }
  expect(log.length).toBeGreaterThan(300)
  const types = new Set(all.flatMap(({ events }) => events.map(({ type }) => type)))
  expect(types).toEqual(new Set(['ADDED', 'UPDATED', 'REMOVED']))
}, 60_000)

/** Filters that match few payments, and one that matches none. */
const narrowFilters: readonly SearchInput[] = [
  { requestId: [REQUEST_IDS[0] ?? ''], status: ['CONFIRMED'] },
  { payer: [PAYERS[0] ?? ''], payee: [PAYEES[1] ?? ''] },
  { walletAddress: [PAYEES[2] ?? ''], network: ['base'] },
  { reference: ['INV-2'] },
  { q: 'a,b' },
  { currency: ['DAI-BASE'], sortBy: 'amount' },
  { network: ['sourceonly'], sortBy: 'status' },
  { minAmount: '200', maxAmount: '299', type: ['DIRECT'] },
  { status: ['FAILED'], fromDate: '2026-03-03', toDate: '2026-03-08', sortOrder: 'asc' },
  { txHash: [`0x${'ab'.repeat(32)}`] },
]

it('a watch from the cursor of a page continues where the page was read', async () => {
  const third: Account = { id: 3, name: 'three' }
  const writers = [processes[0], processes[1]].map((process, at) =>
    createWriter(process?.knex ?? database.knex, third, at + 21),
  )
  const end: { cursor?: string } = {}
  const watching: Promise<void>[] = []

  async function follow(process: WatchProcess, input: SearchInput): Promise<void> {
    const page = await process.search.search(third, { ...input, limit: 100 })
    expect(page.pagination.nextCursor).toBeUndefined()
    const state = new Map(page.payments.map((payment) => [payment.id, payment]))
    const { sortBy: _, sortOrder: __, ...filter } = input
    const terms = { watchCursor: page.watchCursor, signal: new AbortController().signal }
    for await (const message of process.watch(third, filter, terms)) {
      applyMessage(state, message)
      if (message.watchCursor === end.cursor && message.type === 'HEARTBEAT') break
    }
    expect(sorted(state)).toEqual(sorted(await searchAll(process, third, filter)))
  }

  const begin = (round: number) => {
    for (const [at, input] of narrowFilters.entries()) {
      if (at % 5 === round % 5) watching.push(follow(processes[round % 2] as WatchProcess, input))
    }
  }
  for (let round = 0; round < 10; round++) {
    begin(round)
    await Promise.all(writers.map((writer) => writeTimes(writer, 2)))
  }
  end.cursor = (await processes[0]?.search.search(third, {}))?.watchCursor ?? ''
  await Promise.all(watching)
  expect(watching).toHaveLength(20)
}, 60_000)

async function writeTimes(writer: Writer, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await writer.write()
}

const sorted = (state: ReadonlyMap<string, Payment>) => [...state.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))

const shortForm = (message: WatchMessage) =>
  message.type === 'HEARTBEAT'
    ? undefined
    : {
        change: message.change,
        type: message.type,
        id: 'id' in message ? message.id : message.payment.id,
        payment: message.payment,
      }

interface Logged {
  readonly change: bigint
  readonly id: string
  readonly before: Payment | undefined
  readonly after: Payment | undefined
}

/** Rebuilds the log backward from the current payments, without the SQL under test. */
async function replayLog(): Promise<Logged[]> {
  const columns = readPaymentColumns.join(', ')
  const read = async (sql: string) => (await runNamed(database.knex, [raw(sql)], undefined))[0] ?? []
  const rows = await read(`select ${columns} from payments where account_id = 1`)
  const now = new Map(rows.map((row) => [row[0], paymentOfRow(row, NO_HEADS)]))
  const changes = await read(
    `select ${columns}, change, kind, payment_id from payment_changes
     left join lateral jsonb_populate_record(null::payments, old) on true where payment_changes.account_id = 1 order by change`,
  )
  const log: Logged[] = []
  for (const row of changes.toReversed()) {
    const [change, kind, id] = row.slice(readPaymentColumns.length) as [string, string, string]
    const before = kind === '1' ? undefined : paymentOfRow(row, NO_HEADS)
    log.unshift({ change: BigInt(change), id, before, after: now.get(id) })
    if (before === undefined) now.delete(id)
    else now.set(id, before)
  }
  expect(now.size).toBe(0)
  return log
}

function expectedEvents(log: readonly Logged[], matches: (payment: Payment) => boolean) {
  return log.flatMap(({ change, id, before, after }) => {
    const [did, does] = [before !== undefined && matches(before), after !== undefined && matches(after)]
    if (!did && !does) return []
    const type = !does ? 'REMOVED' : did ? 'UPDATED' : 'ADDED'
    return [{ change, type, id, payment: after }]
  })
}
