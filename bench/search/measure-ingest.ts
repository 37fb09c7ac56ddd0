import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Account } from '../../src/domain/account.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import { deletePayments, lockAccount, readPaymentsById } from '../../src/store/payment-changes.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../src/store/payment-row.ts'
import { meterCpu } from '../cpu-seconds.ts'

export interface MeasuredIngest {
  readonly added: IngestSpeed
  readonly unchanged: IngestSpeed
}

/** CPU time and WAL of a row are comparable even where other work slows the machine. */
export interface IngestSpeed {
  readonly rowsPerSecond: number
  /** CPU microseconds a row of this process, and of the server. */
  readonly node: number
  readonly postgres: number
  /** Bytes of the write-ahead log a row, full-page images included. */
  readonly walBytes: number
}

export interface IngestOptions {
  readonly knex: Knex
  /** The account that gets the payments. */
  readonly account: Account
  /** The account whose newest payments are copied. */
  readonly modelAccountId: number
  readonly rows: number
  readonly say: (text: string) => void
}

const CHUNK_BYTES = 256 * 1024
const PAGE_ROWS = 5_000

/**
 * Imports new payments into a large account, with all its indexes, and the same file once more; then deletes them, so that the database is
 * as before.
 */
export async function measureIngest(options: IngestOptions): Promise<MeasuredIngest> {
  const { knex, account, say } = options
  const folder = await mkdtemp(join(tmpdir(), 'waybill-ingest-'))
  try {
    const file = join(folder, 'payments.ndjson')
    const ids = await writeModelLines(file, options)
    const changesBefore = await lastChange(knex, account)
    await knex.raw('checkpoint')
    try {
      const added = await measureImport(file, options, 'written', ids.length)
      const unchanged = await measureImport(file, options, 'unchanged', ids.length)
      return { added, unchanged }
    } finally {
      say('deleting the imported payments')
      await deleteImported(knex, account, { ids, changesBefore })
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function measureImport(
  file: string,
  { knex, account, say }: IngestOptions,
  outcome: 'written' | 'unchanged',
  rows: number,
): Promise<IngestSpeed> {
  const readCpu = await meterCpu(knex)
  const walBefore = await walBytes(knex)
  const before = readCpu()
  const startedMs = performance.now()
  const source = createReadStream(file, { highWaterMark: CHUNK_BYTES })
  const counts = await importLines(source, importPayments(knex, account))
  const seconds = (performance.now() - startedMs) / 1_000
  const after = readCpu()
  const perRow = (cpuSeconds: number) => (cpuSeconds * 1e6) / rows
  const speed: IngestSpeed = {
    rowsPerSecond: rows / seconds,
    node: perRow(after.node - before.node),
    postgres: perRow(after.postgres - before.postgres),
    walBytes: ((await walBytes(knex)) - walBefore) / rows,
  }
  say(`${outcome}: ${JSON.stringify({ ...counts, ...speed })}`)
  if (counts[outcome] !== rows) throw new Error(`${counts[outcome]} of ${rows} lines were ${outcome}`)
  return speed
}

async function walBytes(knex: Knex): Promise<number> {
  const { rows } = await knex.raw<{ rows: { bytes: string }[] }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bytes`,
  )
  return Number(rows[0]?.bytes)
}

interface ModelLines extends Pick<IngestOptions, 'knex' | 'modelAccountId' | 'rows'> {
  /** Other texts give payments with other ids. */
  readonly salt?: string
}

/**
 * Writes a file of new payments that are like the newest of an account.
 *
 * @returns their ids
 */
export async function writeModelLines(
  path: string,
  { knex, modelAccountId, rows, salt = 'ingest' }: ModelLines,
): Promise<string[]> {
  const stream = createWriteStream(path)
  const ids: string[] = []
  const { rows: models } = await knex.raw<{ rows: { id: string }[] }>(
    'select id from payments where account_id = ? order by timestamp desc, id desc limit ?',
    [modelAccountId, rows],
  )
  const oldestFirst = models.map(({ id }) => id).toReversed()
  for (let at = 0; at < oldestFirst.length; at += PAGE_ROWS) {
    for (const payment of await readModels(knex, modelAccountId, oldestFirst.slice(at, at + PAGE_ROWS))) {
      const made = withOwnIdentity(payment, salt)
      ids.push(made.id)
      if (!stream.write(`${formatPaymentLine(made)}\n`)) await once(stream, 'drain')
    }
  }
  stream.end()
  await once(stream, 'finish')
  return ids
}

async function readModels(knex: Knex, accountId: number, ids: readonly string[]): Promise<Payment[]> {
  const sql = `select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = any(?::uuid[]) order by timestamp, id`
  const [rows = []] = await runNamed(knex, [raw(sql, [accountId, ids])], undefined)
  return rows.map((row) => paymentOfRow(row, NO_HEADS))
}

/** A copy of the payment with other ids, hashes and references, so that nothing clashes. */
function withOwnIdentity(payment: Payment, salt: string): Payment {
  const digest = (text: string) => createHash('sha256').update(`${salt} ${text}`).digest('hex')
  const id = digest(payment.id)
  return {
    ...payment,
    id: `${id.slice(0, 8)}-${id.slice(8, 12)}-8${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20, 32)}`,
    ...(payment.txHash && { txHash: `0x${digest(payment.txHash)}` }),
    ...(payment.sourceTxHash && { sourceTxHash: `0x${digest(payment.sourceTxHash)}` }),
    ...(payment.requestId && { requestId: `01${digest(payment.requestId)}` }),
    ...(payment.paymentReference && { paymentReference: `0x${digest(payment.paymentReference).slice(0, 16)}` }),
  }
}

async function lastChange(knex: Knex, account: Account): Promise<bigint> {
  const [row] = await knex('account_changes').where({ account_id: account.id }).select<{ last_change: bigint }[]>()
  return row?.last_change ?? 0n
}

/** Deletes the payments and their changes. Nobody has read these changes, so their numbers can be used again. */
async function deleteImported(
  knex: Knex,
  { id: accountId }: Account,
  { ids, changesBefore }: { ids: readonly string[]; changesBefore: bigint },
): Promise<void> {
  await knex.transaction(async (trx) => {
    const locked = await lockAccount(trx, accountId, new Date())
    await deletePayments(locked, await readPaymentsById(locked, ids))
    const change = String(changesBefore)
    await trx.raw('delete from payment_changes where account_id = ? and change > ?', [accountId, change])
    await trx.raw('update account_changes set last_change = ? where account_id = ?', [change, accountId])
  })
  await knex.raw('vacuum (index_cleanup on, analyze) payments, payment_changes, payment_statistics')
}
