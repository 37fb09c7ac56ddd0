import type { Knex } from 'knex'
import { inTransaction } from '../../postgres/cancellable.ts'
import { lockAccount } from '../../store/payment-changes.ts'
import { SUMS } from './request-repository.ts'

/** Whether the request `r` is over-paid, by its payments. Binds the account once. */
export const IS_OVERPAID = `(select final_sum + pending_sum > r.amount + r.surplus_returned from (${SUMS}) sums)`

/** The requests `r` that are over-paid or not decided: the condition of the index. */
export const MAYBE_OVERPAID = 'overpaid is not false and status > 2'

/** Up to where the requests of an account are decided: the key of the index. */
interface Place {
  readonly status: number
  readonly created_at: Date
  readonly request_id: Buffer
}

/** Accounts with requests that are not decided. */
export async function findUndecidedAccounts(knex: Knex): Promise<number[]> {
  const accountIds = await knex('accounts').orderBy('id').pluck<number[]>('id')
  const found: number[] = []
  for (const accountId of accountIds) {
    const { rows } = await knex.raw<{ rows: object[] }>(`${UNDECIDED} limit 1`, [accountId])
    if (rows.length > 0) found.push(accountId)
  }
  return found
}

/**
 * Decides of some requests whether they are over-paid. The account's writers wait meanwhile, so that no payment is missed.
 *
 * @param after - what an earlier call returned: the next ones are decided, without a look at the entries that it left in the index
 * @returns how many were decided, and where the next call goes on
 */
export function decideOverpaid(
  knex: Knex,
  accountId: number,
  {
    after,
    step,
    signal,
  }: { readonly after: Place | undefined; readonly step: number; readonly signal: AbortSignal | undefined },
): Promise<{ readonly count: number; readonly last: Place | undefined }> {
  return inTransaction(knex, signal, async (trx) => {
    await lockAccount(trx, accountId, new Date())
    const from = after === undefined ? [] : [after.status, after.created_at, after.request_id]
    const { rows } = await trx.raw<{ rows: Place[] }>(
      `${UNDECIDED} ${after === undefined ? '' : BEYOND} order by status, created_at, request_id limit ?`,
      [accountId, ...from, step],
    )
    const ids = rows.map(({ request_id }) => request_id)
    if (ids.length > 0) await trx.raw(DECIDE, [accountId, ids, accountId])
    return { count: ids.length, last: rows.at(-1) }
  })
}

const UNDECIDED = `
  select status, created_at, request_id from requests where account_id = ? and overpaid is null and ${MAYBE_OVERPAID}`

const BEYOND = 'and (status, created_at, request_id) > (?, ?, ?)'

const DECIDE = `
  update requests r set overpaid = ${IS_OVERPAID}
  from unnest(?::bytea[]) as asked(id) where r.account_id = ? and r.request_id = asked.id`
