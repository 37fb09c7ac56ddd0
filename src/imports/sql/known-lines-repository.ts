import type { Knex } from 'knex'
import { LINE_IS_KNOWN, LINE_IS_NEW, LINE_IS_OTHER, type LineKey } from '../lines/line-keys.ts'

/**
 * Compares lines with the stored rows.
 *
 * @returns one letter a line: {@link LINE_IS_NEW} when no row has its id; {@link LINE_IS_KNOWN} when the row was written from this line and
 *   nothing has changed that would give the line another result; another letter when the line must be parsed, also when it has no key
 */
export async function compareLines(knex: Knex, accountId: number, keys: readonly LineKey[]): Promise<string> {
  // As texts: the driver would escape each entry.
  const ids = `{${keys.map(({ id }) => id ?? 'NULL').join(',')}}`
  const hashes = `{${keys.map(({ hash }) => (hash === undefined ? 'NULL' : `\\\\x${hash}`)).join(',')}}`
  const { rows } = await knex.raw<{ rows: { reported: string | null }[] }>(COMPARE, [ids, hashes, accountId])
  return rows[0]?.reported ?? ''
}

/** `offset 0` keeps the planner from reading all payments of the account: each row is looked up by its key. */
const COMPARE = `
  select string_agg(
    case when k.id is null then '${LINE_IS_OTHER}' when p.id is null then '${LINE_IS_NEW}'
      when p.line_hash = k.hash then '${LINE_IS_KNOWN}' else '${LINE_IS_OTHER}' end,
    '' order by k.nth) as reported
  from unnest(?::uuid[], ?::bytea[]) with ordinality as k(id, hash, nth)
  left join lateral (select id, line_hash from payments where account_id = ? and id = k.id offset 0) p on true`
