import { expect, test } from 'vitest'
import type { WalkPart } from '../plan/search-plan.ts'
import type { PageQuery, Statement } from '../sql/payment-query.ts'
import { gatherStatement } from '../sql/shapes/gather.ts'
import { monthsStatement } from '../sql/shapes/months.ts'
import { slicesStatement } from '../sql/shapes/slices.ts'
import { walkStatement } from '../sql/shapes/walk.ts'

const ID = '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11'
const AT = '2026-03-01T00:00:00.000Z'
const FROM = '1970-01-02T00:00:00.000Z'
const query = (given: Partial<PageQuery> = {}): PageQuery => ({
  filter: { accountId: 7 },
  sortBy: 'date',
  sortOrder: 'desc',
  rows: 21,
  ...given,
})
const after = (keys: readonly (string | number | null)[]) =>
  ({ keys, id: ID, inclusive: false, direction: 'forward' }) as const

const byStatus: WalkPart = {
  index: 'payments_status',
  branches: { columns: ['status'], tuples: [[1], [3]] },
  order: 'time',
  within: [],
  residual: [],
  fixedKeys: 0,
  after: true,
}

/** The common tables; what follows joins the rows of the page and is the same for all shapes. */
const tablesOf = ({ sql }: Statement) => sql.slice(0, sql.indexOf('\nselect p.id'))

const JOIN = `
select p.id, coalesce(page.cut, false) or account.cut as page_cut,
  account.last_change, account.seq as statistics_seq
from (select (select last_change from account_changes where account_id = ?) as last_change,
  (select max(seq) from payment_statistics where account_id = ?) as seq,
  false as cut) account
left join (select * from page order by timestamp desc, id desc limit ?) page on true
left join payments p on p.account_id = ? and p.id = page.id
order by page.timestamp desc, page.id desc`

test('a walk reads each branch in the order of the answer and joins the rows of the page', () => {
  const position = after([AT])
  const statement = walkStatement({ kind: 'walk', parts: [byStatus], overlap: false }, query({ position }), ['id'])
  expect(statement).toEqual({
    sql: `with page as (
select timestamp, id, cut from (
select k.timestamp, k.id, k.cut from unnest(?::smallint[]) as d(status)
cross join lateral (
select timestamp, id, false as cut from (
select timestamp, id from payments
where account_id = ? and status = d.status and (timestamp, id) < (?::timestamptz, ?::uuid)
order by timestamp desc, id desc
) walked limit 21
) k
) found
order by timestamp desc, id desc limit 21
)${JOIN}`,
    bindings: [[1, 3], 7, AT, ID, 7, 7, 21, 7],
  })
})

test('a bounded walk marks the entry at its end and keeps it whether it matches or not', () => {
  const part: WalkPart = { ...byStatus, residual: ['network'], entries: [40, 5] }
  const filter = { accountId: 7, network: ['BASE'] }
  const statement = walkStatement({ kind: 'walk', parts: [part], overlap: false }, query({ filter }), ['id'])
  expect(tablesOf(statement)).toContain(`from unnest(?::smallint[], ?::int[]) as d(status, entries)
cross join lateral (
select timestamp, id, nth = d.entries as cut from (
select timestamp, id, network, source_network, row_number() over (order by timestamp desc, id desc) as nth from payments
where account_id = ? and status = d.status
order by timestamp desc, id desc limit d.entries
) walked
where nth = d.entries or ((network = ?::text or source_network = ?::text)) limit 21
) k`)
  expect(statement.bindings).toEqual([[1, 3], [40, 5], 7, 'BASE', 'BASE', 7, 7, 21, 7])
})

test('parts that may have rows in common give each once', () => {
  const { sql } = walkStatement({ kind: 'walk', parts: [byStatus, byStatus], overlap: true }, query(), ['id'])
  expect(sql).toContain('select timestamp, id, bool_or(cut) as cut from (\n(select')
  expect(sql).toContain(')\nunion all\n(')
  expect(sql).toContain('group by timestamp, id\norder by timestamp desc, id desc limit 21')
})

test('statuses in the order of the answer follow one another', () => {
  const part: WalkPart = { ...byStatus, fixedKeys: 1, after: false, inOrder: true }
  const { sql } = walkStatement(
    { kind: 'walk', parts: [part], overlap: false },
    query({ sortBy: 'status', sortOrder: 'asc' }),
    ['id'],
  )
  expect(sql).toContain('from (select * from unnest(?::smallint[]) with ordinality as b(status, nth) order by nth) d')
  expect(sql).toContain(') k\norder by d.nth, k.timestamp asc, k.id asc limit 21')
})

test('of many branches some rows are read first, and a page of those that may have more on it', () => {
  const part: WalkPart = {
    ...byStatus,
    branches: {
      columns: ['payee', 'status'],
      tuples: [
        ['a', 1],
        ['a', 3],
      ],
    },
  }
  const shape = { kind: 'slices', parts: [part], overlap: false, each: 3 } as const
  const statement = slicesStatement(shape, query({ position: after([AT]) }), ['id'])
  expect(statement).toEqual({
    sql: `with branches_0 as materialized (
select (?::bytea[])[d.payee] as payee, (?::smallint[])[d.status] as status, d.nth + ?::int as branch from unnest(?::int[], ?::int[]) with ordinality as d(payee, status, nth)
),
begun as materialized (
select d.branch, k.timestamp, k.id from branches_0 d
cross join lateral (
select timestamp, id from payments
where account_id = ? and payee = d.payee and status = d.status and (timestamp, id) < (?::timestamptz, ?::uuid)
order by timestamp desc, id desc limit 3
) k
),
again as materialized (
select branch from begun group by branch
having count(*) = 3 and (min(timestamp) >= (
  select timestamp from (select timestamp, id from begun) found order by timestamp desc, id desc offset 20 limit 1) is not false)
),
page as (
select timestamp, id, cut from (
(select timestamp, id, false as cut from begun where branch not in (select branch from again))
union all
(select timestamp, id, false as cut from (
select d.branch, k.timestamp, k.id from (select * from branches_0 where branch in (select branch from again) offset 0) d
cross join lateral (
select timestamp, id from payments
where account_id = ? and payee = d.payee and status = d.status and (timestamp, id) < (?::timestamptz, ?::uuid)
order by timestamp desc, id desc limit 21
) k
) more)
) found
order by timestamp desc, id desc limit 21
)${JOIN}`,
    bindings: [['a'], [1, 3], 0, [1, 1], [1, 2], 7, AT, ID, 7, AT, ID, 7, 7, 21, 7],
  })
})

