import type { Knex } from 'knex'
import { type Difference, MAX_DIFFERENCES } from './difference.ts'

/** How long the log of changes of an account is. */
export interface ChangeLog {
  /** Payments of the account. */
  readonly payments: bigint
  /** Changes in the log. */
  readonly changes: bigint
  /** The number of the last change. */
  readonly last: bigint
  /** The number of the last change that was pruned. */
  readonly pruned: bigint
}

export async function readChangeLog(trx: Knex, accountId: number): Promise<ChangeLog> {
  const { rows } = await trx.raw<{ rows: [ChangeLog] }>(
    `select (select count(*) from payments where account_id = ?) as payments,
       (select count(*) from payment_changes where account_id = ?) as changes,
       coalesce((select last_change from account_changes where account_id = ?), 0) as last,
       coalesce((select pruned_change from account_changes where account_id = ?), 0) as pruned`,
    [accountId, accountId, accountId, accountId],
  )
  return rows[0]
}

/** Checks that the log has each change from the first that is kept to the last, and that its changes fit the payments. */
export async function checkChangeLog(trx: Knex, accountId: number, log: ChangeLog): Promise<Difference[]> {
  return [...(await findGaps(trx, accountId, log)), ...(await findMisfits(trx, accountId))]
}

interface GapRow {
  readonly previous: bigint
  readonly change: bigint
}

async function findGaps(trx: Knex, accountId: number, log: ChangeLog): Promise<Difference[]> {
  const [last, pruned] = [log.last.toString(), log.pruned.toString()]
  const bindings = [pruned, accountId, last, pruned, accountId, MAX_DIFFERENCES]
  const { rows } = await trx.raw<{ rows: GapRow[] }>(FIND_GAPS, bindings)
  return rows.map((gap) => describeGap(gap, log))
}

function describeGap({ previous, change }: GapRow, { last, pruned }: ChangeLog): Difference {
  if (change > previous) {
    const where = change - previous === 2n ? `${previous + 1n}` : `${previous + 1n} to ${change - 1n}`
    return { check: 'changes', where, stored: 'none', expected: `one of each from ${pruned + 1n} to ${last}` }
  }
  // A change that should be pruned. At the end of the log, changes beyond the last one that was counted.
  const where = change === last + 1n ? `${last + 1n} to ${previous}` : `${change}`
  return { check: 'changes', where, stored: 'logged', expected: `none but from ${pruned + 1n} to ${last}` }
}

/** Binds the pruned change, the account, the last change, the pruned change, the account, a limit. */
const FIND_GAPS = `
  select previous, change from (
    select change, lag(change, 1, ?::bigint) over (order by change) as previous from payment_changes where account_id = ?
    union all
    select ?::bigint + 1, coalesce(max(change), ?::bigint) from payment_changes where account_id = ?
  ) steps
  where change <> previous + 1 order by change limit ?`

interface MisfitRow {
  readonly change: bigint
  readonly payment_id: string
  readonly stored: string
  readonly expected: string
}

async function findMisfits(trx: Knex, accountId: number): Promise<Difference[]> {
  const bindings = [accountId, accountId, MAX_DIFFERENCES]
  const { rows } = await trx.raw<{ rows: MisfitRow[] }>(FIND_MISFITS, bindings)
  return rows.map(({ change, payment_id: id, stored, expected }) => ({
    check: 'changes',
    where: `${change} of ${id}`,
    stored,
    expected,
  }))
}

/** What can be wrong with a change: the condition, what is stored, what is expected. The first one that holds is reported. Kinds: 1 insert, 2 update, 3 delete. */
const MISFITS = [
  [
    '(kind = 1) <> (old is null)',
    `'kind ' || kind || case when old is null then ' without' else ' with' end || ' the row before'`,
    `case when kind = 1 then 'none' else 'the row before' end`,
  ],
  ['previous = 3 and kind <> 1', `'kind ' || kind || ' after a delete'`, `'an insert'`],
  ['previous <> 3 and kind = 1', `'an insert of an existing payment'`, `'an update or delete'`],
  ['is_latest and kind = 3 and p.id is not null', `'a delete of an existing payment'`, `'no payment'`],
  ['is_latest and kind <> 3 and p.id is null', `'no delete of a missing payment'`, `'a payment'`],
  ['is_latest and p.changed_at <> at', `'a payment changed at ' || p.changed_at`, `at::text`],
] as const

const cases = (result: 1 | 2) => MISFITS.map((misfit) => `when ${misfit[0]} then ${misfit[result]}`).join('\n      ')

/** Binds the account twice, then a limit. */
const FIND_MISFITS = `
  select change, payment_id, stored, expected from (
    select c.change, c.payment_id,
      case ${cases(1)} end as stored,
      case ${cases(2)} end as expected
    from (
      select change, payment_id, kind, at, old, lag(kind) over w as previous, lead(kind) over w is null as is_latest
      from payment_changes where account_id = ? window w as (partition by payment_id order by change)
    ) c
    left join lateral (select id, changed_at from payments where account_id = ? and id = c.payment_id offset 0) p on is_latest
  ) checked
  where stored is not null order by change limit ?`
