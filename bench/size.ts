/**
 * Measures how much disk a payment takes: its row, each of its indexes, its entries in the log of changes, its share of the statistics, a
 * request, and the write-ahead log of its arrival. Payments come in by time with all indexes in place, as they do in use, so the indexes are as
 * loose as they become; then they are built afresh.
 *
 *   npm run bench:size -- --rows 200000
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Knex } from 'knex'
import { openEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrations/migrate.ts'
import { type Figure, report } from './report.ts'
import { INSERT_ACCOUNTS, insertPaymentsSql } from './search/generate-payments.ts'

const { values } = parseArgs({ options: { rows: { type: 'string', default: '200000' } } })
const ROWS = Number(values.rows)
const CHUNK_ROWS = 5_000

const FILL_STATISTICS = `insert into payment_statistics (account_id, network, source_network, currency, currency_symbol, invoice_currency, type,
    status, n, first_at, last_at)
  select account_id, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
    coalesce(type, -1), status, count(*), min(timestamp), max(timestamp)
  from payments group by 1, 2, 3, 4, 6, 7, 8`

/** What a payment that is imported leaves in the log. */
const LOG_ARRIVALS = `insert into payment_changes (account_id, change, kind, payment_id, at)
  select account_id, row_number() over (partition by account_id order by timestamp, id), 1, id, updated_at from payments`

/** What a later change of each payment adds, such as its confirmation. */
const LOG_CHANGES = `insert into payment_changes (account_id, change, kind, payment_id, at, old)
  select account_id, ${ROWS} + row_number() over (partition by account_id order by timestamp, id), 2, id, updated_at, to_jsonb(payments)
  from payments`

const REQUESTS = `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency,
    payment_currency, network, reference, created_at, status)
  select account_id, '\\x01'::bytea || sha256(uuid_send(id)), substr(uuid_send(id), 1, 8), substr(sha256(uuid_send(id)), 1, 8),
    sha256(sha256(uuid_send(id))), coalesce(payee, '\\x01'::bytea || substr(sha256(uuid_send(id)), 1, 20)), amount,
    coalesce(invoice_currency, currency), currency, network, reference, timestamp, 4
  from payments order by timestamp`
const TOPICS = 'insert into reference_topics (topic, account_id) select topic, account_id from requests'

const folder = await mkdtemp(join(tmpdir(), 'waybill-size-'))
await using stack = new AsyncDisposableStack()
stack.defer(() => rm(folder, { recursive: true }))
const settings = { fsync: 'off', max_wal_size: '8GB', checkpoint_timeout: '30min', shared_buffers: '512MB' }
const server = await openEmbeddedServer({ dataDir: join(folder, 'data'), settings })
stack.defer(() => server.release())
const knex = stack.adopt(createDatabase(server.connection(), { poolMax: 1 }), (pool) => pool.destroy())
await migrate(knex)

await knex.raw(INSERT_ACCOUNTS)
await knex.raw('checkpoint')
const walBefore = await walBytes(knex)
for (let first = 0; first < ROWS; first += CHUNK_ROWS) {
  await knex.raw(insertPaymentsSql({ rows: ROWS, seed: 1 }, first, Math.min(first + CHUNK_ROWS, ROWS)))
}
const wal = (await walBytes(knex)) - walBefore
const heap = await sizeOf(knex, 'heap', 'payments')
const loose = await indexSizes(knex)
await knex.raw(FILL_STATISTICS)
await knex.raw(LOG_ARRIVALS)
const arrivals = await sizeOf(knex, 'all', 'payment_changes')
await knex.raw(LOG_CHANGES)
const changes = (await sizeOf(knex, 'all', 'payment_changes')) - arrivals
await knex.raw(REQUESTS)
await knex.raw(TOPICS)
await knex.raw('reindex table payments')
const dense = await indexSizes(knex)
const [counts = { combinations: 0 }] = (
  await knex.raw<{ rows: { combinations: number }[] }>('select count(*)::int as combinations from payment_statistics')
).rows

const perRow = (name: string, bytes: number): Figure => ({ name, value: bytes / ROWS, unit: 'bytes/row' })
const total = (sizes: ReadonlyMap<string, number>) => [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
await report('size', [
  { name: 'rows', value: ROWS, unit: 'payments' },
  perRow('payment.heap', heap),
  perRow('payment.indexes', total(loose)),
  perRow('payment.indexes.dense', total(dense)),
  ...[...loose].map(([name, bytes]) => perRow(`index.${name}`, bytes)),
  perRow('change.arrival', arrivals),
  perRow('change.update', changes),
  {
    name: 'statistics',
    value: (await sizeOf(knex, 'all', 'payment_statistics')) / counts.combinations,
    unit: 'bytes/combination',
  },
  perRow('request', await sizeOf(knex, 'all', 'requests')),
  perRow('request.topic', await sizeOf(knex, 'all', 'reference_topics')),
  perRow('wal', wal),
])

async function sizeOf(database: Knex, part: 'heap' | 'all', table: string): Promise<number> {
  const sql =
    part === 'heap' ? 'select pg_table_size(?)::float8 as bytes' : 'select pg_total_relation_size(?)::float8 as bytes'
  const { rows } = await database.raw<{ rows: { bytes: number }[] }>(sql, [table])
  return rows[0]?.bytes ?? Number.NaN
}

async function indexSizes(database: Knex): Promise<Map<string, number>> {
  const { rows } = await database.raw<{ rows: { name: string; bytes: number }[] }>(
    `select indexrelid::regclass::text as name, pg_relation_size(indexrelid)::float8 as bytes from pg_index
     where indrelid = 'payments'::regclass order by 2 desc`,
  )
  return new Map(rows.map(({ name, bytes }) => [name, bytes]))
}

async function walBytes(database: Knex): Promise<number> {
  const { rows } = await database.raw<{ rows: { bytes: number }[] }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
  )
  return rows[0]?.bytes ?? Number.NaN
}
