import type { Knex } from 'knex'
import { runPrepared } from '../../postgres/prepared.ts'
import { bind, raw, type Statement, sql, TRUE } from '../../postgres/statement.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { accountIs, matchCondition } from './filter-conditions.ts'

/** The place of payments whose event is unknown: after all others of their transaction. */
const LAST = raw(String(2 ** 31 - 1))

/**
 * Whether the gas of a payment's transaction stands on another payment: each payment has the gas of its whole transaction, which counts
 * once, for the matching payment of the lowest event, then of the lowest id. It is a condition on rows of `payments`, under that name.
 *
 * @param also - what else the other payment must meet; its columns have no table name
 */
export function gasStandsElsewhere(filter: PaymentFilter, also: Statement = TRUE): Statement {
  // The first event of a transaction comes before all others, and most payments are the first.
  return sql`(payments.event_index is distinct from 0 and exists (
  select 1 from payments as other
  where ${accountIs(filter.accountId)} and ${matchCondition(filter)} and ${also} and gas is not null
    and tx_hash = payments.tx_hash and network = payments.network
    and (coalesce(event_index, ${LAST}), id) < (coalesce(payments.event_index, ${LAST}), payments.id)))`
}

/** Which of some payments do not have the gas of their transaction. */
export async function findGasElsewhere(
  knex: Knex,
  filter: PaymentFilter,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const statement = sql`select id from payments
where ${accountIs(filter.accountId)} and id = any(${bind(ids, 'uuid[]')}) and ${gasStandsElsewhere(filter)}`
  const rows = await runPrepared<{ id: string }>(knex, statement, signal)
  return new Set(rows.map(({ id }) => id))
}
