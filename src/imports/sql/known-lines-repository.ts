import type { Knex } from 'knex'
import type { LineKeys } from '../line-keys.ts'

/** What the database says of lines by their keys, a letter a line. */
export const LINE_IS_NEW = 'n'
export const LINE_IS_KNOWN = 'k'
const LINE_IS_OTHER = 'o'

/**
 * Compares lines with what is stored.
 *
 * @returns a letter a line: {@link LINE_IS_NEW} where nothing of its id is stored, {@link LINE_IS_KNOWN} where a payment was written from it and
 * nothing has happened since that would make it mean more; another where it must be read, also where it has no key
 */
export async function compareLines(knex: Knex, accountId: number, { ids, hashes }: LineKeys): Promise<string> {
  const { rows } = await knex.raw<{ rows: { told: string | null }[] }>(COMPARE, [ids, hashes, accountId])
  return rows[0]?.told ?? ''
}

/** The offset keeps the planner from reading all payments of the account for a batch: each is looked up by its key. */
const COMPARE = `
  select string_agg(
    case when k.id is null then '${LINE_IS_OTHER}' when p.id is null then '${LINE_IS_NEW}'
      when p.line_hash = k.hash then '${LINE_IS_KNOWN}' else '${LINE_IS_OTHER}' end,
    '' order by k.nth) as told
  from unnest(?::uuid[], ?::bytea[]) with ordinality as k(id, hash, nth)
  left join lateral (select id, line_hash from payments where account_id = ? and id = k.id offset 0) p on true`
