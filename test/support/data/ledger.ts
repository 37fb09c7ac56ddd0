import type { Knex } from 'knex'
import { formatDecimal } from '../../../src/domain/decimal.ts'
import type { RequestBalance } from '../../../src/domain/payment-request.ts'
import { REQUEST_CHANGE } from '../../../src/store/payment-changes.ts'
import { checkAccount, type Difference, listStoredAccounts } from '../../../src/store/proof/check-account.ts'

/** A balance with its amounts as the API writes them. */
export function balanceText(balance: RequestBalance) {
  return {
    status: balance.status,
    paidAmount: formatDecimal(balance.paidAmount),
    pendingAmount: formatDecimal(balance.pendingAmount),
    outstandingAmount: formatDecimal(balance.outstandingAmount),
    overpaidAmount: formatDecimal(balance.overpaidAmount),
  }
}

/** The differences that `waybill check` finds, over all accounts. */
export async function findDifferences(knex: Knex): Promise<(Difference & { account: string })[]> {
  const found: (Difference & { account: string })[] = []
  for (const { id, name } of await listStoredAccounts(knex)) {
    await checkAccount(knex, id, {
      onProgress: () => {},
      onDifference: (difference) => void found.push({ account: name, ...difference }),
    })
  }
  return found
}

/** The payments of an account at one moment, by id, and the last change of them. */
export interface LedgerState {
  readonly change: bigint
  readonly rows: ReadonlyMap<string, unknown>
}

/** Reads the payments and the last change in one snapshot. */
export async function readLedger(knex: Knex, accountId: number): Promise<LedgerState> {
  const { rows } = await knex.raw<{ rows: { change: bigint | null; images: { id: string }[] | null }[] }>(
    `select (select last_change from account_changes where account_id = ?) as change,
       (select json_agg(to_jsonb(p)) from payments p where account_id = ?) as images`,
    [accountId, accountId],
  )
  const images = rows[0]?.images ?? []
  return { change: rows[0]?.change ?? 0n, rows: new Map(images.map((image) => [image.id, image])) }
}

/**
 * Undoes the changes after a given one, newest first, starting from what is stored now.
 *
 * @throws Error for a change that does not fit the rows that it is undone on
 */
export async function undoTo(knex: Knex, accountId: number, change: bigint): Promise<LedgerState> {
  const state = new Map((await readLedger(knex, accountId)).rows)
  const changes = await knex('payment_changes')
    .where({ account_id: accountId })
    .where('change', '>', change.toString())
    .whereNot({ kind: REQUEST_CHANGE })
    .orderBy('change', 'desc')
  for (const { kind, payment_id: id, old, change: at } of changes) {
    if (state.has(id) === (kind === 3)) throw new Error(`change ${at}, of kind ${kind}, does not fit ${id}`)
    if (old === null) state.delete(id)
    else state.set(id, old)
  }
  return { change, rows: state }
}
