import { availableParallelism } from 'node:os'
import type { Knex } from 'knex'
import { ENTRY_FACTS } from '../../src/store/payment-changes.ts'
import { type GeneratorTerms, INSERT_ACCOUNTS, insertPaymentsSql } from './generate-payments.ts'

/** How payments are loaded. */
export interface LoadOptions extends GeneratorTerms {
  /** A pool with space for `connections`. */
  readonly knex: Knex
  readonly connections?: number
  /** Prints progress. */
  readonly say: (text: string) => void
}

const FILL_METADATA = `insert into payment_metadata (account_id, pair, id, ${ENTRY_FACTS})
  select account_id, key || '=' || value, id, ${ENTRY_FACTS} from payments cross join lateral jsonb_each_text(metadata)`

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
  await knex.raw(FILL_METADATA)
  await knex.raw('vacuum (freeze, analyze) payments, payment_metadata')
  say(`metadata is in after ${seconds()}`)
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

const TABLES = ['payments', 'payment_metadata']

/** Drops the indexes and constraints of `payments` and its metadata, except not-null. Returns how to create them again, constraints first. */
async function dropIndexes(knex: Knex): Promise<IndexObject[]> {
  const { rows: constraints } = await knex.raw<{ rows: (IndexObject & { of: string })[] }>(
    `select conrelid::regclass::text as of, quote_ident(conname) as name, format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as definition
     from pg_constraint where conrelid = any (?::regclass[]) and contype <> 'n'
     order by array_position('{p,u,c,x,f}'::text[], contype::text), conname`,
    [TABLES],
  )
  const { rows: indexes } = await knex.raw<{ rows: IndexObject[] }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index i
     where indrelid = any (?::regclass[]) and not exists (select from pg_constraint where conindid = i.indexrelid) order by 1`,
    [TABLES],
  )
  for (const { name } of indexes) await knex.raw(`drop index ${name}`)
  for (const { of, name } of constraints) await knex.raw(`alter table ${of} drop constraint ${name}`)
  return [...constraints, ...indexes]
}
