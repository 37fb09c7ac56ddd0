import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { runPrepared, runPreparedText, runPreparedTexts } from '../../postgres/prepared.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import type { PlanThresholds } from '../plan/plan-terms.ts'
import { type ChainProgress, chainProgressOf, chainProgressStatement, headsOf } from '../sql/chain-progress.ts'
import { paymentByIdStatement } from '../sql/payment-by-id.ts'
import type { PageQuery } from './page-query.ts'
import { createPageReader, type ReadTexts } from './read-page.ts'

/** Payments of a page, in one snapshot with the account's change log. */
export interface PaymentsOfPage {
  readonly payments: readonly Payment[]
  /** The last change of the account that the payments reflect. */
  readonly lastChange: bigint
  /** Every chain that was ever followed. Read just before the page, so that the page holds all payments of the scanned blocks. */
  readonly progress: readonly ChainProgress[]
}

/** Reads payments. Every query is limited to one account. */
export interface PaymentRepository {
  /**
   * The payments after a position, nearest first. `confirmations` is known only of final payments.
   */
  page(query: PageQuery, signal?: AbortSignal): Promise<readonly Payment[]>
  /** The same with the confirmations of all payments and the progress that they are counted from. */
  pageAsOf(query: PageQuery, signal?: AbortSignal): Promise<PaymentsOfPage>
  /** One payment; undefined where the account has none of that id. */
  byId(accountId: number, id: string, signal?: AbortSignal): Promise<Payment | undefined>
}

/** @param thresholds - of the planner; tests give low ones */
export function createPaymentRepository(knex: Knex, thresholds?: PlanThresholds): PaymentRepository {
  const readPage = createPageReader({
    run: (statement, signal) => runPrepared(knex, statement, signal),
    columns: readPaymentColumns,
    thresholds,
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
      const [row] = await readTexts(paymentByIdStatement(accountId, id, readPaymentColumns), signal)
      return row === undefined ? undefined : paymentOfRow(row, headsOf(progress()))
    },
  }
}

/** Reads the progress of the chains in the round trip of the first statement, ahead of it. */
function readWithProgress(knex: Knex): { readTexts: ReadTexts; progress: () => readonly ChainProgress[] } {
  let known: readonly ChainProgress[] | undefined
  return {
    async readTexts(statement, signal) {
      if (known !== undefined) return runPreparedText(knex, statement, signal)
      const [chains = [], rows = []] = await runPreparedTexts(knex, [chainProgressStatement, statement], signal)
      known = chains.map(chainProgressOf)
      return rows
    },
    progress: () => known ?? [],
  }
}
