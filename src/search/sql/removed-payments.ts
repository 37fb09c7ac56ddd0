import { allOf, raw, type Statement, timeText } from '../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../query/page-query.ts'
import { accountIs, conditionsOfNamed } from './filter-conditions.ts'
import { keyRanges, orderTerms } from './keyset.ts'

/** A payment that no longer exists. */
export interface RemovedPayment {
  readonly id: string
  /** The stamp of the transaction that removed it. */
  readonly changedAt: Date
}

/**
 * The removed payments of a page in the order of changes. Other filters than those by change do not apply to them. One that the same transaction has
 * stored again was not removed.
 */
export function removedStatement(query: PageQuery, until: Date): Statement {
  const { filter, position, rows } = query
  const [keys, direction] = [keysOf(query), directionOf(query)]
  const conditions = [
    accountIs(filter.accountId),
    raw('changed_at <= ?::timestamptz', [timeText(until.getTime())]),
    ...conditionsOfNamed(filter, ['changedFrom', 'changedTo']),
    ...keyRanges(keys, direction, filter, position),
    raw(
      'not exists (select from payments p where p.account_id = removed.account_id and p.id = removed.id and p.changed_at = removed.changed_at)',
    ),
  ]
  return raw(
    `select id, changed_at from removed_payments removed where ? order by ${orderTerms(keys, direction)} limit ${rows}`,
    [allOf(conditions)],
  )
}
