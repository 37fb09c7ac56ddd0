import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { runPrepared, runPreparedText, runPreparedTexts, type TextRow } from '../../postgres/prepared.ts'
import { type Heads, NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import { createPageReader, type ReadTexts, type RunStatement } from '../page/read-page.ts'
import type { PlanThresholds } from '../plan/plan-terms.ts'
import type { PageQuery } from './payment-query.ts'

/** How far a chain has been looked at. */
export interface ChainProgress {
  /** CAIP-2. */
  readonly chainId: string
  readonly scannedBlock: bigint
  readonly scannedTime: Date
  readonly headBlock: bigint
}

/** Payments in one snapshot with the account's change log. */
export interface PaymentsOfPage {
  readonly payments: readonly Payment[]
  /** The last change of the account that they show. */
  readonly lastChange: bigint
  /**
   * The progress of all chains that were ever followed, as of just before: what is said of a block is true of the payments.
   */
  readonly progress: readonly ChainProgress[]
}

/** Reads payments. Every query asks for one account's rows alone. */
export interface PaymentRepository {
  /** The payments that follow a position, nearest first. Confirmations stand only with those that are final. */
  page(query: PageQuery, signal?: AbortSignal): Promise<readonly Payment[]>
  /** The same, with the confirmations of all of them, and as of when that is. */
  pageAsOf(query: PageQuery, signal?: AbortSignal): Promise<PaymentsOfPage>
  /** One payment of an account by id. */
  byId(accountId: number, id: string, signal?: AbortSignal): Promise<Payment | undefined>
}

/** @param thresholds - of the planner, where they are not the usual ones */
export function createPaymentRepository(knex: Knex, thresholds?: PlanThresholds): PaymentRepository {
  const run: RunStatement = (statement, signal) => runPrepared(knex, statement, signal)
  const readPage = createPageReader({
    run,
    columns: readPaymentColumns,
    ...(thresholds === undefined ? {} : { thresholds }),
  })
  return {
    async page(query, signal) {
      const { rows } = await readPage(query, (...asked) => runPreparedText(knex, ...asked), signal)
      return rows.map((row) => paymentOfRow(row, NO_HEADS))
    },
    async pageAsOf(query, signal) {
      const { readTexts, progress } = readWithProgress(knex)
      const { rows, lastChange } = await readPage(query, readTexts, signal)
      const chains = progress()
      const heads = headsOf(chains)
      return { payments: rows.map((row) => paymentOfRow(row, heads)), lastChange, progress: chains }
    },
    async byId(accountId, id, signal) {
      const { readTexts, progress } = readWithProgress(knex)
      const [row] = await readTexts({ sql: BY_ID_SQL, bindings: [accountId, id] }, signal)
      return row === undefined ? undefined : paymentOfRow(row, headsOf(progress()))
    },
  }
}

/** Asks how far chains are in the same round trip as the first statement, and before it. */
function readWithProgress(knex: Knex): { readTexts: ReadTexts; progress: () => readonly ChainProgress[] } {
  let known: readonly ChainProgress[] | undefined
  return {
    async readTexts(statement, signal) {
      if (known !== undefined) return runPreparedText(knex, statement, signal)
      const [chains = [], rows = []] = await runPreparedTexts(knex, [PROGRESS, statement], signal)
      known = chains.map(progressOfRow)
      return rows
    },
    progress: () => known ?? [],
  }
}

const PROGRESS = { sql: 'select chain_id, scanned_block, scanned_time, head_block from chain_state', bindings: [] }

function progressOfRow([chainId, scannedBlock, scannedTime, headBlock]: TextRow): ChainProgress {
  return {
    chainId: chainId as string,
    scannedBlock: BigInt(scannedBlock as string),
    scannedTime: parseTimestamp(scannedTime as string),
    headBlock: BigInt(headBlock as string),
  }
}

function headsOf(progress: readonly ChainProgress[]): Heads {
  return new Map(progress.map(({ chainId, headBlock }) => [chainId, headBlock]))
}

const BY_ID_SQL = `select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = ?`
