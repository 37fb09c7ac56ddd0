import type { Knex } from 'knex'
import { copyText } from '../../src/postgres/copy-rows.ts'
import { paymentColumns } from '../../src/store/payment-row.ts'
import type { CpuSeconds } from '../cpu-seconds.ts'

/** What the least takes that stores payments of known requests, in all. */
export interface PlainCost {
  readonly seconds: number
  readonly postgresCpuSeconds: number
}

/** As many as a step of back-fill writes. */
const ROWS_A_TRANSACTION = 2_000

/** Of more, the planner reads all requests instead of looking these up. */
const ROWS_AN_UPDATE = 200

const PAID = 3
const OPEN = 1

/**
 * Stores the payments that are stored once more, as the best user of PostgreSQL would who has the rows already: by COPY into the same table with the same
 * indexes, and an update of the requests that they pay. Nothing is looked up, matched, settled, counted or logged. Deletes what was there.
 */
export async function measurePlain(knex: Knex, accountId: number, readCpu: () => CpuSeconds): Promise<PlainCost> {
  const texts = await readTexts(knex)
  const { rows } = await knex.raw<{ rows: { request_id: Buffer }[] }>(
    'select request_id from payments order by block_number, tx_hash',
  )
  await knex.raw('truncate payments')
  await knex.raw('update requests set status = ?', [OPEN])
  await knex.raw('vacuum full analyze requests')
  await knex.raw('checkpoint')
  const cpuBefore = readCpu()
  const startedMs = performance.now()
  for (const [nth, text] of texts.entries()) {
    const paid = rows.slice(nth * ROWS_A_TRANSACTION, (nth + 1) * ROWS_A_TRANSACTION)
    await knex.transaction(async (trx) => {
      await copyText(trx, { table: 'payments', columns: paymentColumns }, [text])
      for (let from = 0; from < paid.length; from += ROWS_AN_UPDATE) {
        const ids = paid.slice(from, from + ROWS_AN_UPDATE).map(({ request_id }) => request_id)
        const sql = 'update requests set status = ? where account_id = ? and request_id = any(?)'
        await trx.raw(sql, [PAID, accountId, ids])
      }
    })
  }
  const seconds = (performance.now() - startedMs) / 1_000
  return { seconds, postgresCpuSeconds: readCpu().postgres - cpuBefore.postgres }
}

/** The stored payments in the text format of COPY, a transaction's each. */
async function readTexts(knex: Knex): Promise<Buffer[]> {
  const row = paymentColumns.map((column) => String.raw`coalesce(replace("${column}"::text, '\', '\\'), '\N')`)
  const { rows } = await knex.raw<{ rows: { line: string }[] }>(
    `select concat_ws(chr(9), ${row.join(', ')}) as line from payments order by block_number, tx_hash`,
  )
  const texts: Buffer[] = []
  for (let from = 0; from < rows.length; from += ROWS_A_TRANSACTION) {
    const some = rows.slice(from, from + ROWS_A_TRANSACTION)
    texts.push(Buffer.from(some.map(({ line }) => `${line}\n`).join('')))
  }
  return texts
}
