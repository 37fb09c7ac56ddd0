import { expect, test } from 'vitest'
import { addressFromBytes, addressToDigits } from '../../../domain/address.ts'
import type { PageQuery } from '../../query/page-query.ts'
import { NO_STATISTICS } from '../../sql/account-statistics.ts'
import { ALL, ladderOf } from '../ladder.ts'
import { waysOf } from '../ways.ts'
import { pageStatement } from './page-statement.ts'

const walletOf = (nth: number) => addressFromBytes(Buffer.alloc(21, nth).fill(1, 0, 1))
const PAYER = walletOf(7)
const AT = '2026-03-01T00:00:00.000Z'
const ID = '00000000-0000-4000-8000-000000000001'
const after = (keys: readonly (string | number | null)[]) =>
  ({ keys, id: ID, inclusive: false, direction: 'forward' }) as const
const queryOf = (changes: Partial<PageQuery>): PageQuery => ({
  filter: { accountId: 7 },
  sortBy: 'date',
  sortOrder: 'desc',
  rows: 21,
  ...changes,
})

/** The statements of the attempts at a page. */
function statementsOf(query: PageQuery, limits = [10], isCovered = false) {
  const steps = ladderOf(waysOf(query), query, NO_STATISTICS, {
    limits,
    makeGuess: () => () => ({ cost: 0, start: 0, price: 1, isCovered }),
  })
  return steps.map((step) => {
    const { sql, bindings } = pageStatement(step, { query, columns: ['id', 'amount'] }).toSQL()
    return { sql, bindings }
  })
}

const LAST_CHANGE = '(select last_change from account_changes where account_id = ?) as last_change'

test('where one index answers everything, the page is its entries with their rows', () => {
  expect(statementsOf(queryOf({ position: after([AT]) }))).toEqual([
    {
      sql: `select * from (
(select id, amount, ${LAST_CHANGE}, false as cut from (
select * from payments
where account_id = ? and (timestamp, id) < (?::timestamptz, ?::uuid)
order by timestamp desc, id desc limit 21
) entries
where true limit 21)
union all
(select null, null, ${LAST_CHANGE}, false)
) page limit 21`,
      bindings: [7, 7, AT, ID, 7],
    },
  ])
})

test('the branches of a walk are merged in the order of the answer, and what they do not answer is checked entry by entry', () => {
  const query = queryOf({ filter: { accountId: 7, payer: [PAYER], status: ['PENDING', 'FAILED'], type: ['DIRECT'] } })
  const [first] = statementsOf(query)
  const branch = (names: string, limit: number) => `select ${names} from payments
where account_id = ? and payer = ?::bytea and status = ?::smallint
order by timestamp desc, id desc limit ${limit}`
  const merged = (names: string, limit: number) => `select * from ((${branch(names, limit)})
union all
(${branch(names, limit)})) merged
order by timestamp desc, id desc limit ${limit}`
  expect(first?.sql).toBe(`with more as materialized (
select exists (select from (
${merged('timestamp, id', 11)}
) entries offset 10) as cut
)
select * from (
(select id, amount, ${LAST_CHANGE}, false as cut from (
${merged('*', 10)}
) entries
where type = ?::smallint limit 21)
union all
(select null, null, ${LAST_CHANGE}, (select cut from more))
) page limit 21`)
  const payer = `\\x${addressToDigits(PAYER)}`
  const branches = [7, payer, 1, 7, payer, 5]
  expect(first?.bindings).toEqual([...branches, 7, ...branches, 1, 7])
})

test('entries may be read without their rows, and last without a limit that matters', () => {
  const query = queryOf({ filter: { accountId: 7, status: ['FAILED'], type: ['DIRECT'] } })
  const [first, second] = statementsOf(query, [100], true)
  expect(first?.sql).toContain(`(select p.*, ${LAST_CHANGE}, false as cut from (select id from (
select timestamp, id, type from payments
where account_id = ? and status = ?::smallint
order by timestamp desc, id desc limit 100
) entries
where type = ?::smallint limit 21) page
cross join lateral (select id, amount from payments where account_id = ? and id = page.id offset 0) p limit 21)`)
  expect(second?.sql).not.toContain('more')
  expect(second?.sql).toContain(`limit ${ALL}`)
})

