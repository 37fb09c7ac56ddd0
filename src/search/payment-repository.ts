import type { Knex } from 'knex'
import { paymentOfRow, type ReadPaymentRow, readPaymentColumns } from '../db/payment-row.ts'
import { runPrepared } from '../db/prepared.ts'
import type { Payment } from '../domain/payment.ts'
import type { PageQuery } from './payment-query-repository.ts'
import type { PlanThresholds } from './plan-terms.ts'
import { createPageReader, type PageRow, type RunStatement } from './read-page.ts'

/** How far a chain has been looked at. */
export interface ChainProgress {
  /** CAIP-2. */
  readonly chainId: string
  readonly scannedBlock: bigint
  readonly scannedTime: Date
  readonly headBlock: bigint
}

/** A row and the payment it stands for. */
export interface ReadPayment {
  readonly row: ReadPaymentRow
  readonly payment: Payment
}

/** Rows in one snapshot with the account's change log. */
export interface PaymentsOfPage {
  readonly payments: readonly ReadPayment[]
  readonly lastChange: bigint
}

/** Newest blocks by CAIP-2. */
export type Heads = ReadonlyMap<string, bigint>

/** Reads payments. Every query asks for one account's rows alone. */
export interface PaymentRepository {
  /**
   * The progress of all chains that were ever followed. Ask before the payments: what is then said of a block is true of the
   * payments that are read after it.
   */
  progress(signal?: AbortSignal): Promise<readonly ChainProgress[]>
  /** The rows that follow a position, nearest first. */
  page(query: PageQuery, heads: Heads, signal?: AbortSignal): Promise<readonly ReadPayment[]>
  /** The same, and the last change of the account that they show. */
  pageWithChange(query: PageQuery, heads: Heads, signal?: AbortSignal): Promise<PaymentsOfPage>
  /** One payment of an account by id. */
  byId(accountId: number, id: string, heads: Heads, signal?: AbortSignal): Promise<Payment | undefined>
}

/** @param thresholds - of the planner, where they are not the usual ones */
export function createPaymentRepository(knex: Knex, thresholds?: PlanThresholds): PaymentRepository {
  const run: RunStatement = (statement, signal) => runPrepared(knex, statement, signal)
  const readPage = createPageReader<ReadPaymentRow & PageRow>({
    run,
    columns: readPaymentColumns,
    ...(thresholds === undefined ? {} : { thresholds }),
  })
  const read = (row: ReadPaymentRow, heads: Heads): ReadPayment => ({
    row,
    payment: paymentOfRow(row, row.chain_id === null ? undefined : heads.get(row.chain_id)),
  })
  return {
    async progress(signal) {
      const rows = await run<ProgressRow>({ sql: PROGRESS_SQL, bindings: [] }, signal)
      return rows.map((row) => ({
        chainId: row.chain_id,
        scannedBlock: row.scanned_block,
        scannedTime: row.scanned_time,
        headBlock: row.head_block,
      }))
    },
    async page(query, heads, signal) {
      const { rows } = await readPage(query, signal)
      return rows.map((row) => read(row, heads))
    },
    async pageWithChange(query, heads, signal) {
      const { rows, lastChange } = await readPage(query, signal)
      return { payments: rows.map((row) => read(row, heads)), lastChange }
    },
    async byId(accountId, id, heads, signal) {
      const [row] = await run<ReadPaymentRow>({ sql: BY_ID_SQL, bindings: [accountId, id] }, signal)
      return row === undefined ? undefined : read(row, heads).payment
    },
  }
}

interface ProgressRow {
  readonly chain_id: string
  readonly scanned_block: bigint
  readonly scanned_time: Date
  readonly head_block: bigint
}

const PROGRESS_SQL = 'select chain_id, scanned_block, scanned_time, head_block from chain_state'

const BY_ID_SQL = `select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = ?`
