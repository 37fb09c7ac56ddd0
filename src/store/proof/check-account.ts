import type { Knex } from 'knex'
import { inTransaction } from '../../postgres/cancellable.ts'
import { requestPages } from '../request-ledger.ts'
import { checkChangeLog, readChangeLog } from './check-change-log.ts'
import { checkNames, checkSettled } from './check-ledger.ts'
import { checkStatistics } from './check-statistics.ts'
import type { Difference } from './difference.ts'

/** How many rows were checked. */
export interface Checked {
  readonly payments: bigint
  readonly changes: bigint
  readonly requests: number
}

export interface CheckOptions {
  readonly signal?: AbortSignal | undefined
  /** Called before each part, and after each page of requests. */
  readonly onProgress: (what: string) => Promise<void> | void
  /** Called with each difference. The check waits for it. */
  readonly onDifference: (difference: Difference) => Promise<void> | void
}

/**
 * Proves that an account's derived rows follow from its payments, refunds and requests: that the statistics are exact (their times may be
 * a superset), that the log of changes has no gaps and fits the payments, that requests know their payments and topics, and that status
 * and refunds are settled. It reads one snapshot and blocks no writer.
 */
export function checkAccount(knex: Knex, accountId: number, options: CheckOptions): Promise<Checked> {
  const { signal, onProgress, onDifference } = options
  const report = async (differences: readonly Difference[]) => {
    for (const difference of differences) await onDifference(difference)
  }
  return inTransaction(
    knex,
    signal,
    async (trx) => {
      await onProgress('statistics')
      await report(await checkStatistics(trx, accountId))
      await onProgress('changes')
      const log = await readChangeLog(trx, accountId)
      await report(await checkChangeLog(trx, accountId, log))
      await onProgress('requests')
      await report(await checkNames(trx, accountId))
      let requests = 0
      for await (const page of requestPages(trx, accountId)) {
        await report(await checkSettled(trx, accountId, page))
        requests += page.length
        await onProgress(`${requests.toLocaleString('en')} requests`)
      }
      return { payments: log.payments, changes: log.changes, requests }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )
}

/** Every account that has any row, by id. An account without a name is called `#` and its id. */
export async function listStoredAccounts(knex: Knex): Promise<{ id: number; name: string }[]> {
  const named = await knex('accounts').select<{ id: number; name: string }[]>('id', 'name')
  const names = new Map(named.map(({ id, name }) => [id, name]))
  const changed = await knex('account_changes').pluck<number[]>('account_id')
  const counted = await knex('payment_statistics').distinct().pluck<number[]>('account_id')
  const ids = new Set([...names.keys(), ...changed, ...counted])
  return [...ids].toSorted((a, b) => a - b).map((id) => ({ id, name: names.get(id) ?? `#${id}` }))
}
