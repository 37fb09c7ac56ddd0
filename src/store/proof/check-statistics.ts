import type { Knex } from 'knex'
import { statusOfRank, typeOfCode } from '../../domain/payment.ts'
import { type Difference, MAX_DIFFERENCES } from './difference.ts'

/** Counts the payments of an account as `payment_statistics` has them. Binds the account. */
export const COUNT_PAYMENTS = `
  select network, coalesce(source_network, '') as source_network, currency, min(currency_symbol) as currency_symbol,
    coalesce(invoice_currency, '') as invoice_currency, coalesce(type, -1)::smallint as type, status, count(*) as n,
    min(timestamp) as first_at, max(timestamp) as last_at
  from payments where account_id = ? group by 1, 2, 3, 5, 6, 7`

interface StatisticsRow {
  readonly network: string
  readonly source_network: string
  readonly currency: string
  readonly invoice_currency: string
  readonly type: number
  readonly status: number
  readonly stored: string | null
  readonly counted: string | null
}

/** Checks that the statistics of an account count its payments. Their times may be a superset. */
export async function checkStatistics(trx: Knex, accountId: number): Promise<Difference[]> {
  const bindings = [accountId, accountId, MAX_DIFFERENCES]
  const { rows } = await trx.raw<{ rows: StatisticsRow[] }>(COMPARE_STATISTICS, bindings)
  return rows.map((row) => ({
    check: 'statistics',
    where: describeCombination(row),
    stored: row.stored ?? 'none',
    expected: row.counted ?? 'none',
  }))
}

function describeCombination(row: StatisticsRow): string {
  const type = row.type === -1 ? '' : typeOfCode(row.type)
  const { network, source_network, currency, invoice_currency } = row
  const parts = [network, source_network, currency, invoice_currency, type, statusOfRank(row.status)]
  return parts.map((part) => (part === '' ? '-' : part)).join(' ')
}

const isoTime = (column: string) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** The rest of a row in words, over the columns of a row of statistics. */
const DESCRIPTION = `concat_ws(' ', n, currency_symbol, ${isoTime('first_at')}, 'to', ${isoTime('last_at')})`

const COMPARE_STATISTICS = `
  with counted as (${COUNT_PAYMENTS})
  select network, source_network, currency, invoice_currency, type, status,
    (select ${DESCRIPTION} from (select s.*) described where n is not null) as stored,
    (select ${DESCRIPTION} from (select c.*) described where n is not null) as counted
  from (select * from payment_statistics where account_id = ?) s
  full join counted c using (network, source_network, currency, invoice_currency, type, status)
  where coalesce(s.n, 0) <> coalesce(c.n, 0) or s.first_at > c.first_at or s.last_at < c.last_at
    or s.currency_symbol <> c.currency_symbol
  order by 1, 2, 3, 4, 5, 6 limit ?`
