import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertPaymentsSql } from '../../bench/search/generate-payments.ts'
import { loadPayments } from '../../bench/search/load-payments.ts'
import { type PlainWay, plainStatement, plainWays } from '../../bench/search/plain-sql.ts'
import { PAGE, prepareClass } from '../../bench/search/prepare-queries.ts'
import { type PaymentSample, samplePayments } from '../../bench/search/sample-payments.ts'
import { searchClasses } from '../../bench/search/search-classes.ts'
import { createSubject, type PreparedQuery, type Subject } from '../../bench/search/subject.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

// Every class of the search benchmark, on 20,000 payments of its generator: the service finds what plain SQL finds.

const ROWS = 20_000
const SEED = 3
const account = { id: 1, name: 'account-1' }
let database: TestDatabase
let sampler: Knex
let subject: Subject
let sample: PaymentSample

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 })
  await loadPayments({ knex: database.knex, rows: ROWS, seed: SEED, connections: 2, say: () => {} })
  sampler = createDatabase(database.direct, { poolMin: 1, poolMax: 1 })
  subject = createSubject(database.knex, account)
  sample = await samplePayments(sampler, { accountId: account.id, count: 3_000, seed: SEED })
})

afterAll(async () => {
  await sampler.destroy()
  await database.drop()
})

test.each(searchClasses.map((each) => [each.name, each] as const))('%s finds what plain SQL finds', async (_, each) => {
  const { first, deep } = await prepareClass(each, { subject, sample, seed: SEED, variants: 2 })
  for (const query of [...first, ...deep]) {
    const { payments } = await subject.search(query.sent)
    const ids = payments.map(({ id }) => id)
    for (const way of plainWays(query.filter)) {
      const plain = await plainIds(query, way)
      expect({ way, ids }).toEqual({ way, ids: plain })
    }
  }
})

/** The page in the order of the answer. */
async function plainIds({ filter, input, position }: PreparedQuery, way: PlainWay): Promise<string[]> {
  const { sortBy = 'date', sortOrder = 'desc' } = input
  const { sql, bindings } = plainStatement({ filter, sortBy, sortOrder, position, limit: PAGE, way }, ['id'])
  const { rows } = await database.knex.raw<{ rows: { id: string }[] }>(sql, bindings as Knex.RawBinding[])
  const ids = rows.map(({ id }) => id)
  return position?.direction === 'backward' ? ids.toReversed() : ids
}

test('one seed gives the same payments, whatever ranges they are generated in', async () => {
  // the temporary table hides the stored one on this connection, which is not used afterwards
  await sampler.raw('create temporary table payments (like public.payments including defaults)')
  await sampler.raw(insertPaymentsSql({ rows: ROWS, seed: SEED }, 4_990, 5_490))
  await sampler.raw(insertPaymentsSql({ rows: ROWS, seed: SEED }, 5_490, 5_500))
  const { rows } = await sampler.raw<{ rows: { made: bigint; stored: bigint }[] }>(
    `select (select count(*) from payments) as made,
       (select count(*) from (select * from payments intersect select * from public.payments) same) as stored`,
  )
  expect(rows).toEqual([{ made: 510n, stored: 510n }])
})

test('the statistics that the generator writes equal a count of its payments', async () => {
  const { rows } = await database.knex.raw<{ rows: { wrong: bigint }[] }>(
    `select count(*) as wrong from payment_statistics s full join (
       select account_id, network, coalesce(source_network, '') as source_network, currency, coalesce(invoice_currency, '') as invoice_currency,
         coalesce(type, -1) as type, status, count(*) as n from payments group by 1, 2, 3, 4, 5, 6, 7) p
       using (account_id, network, source_network, currency, invoice_currency, type, status)
     where s.n is distinct from p.n`,
  )
  expect(rows).toEqual([{ wrong: 0n }])
})
