import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { type ImportOptions, importLines, type LineTarget, type Outcome } from '../../src/imports/lines/import-lines.ts'
import { readPayment } from '../../src/imports/lines/payment-batch.ts'
import { createPaymentImportRepository } from '../../src/imports/sql/payment-import-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

/**
 * An import has two ways to store a line, and recognizes most unchanged lines without parsing them. Here each file is imported twice: in
 * batches, by any of the ways, and line by line, which defines the right outcome.
 */
let database: TestDatabase
let number = 0
const NOW = new Date('2026-03-01T00:00:00Z')

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const openAccount = async (name: string) => createApiKeyRepository(database.knex).ensureAccount(`${name}-${number}`)

/** Parses each line and compares it with the stored row, in a transaction of its own. */
function lineByLine(account: Account): LineTarget {
  const repository = createPaymentImportRepository(database.knex, () => NOW)
  return {
    prepare: async ([line, ...others]) => ({
      async store() {
        if (line === undefined || others.length > 0) throw new RangeError('one line at a time')
        const read = readPayment(line, account.id)
        return read.ok ? repository.write(account, [read.item]) : [{ kind: 'bad', error: read.error }]
      },
    }),
  }
}

async function runImport(text: string, target: LineTarget, options: ImportOptions): Promise<string[]> {
  const all: string[] = []
  const note = (outcome: Outcome) => void all.push(outcome.kind === 'bad' ? outcome.error.message : outcome.kind)
  const noting: LineTarget = {
    async prepare(lines) {
      const prepared = await target.prepare(lines)
      return {
        async store() {
          const outcomes = await prepared.store()
          outcomes.forEach(note)
          return outcomes
        },
      }
    },
  }
  await importLines(Readable.from([Buffer.from(text)]), noting, options)
  return all
}

/** Without what differs between accounts, and between one transaction and several. */
const comparable = (row: object) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !['account_id', 'seq', 'changed_at'].includes(name)))

async function tablesOf({ id }: Account) {
  const payments = await database.knex('payments').where({ account_id: id }).orderBy('id')
  const statistics = await database
    .knex('payment_statistics')
    .where({ account_id: id })
    .where('n', '<>', 0)
    .orderBy(['network', 'source_network', 'currency', 'invoice_currency', 'type', 'status'])
  const logged = await database.knex('payment_changes').where({ account_id: id }).select('kind', 'payment_id')
  return {
    payments: payments.map(comparable),
    statistics: statistics.map(comparable),
    logged: logged.map(({ kind, payment_id }) => `${kind} ${payment_id}`).toSorted(),
  }
}

const ids = Array.from({ length: 6 }, (_, n) => `0b7d2a31-6f0e-8c55-9d3b-00000000000${n}`)
const hashOf = (n: number) => `0x${String(n).padStart(64, 'ab')}`

const payment = fc.record(
  {
    id: fc.constantFrom(...ids),
    timestamp: fc.constantFrom('2026-02-01T12:00:00Z', '2026-02-02T12:00:00Z'),
    updatedAt: fc.constantFrom(
      '2026-02-03T00:00:00Z',
      '2026-02-03T00:00:01Z',
      '2026-02-04T00:00:00Z',
      '2099-01-01T00:00:00Z',
    ),
    amount: fc.constantFrom('1', '2.50', '1e3'),
    currency: fc.constantFrom('USDC-BASE', 'ETH-BASE'),
    network: fc.constantFrom('BASE', 'polygon'),
    status: fc.constantFrom('CONFIRMED', 'PENDING'),
    txHash: fc.constantFrom(hashOf(1), hashOf(2)),
    eventIndex: fc.constantFrom(0, 1),
    reference: fc.constantFrom('a', `"id":"${ids[0]}"`, 'ü\\N\t'),
    fees: fc.constantFrom([], [{ type: 'GAS', stage: 'SENDING', amount: '1', currency: 'ETH-BASE' }], [{ id: ids[1] }]),
  },
  { requiredKeys: ['id', 'timestamp', 'amount', 'currency', 'network', 'status'] },
)

/** The same payment, written so that its id is found at once, later, not at all, or in a wrong place. */
const line = fc.tuple(payment, fc.nat(7)).map(([{ id, ...rest }, form]) => {
  const members = JSON.stringify(rest).slice(1, -1)
  const forms = [
    `{"id":"${id}",${members}}`,
    `{"id":"${id}",${members}}`,
    `{"id":"${id}",${members}}`,
    `{${members},"id":"${id}"}`,
    `{"id":"${id.toUpperCase()}",${members}}`,
    ` { "id" : "${id}", ${members} }`,
    `{"gas":{"amount":"1","currency":"ETH-BASE","id":"${ids[2]}"},"id":"${id}",${members}}`,
    `{"\\u0069d":"${id}","reference":"\\"id\\":\\"${ids[3]}\\"",${members.replace(/,?"reference":"(?:[^"\\]|\\.)*"/, '')}}`,
  ]
  return forms[form] as string
})
const garbage = fc.constantFrom(
  '',
  'x',
  '{"id":"',
  `{"id":"${ids[0]}`,
  `{"id":"${ids[0]}"}`,
  '{"id":"0b7d2a31+6f0e-8c55-9d3b-000000000000"}',
)