test('the branches of several parts have numbers of their own, and what stands in two counts once', () => {
  const shape = { kind: 'slices', parts: [byStatus, byStatus], overlap: true, each: 3 } as const
  const statement = slicesStatement(shape, query({ sortOrder: 'asc' }), ['id'])
  expect(statement.bindings.slice(0, 6)).toEqual([[1, 3], 0, [1, 2], [1, 3], 2, [1, 2]])
  expect(statement.sql).toContain(
    'max(timestamp) <= (\n  select timestamp from (select distinct timestamp, id from begun)',
  )
})

test('unknown amounts are left out of a walk that is to see whether the page is full without them', () => {
  const part: WalkPart = {
    index: 'payments_usd',
    order: 'amount',
    within: [],
    residual: [],
    fixedKeys: 0,
    after: true,
  }
  const shape = { kind: 'walk', parts: [part], overlap: false } as const
  const first = walkStatement(shape, query({ sortBy: 'amount' }), ['id'], true).sql
  expect(first).toContain('amount_in_usd is not null')
  expect(first).not.toContain('amount_in_usd is null')
  expect(walkStatement(shape, query({ sortBy: 'amount' }), ['id']).sql).toContain('amount_in_usd is null')
})

test('a gather reads a range whole, up to a bound, and says whether there was more', () => {
  const part = {
    index: 'payments_usd',
    order: 'amount',
    within: ['minAmount'],
    residual: ['fromDate'],
  } as const
  const filter = { accountId: 7, minAmount: '5', fromDate: 86_400_000 }
  const statement = gatherStatement(
    { kind: 'gather', parts: [part], overlap: false, most: 300 },
    query({ filter, position: after([AT]) }),
    ['id'],
  )
  expect(statement).toEqual({
    sql: `with gathered as materialized (
select timestamp, id from payments
where account_id = ? and amount_in_usd >= ?::numeric
order by amount_in_usd, id limit 301
),
page as (
select timestamp, id, cut from (
select *, false as cut from gathered
where timestamp >= ?::timestamptz and (timestamp, id) < (?::timestamptz, ?::uuid)
) found
order by timestamp desc, id desc limit 21
)${JOIN.replace('false as cut) account', '(select count(*) > 300 from gathered) as cut) account')}`,
    bindings: [7, '5', FROM, AT, ID, 7, 7, 21, 7],
  })
})

test('what is gathered by branches is read branch by branch', () => {
  const part = {
    index: 'payments_reference',
    branches: { columns: ['reference'], tuples: [['INV-1'], ['INV-2']] },
    order: 'time',
    within: [],
    residual: [],
  } as const
  const statement = gatherStatement({ kind: 'gather', parts: [part], overlap: false }, query(), ['id'])
  expect(tablesOf(statement)).toContain(`select k.* from unnest(?::text[]) as d(reference)
cross join lateral (
select timestamp, id from payments
where account_id = ? and reference = d.reference
order by timestamp, id offset 0
) k`)
  expect(statement.bindings).toEqual([['INV-1', 'INV-2'], 7, 7, 7, 21, 7])
})

test('behind an unknown amount a gather asks for unknown ones alone, and before one for all known ones', () => {
  const part = { index: 'payments_usd', order: 'amount', within: [], residual: [] } as const
  const sqlOf = (sortOrder: 'asc' | 'desc', key: string | null) =>
    gatherStatement(
      { kind: 'gather', parts: [part], overlap: false },
      query({ sortBy: 'amount', sortOrder, position: after([key]) }),
      ['id'],
    ).sql
  expect(sqlOf('desc', null)).toContain('where amount_in_usd is null and id < ?::uuid')
  expect(sqlOf('asc', null)).toContain('where (amount_in_usd is not null or id > ?::uuid)')
  expect(sqlOf('desc', '5')).toContain('where (amount_in_usd is null or (amount_in_usd, id) < (?::numeric, ?::uuid))')
  expect(sqlOf('asc', '5')).toContain('where (amount_in_usd, id) > (?::numeric, ?::uuid)')
})

test('months are read one after the other', () => {
  const filter = { accountId: 7, minAmount: '5' }
  const statement = monthsStatement({ kind: 'months', months: [Date.parse(AT), 0] }, query({ filter }), ['id'])
  expect(tablesOf(statement)).toBe(`with page as (
select k.timestamp, k.id, false as cut
from (select month, nth from unnest(?::timestamptz[]) with ordinality as m(month, nth) order by nth) d
cross join lateral (
select timestamp, id from payments
where account_id = ? and date_bin('30 days', timestamp, '2000-01-01 00:00:00+00'::timestamptz) = d.month and amount_in_usd >= ?::numeric
order by timestamp desc, id desc limit 21
) k
order by d.nth, k.timestamp desc, k.id desc limit 21
)`)
  expect(statement.bindings).toEqual([[AT, '1970-01-01T00:00:00.000Z'], 7, '5', 7, 7, 21, 7])
})
