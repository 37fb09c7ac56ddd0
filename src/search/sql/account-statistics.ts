import { raw, type Statement } from '../../postgres/statement.ts'

/** What is known of an account's payments. It may be some minutes old, and only orders what is tried: a page never depends on it. */
export interface AccountStatistics {
  /** All payments. */
  readonly n: number
  /** Times of the first and the last payment, in milliseconds since 1970. */
  readonly firstMs: number
  readonly lastMs: number
  /**
   * By column and value, such as `network BASE`: the share of all payments. Of a column of names
   * such as `payer` the frequent values, and without a value what another one probably has; names of other accounts count as well.
   */
  readonly shares: ReadonlyMap<string, number>
  /** By column and currency: `amount USDC`, `amount_in_usd USDC`, `invoice_amount EUR`. */
  readonly samples: ReadonlyMap<string, AmountSample>
}

/** The amounts of a sample of payments, spread over the account's time. */
export interface AmountSample {
  /** The known amounts, ascending. Doubles, since they only estimate. */
  readonly known: Float64Array
  /** Payments in the sample, those of unknown amount included. */
  readonly n: number
}

/** A row of {@link statisticsStatement}. */
export interface StatisticsRow {
  /** `network BASE`; empty for all payments; `sample amount USDC|1.5 20`, with the amounts. */
  readonly key: string
  readonly n: string
  readonly first_at: Date | null
  readonly last_at: Date | null
}

/** Those whose values are counted each by itself. */
const COLUMNS = ['status', 'type', 'network', 'source_network', 'currency', 'currency_symbol', 'invoice_currency']
/** The sample: runs of payments that follow each other in time, evenly spaced. Each run is one descent of an index that has the amounts. */
const SAMPLE_RUNS = 160
const SAMPLE_RUN = 20
/** The amounts that are sampled, and the currency of each. */
const AMOUNTS = [
  { column: 'amount', currency: 'currency_symbol' },
  { column: 'amount_in_usd', currency: 'currency_symbol' },
  { column: 'invoice_amount', currency: 'invoice_currency' },
] as const

/** Those of which PostgreSQL's own statistics know the frequent values, those of all accounts. */
const NAMES = ['payer', 'payee', 'reference', 'request_id', 'payment_reference', 'pair']

/** Another name is rarer by about so much than the least frequent one of these, and has at most its share of what these leave. */
const RARER = 4

/** Reads the statistics of an account: sums over its combinations, and the sample of its most frequent status. */
export function statisticsStatement(accountId: number): Statement {
  const keys = COLUMNS.map((column) => `case when grouping(${column}) = 0 then '${column} ' || ${column} end`).join(
    ', ',
  )
  const sets = COLUMNS.map((column) => `(${column})`).join(', ')
  const samples = AMOUNTS.map(({ column, currency }) => {
    const key = `concat('sample ${column} ', ${currency}, '|', string_agg(${column}::text, ' '))`
    return `union all select ${key}, count(*)::text, null, null from sampled where ${currency} is not null group by ${currency}`
  })
  return raw(
    `with mine as materialized (select * from payment_statistics where account_id = :accountId and n > 0),
sampled as materialized (
  select k.* from (select status, min(first_at) as first_at, max(last_at) as last_at from mine group by status order by sum(n) desc limit 1) frequent
  cross join generate_series(0, ${SAMPLE_RUNS - 1}) as run
  cross join lateral (
    select currency_symbol, amount, amount_in_usd, invoice_currency, invoice_amount from payments
    where account_id = :accountId and status = frequent.status
      and timestamp >= frequent.first_at + run * (frequent.last_at - frequent.first_at) / ${SAMPLE_RUNS}.0
    order by timestamp, id limit ${SAMPLE_RUN}
  ) k
)
select concat(${keys}) as key, sum(n)::text as n, min(first_at) as first_at, max(last_at) as last_at
from mine group by grouping sets ((), ${sets})
${samples.join('\n')}`,
    { accountId },
  )
}

/**
 * Reads what PostgreSQL knows of names, of all accounts. A statement of its own, because on Citus none may look at catalogs and at sharded tables.
 */
export const namesStatement: Statement = raw(
  `select concat_ws(' ', name, value) as key, (n * reltuples)::bigint::text as n, null as first_at, null as last_at
  from pg_class join pg_stats s on oid in ('payments'::regclass, 'payment_metadata'::regclass) and (schemaname, tablename) = (relnamespace::regnamespace::text, relname)
  cross join lateral (
    select attname as name, value, n from unnest(most_common_vals::text::text[], most_common_freqs) frequent(value, n)
    union all select attname, null, least(most_common_freqs[array_length(most_common_freqs, 1)] / ${RARER},
      (1 - (select sum(n) from unnest(most_common_freqs) n))
        / greatest(1, case when n_distinct < 0 then -n_distinct * reltuples else n_distinct end - array_length(most_common_freqs, 1)))
  ) names
  where attname = any(?::text[])`,
  [NAMES],
)

/** Turns the rows of {@link statisticsStatement} and {@link namesStatement} into statistics. */
export function statisticsOfRows(rows: readonly StatisticsRow[]): AccountStatistics {
  const all = rows.find(({ key }) => key === '')
  const n = Number(all?.n ?? 0)
  const sampled = rows.filter(({ key }) => key.startsWith('sample '))
  const counted = rows.filter((row) => row !== all && !sampled.includes(row))
  return {
    n,
    firstMs: all?.first_at?.getTime() ?? 0,
    lastMs: all?.last_at?.getTime() ?? 0,
    shares: new Map(counted.map((row) => [row.key, Number(row.n) / n])),
    samples: new Map(sampled.map(sampleOfRow)),
  }
}

function sampleOfRow({ key, n }: StatisticsRow): [string, AmountSample] {
  const [name = '', amounts = ''] = key.slice('sample '.length).split('|')
  return [name, { known: Float64Array.from(amounts.split(' ').filter(Boolean), Number).toSorted(), n: Number(n) }]
}

export const NO_STATISTICS = statisticsOfRows([])
