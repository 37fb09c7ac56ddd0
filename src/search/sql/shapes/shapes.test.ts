import { expect, test } from 'vitest'
import type { Statement } from '../../../postgres/statement.ts'
import type { PageQuery } from '../../page/page-query.ts'
import type { WalkPart } from '../../plan/search-plan.ts'
import { gatherStatement } from './gather.ts'
import { monthsStatement } from './months.ts'
import type { PageRequest } from './page-rows.ts'
import { slicesStatement } from './slices.ts'
import { walkStatement } from './walk.ts'

const ID = '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11'
const AT = '2026-03-01T00:00:00.000Z'
const FROM = '1970-01-02T00:00:00.000Z'
const request = (given: Partial<PageQuery> = {}): PageRequest => ({
  query: { filter: { accountId: 7 }, sortBy: 'date', sortOrder: 'desc', rows: 21, ...given },
  columns: ['id'],
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
  startsAtPosition: true,
}

/** The common tables of a statement. What follows them joins the rows of the page and is the same for all shapes. */
const tablesOf = ({ sql }: Statement) => sql.slice(0, sql.indexOf('\nselect p.id'))

const joinOfRows = (cut: string) => `
select p.id, coalesce(page.cut, false) or account.cut as page_cut,
  account.last_change, account.seq as statistics_seq
from (select (select last_change from account_changes where account_id = ?) as last_change,
  (select max(seq) from payment_statistics where account_id = ?) as seq,
  ${cut} as cut) account
left join (select * from page order by timestamp desc, id desc limit ?) page on true
left join payments p on p.account_id = ? and p.id = page.id
order by page.timestamp desc, page.id desc`
const JOIN = joinOfRows('false')

test('a walk reads each branch in the order of the answer and joins the rows of the page', () => {
  const position = after([AT])
  const statement = walkStatement({ kind: 'walk', parts: [byStatus], mayOverlap: false }, request({ position }))
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

test('a walk with a limit returns the last entry even if it does not match, marked as the end', () => {
  const part: WalkPart = { ...byStatus, residual: ['network'], entryLimits: [40, 5] }
  const filter = { accountId: 7, network: ['BASE'] }
  const statement = walkStatement({ kind: 'walk', parts: [part], mayOverlap: false }, request({ filter }))
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

test('a payment that two parts have counts once', () => {
  const { sql } = walkStatement({ kind: 'walk', parts: [byStatus, byStatus], mayOverlap: true }, request())
  expect(sql).toContain('select timestamp, id, bool_or(cut) as cut from (\n(select')
  expect(sql).toContain(')\nunion all\n(')
  expect(sql).toContain('group by timestamp, id\norder by timestamp desc, id desc limit 21')
})

test('branches in the order of the answer are read one after the other', () => {
  const part: WalkPart = { ...byStatus, fixedKeys: 1, startsAtPosition: false, inOrder: true }
  const { sql } = walkStatement(
    { kind: 'walk', parts: [part], mayOverlap: false },
    request({ sortBy: 'status', sortOrder: 'asc' }),
  )
  expect(sql).toContain('from (select * from unnest(?::smallint[]) with ordinality as b(status, nth) order by nth) d')
  expect(sql).toContain(') k\norder by d.nth, k.timestamp asc, k.id asc limit 21')
})

test('slices read a few rows of each branch, then a page of those that may have more on it', () => {
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
  const shape = { kind: 'slices', parts: [part], mayOverlap: false, rowsPerBranch: 3 } as const
  const statement = slicesStatement(shape, request({ position: after([AT]) }))
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

test('slices number the branches of all parts through, and count a payment of two parts once', () => {
  const shape = { kind: 'slices', parts: [byStatus, byStatus], mayOverlap: true, rowsPerBranch: 3 } as const
  const statement = slicesStatement(shape, request({ sortOrder: 'asc' }))
  expect(statement.bindings.slice(0, 6)).toEqual([[1, 3], 0, [1, 2], [1, 3], 2, [1, 2]])
  expect(statement.sql).toContain(
    'max(timestamp) <= (\n  select timestamp from (select distinct timestamp, id from begun)',
  )
})

test('the walk of the first range alone leaves out unknown amounts in a descending order', () => {
  const part: WalkPart = {
    index: 'payments_usd',
    order: 'amount',
    within: [],
    residual: [],
    fixedKeys: 0,
    startsAtPosition: true,
  }
  const shape = { kind: 'walk', parts: [part], mayOverlap: false } as const
  const first = walkStatement(shape, request({ sortBy: 'amount' }), { firstRangeOnly: true }).sql
  expect(first).toContain('amount_in_usd is not null')
  expect(first).not.toContain('amount_in_usd is null')
  expect(walkStatement(shape, request({ sortBy: 'amount' })).sql).toContain('amount_in_usd is null')
})

test('a gather reads a range up to its limit and says whether there was more', () => {
  const part = {
    index: 'payments_usd',
    order: 'amount',
    within: ['minAmount'],
    residual: ['fromDate'],
  } as const
  const filter = { accountId: 7, minAmount: '5', fromDate: 86_400_000 }
  const statement = gatherStatement(
    { kind: 'gather', parts: [part], mayOverlap: false, maxEntries: 300 },
    request({ filter, position: after([AT]) }),
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
)${joinOfRows('(select count(*) > 300 from gathered)')}`,
    bindings: [7, '5', FROM, AT, ID, 7, 7, 21, 7],
  })
})

test('a gather of branches reads one after the other', () => {
  const part = {
    index: 'payments_reference',
    branches: { columns: ['reference'], tuples: [['INV-1'], ['INV-2']] },
    order: 'time',
    within: [],
    residual: [],
  } as const
  const statement = gatherStatement({ kind: 'gather', parts: [part], mayOverlap: false }, request())
  expect(tablesOf(statement)).toContain(`select k.* from unnest(?::text[]) as d(reference)
cross join lateral (
select timestamp, id from payments
where account_id = ? and reference = d.reference
order by timestamp, id offset 0
) k`)
  expect(statement.bindings).toEqual([['INV-1', 'INV-2'], 7, 7, 7, 21, 7])
})

test('a gather compares a position with known and unknown amounts', () => {
  const part = { index: 'payments_usd', order: 'amount', within: [], residual: [] } as const
  const sqlOf = (sortOrder: 'asc' | 'desc', key: string | null) =>
    gatherStatement(
      { kind: 'gather', parts: [part], mayOverlap: false },
      request({ sortBy: 'amount', sortOrder, position: after([key]) }),
    ).sql
  expect(sqlOf('desc', null)).toContain('where amount_in_usd is null and id < ?::uuid')
  expect(sqlOf('asc', null)).toContain('where (amount_in_usd is not null or id > ?::uuid)')
  expect(sqlOf('desc', '5')).toContain('where (amount_in_usd is null or (amount_in_usd, id) < (?::numeric, ?::uuid))')
  expect(sqlOf('asc', '5')).toContain('where (amount_in_usd, id) > (?::numeric, ?::uuid)')
})

test('months are read one after the other, each by its range of amounts', () => {
  const filter = { accountId: 7, minAmount: '5' }
  const statement = monthsStatement({ kind: 'months', months: [Date.parse(AT), 0] }, request({ filter }))
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