test('a gather is sorted only where its entries are not too many', () => {
  const query = queryOf({ filter: { accountId: 7, minAmount: '5', type: ['DIRECT'] }, position: after([AT]) })
  const gathered = statementsOf(query).find(
    ({ sql }) => sql.includes('select not cut') || sql.includes('not (select cut'),
  )
  expect(gathered?.sql).toContain(`select exists (select from (
select id from payments
where account_id = ? and amount_in_usd >= ?::numeric
order by amount_in_usd, id limit 11
) entries offset 10) as cut`)
  expect(
    gathered?.sql,
  ).toContain(`where type = ?::smallint and (timestamp, id) < (?::timestamptz, ?::uuid) and not (select cut from more)
order by timestamp desc, id desc limit 21`)
})

test('known and unknown amounts are read one after the other', () => {
  const sqlOf = (changes: Partial<PageQuery>) => statementsOf(queryOf({ sortBy: 'amount', ...changes }))[0]?.sql
  const run = (range: string, direction: string) => `(select * from payments
where account_id = ? and amount_in_usd is ${range}
order by amount_in_usd ${direction}, id ${direction} limit 21)`
  expect(sqlOf({})).toContain(`select * from (${run('not null', 'desc')}
union all
${run('null', 'desc')}) runs limit 21`)
  expect(sqlOf({ sortOrder: 'asc' })).toContain(`select * from (${run('null', 'asc')}
union all
${run('not null', 'asc')}) runs limit 21`)
  expect(sqlOf({ position: after([null]) })).not.toContain('is not null')
})

test('in the order of status a position divides the branches, and passed ones are not read', () => {
  const [statement] = statementsOf(queryOf({ sortBy: 'status', sortOrder: 'asc', position: after([3, AT]) }))
  expect(statement?.sql).toContain(`select * from ((select * from payments
where account_id = ? and status = ?::smallint and (timestamp, id) > (?::timestamptz, ?::uuid)
order by timestamp asc, id asc limit 21)
union all
(select * from payments
where account_id = ? and status = ?::smallint
order by timestamp asc, id asc limit 21)
union all`)
  expect(statement?.bindings).toEqual([7, 7, 3, AT, ID, 7, 4, 7, 5, 7])
})

test('many branches go as arrays, each gives a page, and the rows of the page are joined', () => {
  const payer = Array.from({ length: 5 }, (_, nth) => walletOf(nth))
  const walk = statementsOf(queryOf({ filter: { accountId: 7, payer } }), [5_000], true).find(({ sql }) =>
    sql.includes('d(payer, status)'),
  )
  expect(
    walk?.sql,
  ).toContain(`select * from (select k.* from (select * from unnest(?::bytea[], ?::smallint[])) d(payer, status)
cross join lateral (select timestamp, id from payments
where account_id = ? and payer = d.payer and status = d.status
order by timestamp desc, id desc limit 21) k) merged
order by timestamp desc, id desc limit 21`)
})

test('a long list is hashed where it is checked row by row', () => {
  const payee = Array.from({ length: 21 }, (_, nth) => walletOf(nth))
  const checked = '(payee in (select unnest(?::bytea[]))) is true'
  const sqlOf = (wallets: typeof payee) => statementsOf(queryOf({ filter: { accountId: 7, payee: wallets } }))[0]?.sql
  expect(sqlOf(payee)).toContain(checked)
  expect(sqlOf(payee.slice(1))).not.toContain(checked)
})

test('a payment of two columns of one filter comes once', () => {
  const [statement] = statementsOf(queryOf({ filter: { accountId: 7, network: ['GNOSIS'] } }))
  expect(statement?.sql).toContain(`where account_id = ? and network = ?::text
order by`)
  expect(statement?.sql).toContain(
    `where account_id = ? and source_network = ?::text and source_network <> network and (network is null or network <> all(?::text[]))`,
  )
})
