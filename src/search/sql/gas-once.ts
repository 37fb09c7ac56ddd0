import type { Knex } from 'knex'
import { allOf, raw, readRows, type Statement, TRUE } from '../../postgres/statement.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { accountIs, matchCondition } from './filter-conditions.ts'

/** The place of payments whose event is unknown: after all others of their transaction. */
const LAST = 2 ** 31 - 1

/**
 * Whether the gas of a payment's transaction stands on another payment: each payment has the gas of its whole transaction, which counts
 * once, for the matching payment of the lowest event, then of the lowest id. It is a condition on rows of `payments`, under that name.
 *
 * @param also - what else the other payment must meet; its columns have no table name
 */
export function gasStandsElsewhere(filter: PaymentFilter, also: Statement = TRUE): Statement {
  // The first event of a transaction comes before all others, and most payments are the first.
  return raw(
    `(payments.event_index is distinct from 0 and exists (
  select 1 from payments as other
  where ? and gas is not null
    and tx_hash = payments.tx_hash and network = payments.network
    and (coalesce(event_index, ${LAST}), id) < (coalesce(payments.event_index, ${LAST}), payments.id)))`,
    [allOf([accountIs(filter.accountId), matchCondition(filter), also])],
  )
}

/** Which of some payments do not have the gas of their transaction. */
export async function findGasElsewhere(
  knex: Knex,
  filter: PaymentFilter,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const statement = raw('select id from payments where account_id = ? and id = any(?::uuid[]) and ?', [
    filter.accountId,
    ids,
    gasStandsElsewhere(filter),
  ])
  const rows = await readRows<{ id: string }>(knex, statement, signal)
  return new Set(rows.map(({ id }) => id))
}