/** What may happen to a row between two imports: detection finds it on chain, a reorg takes that back, or it is deleted. */
const DISTURBANCES = ['nothing', 'nothing', 'seen', 'unseen', 'gone'] as const
async function disturb(what: (typeof DISTURBANCES)[number], account: Account, id: string): Promise<void> {
  const rows = database.knex('payments').where({ account_id: account.id, id })
  if (what === 'seen') await rows.update({ detected: true, line_hash: null, updated_at: NOW })
  if (what === 'unseen') await rows.where({ detected: true }).update({ detected: false, updated_at: NOW })
  if (what === 'gone') await rows.delete()
}

const event = (n: number) => ({ txHash: hashOf(n), eventIndex: 0 })
const least = {
  timestamp: '2026-02-01T12:00:00Z',
  amount: '1',
  currency: 'USDC-BASE',
  network: 'BASE',
  status: 'CONFIRMED',
}
const known = { id: ids[0], ...least, ...event(1) }
/** After these, the event of the known line belongs to another payment. */
const takeItsEvent = [
  { id: ids[0], updatedAt: '2026-02-04T00:00:00Z', ...least, ...event(2) },
  { id: ids[1], ...least, ...event(1) },
]
const textOf = (payments: readonly object[]) => payments.map((one) => JSON.stringify(one)).join('\n')
const taken = expect.stringContaining('belongs to payment')

it('parses a known line when earlier lines of its batch change its payment', async () => {
  number += 1
  const target = importPayments(database.knex, await openAccount('shop'), () => NOW)
  expect(await runImport(textOf([known]), target, {})).toEqual(['written'])
  expect(await runImport(textOf([known]), target, {})).toEqual(['unchanged'])
  expect(await runImport(textOf([...takeItsEvent, known]), target, {})).toEqual(['written', 'written', taken])
})

it('parses a known line when batches that are not stored yet change its payment', async () => {
  number += 1
  const target = importPayments(database.knex, await openAccount('shop'), () => NOW)
  await runImport(textOf([known]), target, {})
  const lines = [...takeItsEvent, known].map((one, at) => ({
    number: at + 1,
    content: Buffer.from(JSON.stringify(one)),
  }))
  const prepared = []
  for (const one of lines) prepared.push(await target.prepare([one]))
  const outcomes: Outcome[] = []
  for (const batch of prepared) outcomes.push(...(await batch.store()))
  expect(outcomes.map((outcome) => (outcome.kind === 'bad' ? outcome.error.reason : outcome.kind))).toEqual([
    'written',
    'written',
    'EVENT_TAKEN',
  ])
})

it('stores new lines of which another import has stored some meanwhile', async () => {
  number += 1
  const shop = await openAccount('shop')
  const [first, second] = [
    importPayments(database.knex, shop, () => NOW),
    importPayments(database.knex, shop, () => NOW),
  ]
  const lines = ids.map((id, at) => ({
    number: at + 1,
    content: Buffer.from(JSON.stringify({ id, ...least, ...event(at) })),
  }))
  const [early, late] = [await first.prepare(lines.slice(0, 3)), await second.prepare(lines)]
  expect(await early.store()).toEqual(Array.from({ length: 3 }, () => ({ kind: 'written' })))
  expect((await late.store()).map(({ kind }) => kind)).toEqual([
    ...Array.from({ length: 3 }, () => 'unchanged'),
    ...Array.from({ length: 3 }, () => 'written'),
  ])
  expect((await tablesOf(shop)).logged).toEqual(ids.map((id) => `1 ${id}`))
})

it('gives the same result for a file in batches as for its lines one by one', async () => {
  const file = fc.array(fc.oneof({ weight: 9, arbitrary: line }, { weight: 1, arbitrary: garbage }), { maxLength: 14 })
  const step = fc.record({
    file,
    again: fc.boolean(),
    batchLines: fc.integer({ min: 1, max: 9 }),
    what: fc.constantFrom(...DISTURBANCES),
    id: fc.constantFrom(...ids),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
      number += 1
      const [fast, slow] = [await openAccount('fast'), await openAccount('slow')]
      let before: string[] = []
      for (const { file: lines, again, batchLines, what, id } of steps) {
        before = again ? [...before, ...lines] : lines
        const text = before.join('\n')
        const outcomes = await runImport(
          text,
          importPayments(database.knex, fast, () => NOW),
          { batchLines },
        )
        expect(outcomes).toEqual(await runImport(text, lineByLine(slow), { batchLines: 1 }))
        expect(await tablesOf(fast)).toEqual(await tablesOf(slow))
        for (const account of [fast, slow]) await disturb(what, account, id)
      }
    }),
    { numRuns: Number(process.env.IMPORT_RUNS ?? 15) },
  )
})
