import { availableParallelism } from 'node:os'
import type { Knex } from 'knex'
import { type GeneratorTerms, INSERT_ACCOUNTS, insertPaymentsSql } from './generate-payments.ts'

/** How payments are loaded. */
export interface LoadOptions extends GeneratorTerms {
  /** A pool with space for `connections`. */
  readonly knex: Knex
  readonly connections?: number
  /** Prints progress. */
  readonly say: (text: string) => void
}

/** Fills these tables from the payments, as the migration that created them does. */
const FILL_DERIVED = [
  `insert into payment_statistics (account_id, network, source_network, currency, currency_symbol, invoice_currency, type, status,
    n, first_at, last_at)
  select account_id, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
    coalesce(type, -1), status, count(*), min(timestamp), max(timestamp)
  from payments group by 1, 2, 3, 4, 6, 7, 8`,
  `insert into account_changes (account_id, last_changed_at)
  select account_id, (select max(changed_at) from payments p where p.account_id = a.account_id) from (
    select distinct account_id from payment_statistics) a`,
]

/** Rows of one statement: few enough to see progress, and enough that planning costs little. */
const CHUNK_ROWS = 25_000

/**
 * Fills the empty tables of a migrated database: rows first, then the indexes and constraints, whose definitions are read from the
 * catalogs, and the tables that are derived from payments.
 */
export async function loadPayments(options: LoadOptions): Promise<void> {
  const { knex, say } = options
  const startedMs = performance.now()
  const seconds = () => `${((performance.now() - startedMs) / 1_000).toFixed(0)} s`
  await knex.raw(INSERT_ACCOUNTS)
  await knex.raw(`select setval(pg_get_serial_sequence('accounts', 'id'), (select max(id) from accounts))`)
  const objects = await dropIndexes(knex)
  await insertRows(options)
  say(`rows are in after ${seconds()}`)
  await knex.raw('vacuum (freeze, analyze) payments')
  for (const [at, { name, definition }] of objects.entries()) {
    await knex.raw(definition)
    say(`${at + 1} of ${objects.length} indexes after ${seconds()}: ${name}`)
  }
  for (const statement of FILL_DERIVED) await knex.raw(statement)
  await knex.raw('vacuum (analyze)')
  await knex.raw('checkpoint')
  say(`loaded in ${seconds()}`)
}

async function insertRows({ knex, rows, seed, say, connections = availableParallelism() }: LoadOptions): Promise<void> {
  let next = 0
  let inserted = 0
  const work = async () => {
    for (;;) {
      const first = next
      if (first >= rows) return
      next = Math.min(first + CHUNK_ROWS, rows)
      const end = next
      await knex.raw(insertPaymentsSql({ rows, seed }, first, end))
      const before = Math.floor((inserted / rows) * 10)
      inserted += end - first
      if (Math.floor((inserted / rows) * 10) > before) say(`${inserted} rows`)
    }
  }
  await Promise.all(Array.from({ length: connections }, work))
}

interface IndexObject {
  readonly name: string
  /** The statement that creates it again. */
  readonly definition: string
}

/** Drops the indexes and constraints of `payments`, except not-null. Returns how to create them again, constraints first. */
async function dropIndexes(knex: Knex): Promise<IndexObject[]> {
  const { rows: constraints } = await knex.raw<{ rows: IndexObject[] }>(
    `select quote_ident(conname) as name, format('alter table payments add constraint %I %s', conname, pg_get_constraintdef(oid)) as definition
     from pg_constraint where conrelid = 'payments'::regclass and contype <> 'n'
     order by array_position('{p,u,c,x,f}'::text[], contype::text), conname`,
  )
  const { rows: indexes } = await knex.raw<{ rows: IndexObject[] }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index i
     where indrelid = 'payments'::regclass and not exists (select from pg_constraint where conindid = i.indexrelid) order by 1`,
  )
  for (const { name } of indexes) await knex.raw(`drop index ${name}`)
  for (const { name } of constraints) await knex.raw(`alter table payments drop constraint ${name}`)
  return [...constraints, ...indexes]
}
