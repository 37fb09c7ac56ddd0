import { bind, raw, type Statement, sql } from '../../postgres/statement.ts'

/**
 * What the planner knows about the payments of an account. Counts may be some minutes old. The list of combinations is complete up to
 * `seq`; a statement that relies on it also reads the newest `seq` and so learns whether a combination has come since.
 */
export interface AccountStatistics {
  /** All payments. */
  readonly n: number
  /** Times of the first and the last payment, in milliseconds since 1970; `lastMs` is below `firstMs` where there is no payment. */
  readonly firstMs: number
  readonly lastMs: number
  readonly cells: readonly Cell[]
  /** Payments of a status, by its rank. */
  readonly nOfStatus: ReadonlyMap<number, number>
  /** Payments of a cell, by its {@link cellKey}. */
  readonly nOfCell: ReadonlyMap<string, number>
  /** By the code of a type: its share of all payments, from 0 to 1. */
  readonly shareOfType: ReadonlyMap<number, number>
  /** By the id of a payment currency: its networks, with counts. */
  readonly currencies: ReadonlyMap<string, readonly CurrencyOnNetwork[]>
  /** By the id of an invoice currency: its share of all payments. */
  readonly shareOfInvoice: ReadonlyMap<string, number>
  /** By source network: the share of payments that come from it and go to another network. */
  readonly shareOfSource: ReadonlyMap<string, number>
  readonly sample: UsdSample
  /** The number of the newest combination; 0 where there is none. */
  readonly seq: number
}

/** The payments of one status, one destination network and one currency symbol. */
export interface Cell {
  readonly status: number
  readonly network: string
  readonly symbol: string
  readonly n: number
  /** False only where no payment of the cell has an amount in US dollars; like the list of cells, correct up to `seq`. */
  readonly priced: boolean
  /** Milliseconds since 1970. */
  readonly firstMs: number
  readonly lastMs: number
}

/** The name of a cell. */
export function cellKey(status: number, network: string, symbol: string): string {
  return `${status} ${network} ${symbol}`
}

/** Payments in one currency on one destination network. */
export interface CurrencyOnNetwork {
  readonly network: string
  readonly n: number
}

/** The amounts in US dollars of a sample of payments, spread over the account's time. */
export interface UsdSample {
  /** The known amounts, ascending. Doubles, since they only estimate. */
  readonly known: readonly number[]
  /** Payments in the sample, those of unknown amount included. */
  readonly n: number
}

/** A row of {@link statisticsStatement}; `kind` says what it counts. Of a sample, `name` holds the amounts. */
export interface StatisticsRow {
  readonly kind: 'cell' | 'type' | 'currency' | 'invoice' | 'source' | 'all' | 'sample'
  readonly status: number | null
  readonly type: number | null
  readonly network: string | null
  readonly name: string | null
  readonly n: string
  readonly first_at: Date | null
  readonly last_at: Date | null
  readonly seq: string | null
  readonly priced: boolean | null
}

/** The sample: runs of payments that follow each other in time, evenly spaced. Each run is one descent of an index that has the amounts. */
const SAMPLE_RUNS = 160
const SAMPLE_RUN = 50

/** Reads all statistics of an account: sums over its combinations, and the sample of its most frequent status. */
export function statisticsStatement(accountId: number): Statement {
  return sql`with mine as materialized (
  select network, source_network, currency, currency_symbol, invoice_currency, type, status, n, first_at, last_at, seq, priced
  from payment_statistics where account_id = ${bind(accountId)}
)
select 'cell' as kind, status, null::smallint as type, network, currency_symbol as name, sum(n)::text as n, min(first_at) as first_at,
  max(last_at) as last_at, null::text as seq, bool_or(priced) as priced
from mine group by status, network, currency_symbol
union all select 'type', null, type, null, null, sum(n)::text, null, null, null, null from mine group by type
union all select 'currency', null, null, network, currency, sum(n)::text, null, null, null, null from mine group by network, currency
union all select 'invoice', null, null, null, invoice_currency, sum(n)::text, null, null, null, null from mine group by invoice_currency
union all select 'source', null, null, null, source_network, sum(n)::text, null, null, null, null from mine
  where source_network <> network group by source_network
union all select 'all', null, null, null, null, coalesce(sum(n), 0)::text, min(first_at), max(last_at), coalesce(max(seq), 0)::text, null from mine
union all select 'sample', null, null, null, string_agg(k.amount_in_usd::text, ' '), count(*)::text, null, null, null, null
  from (select status, min(first_at) as first_at, max(last_at) as last_at from mine group by status order by sum(n) desc limit 1) frequent
  cross join generate_series(0, ${raw(SAMPLE_RUNS - 1)}) as run
  cross join lateral (
    select amount_in_usd from payments
    where account_id = ${bind(accountId)} and status = frequent.status
      and timestamp >= frequent.first_at + run * (frequent.last_at - frequent.first_at) / ${raw(SAMPLE_RUNS)}.0
    order by timestamp, id limit ${raw(SAMPLE_RUN)}
  ) k`
}

/** Turns the rows of {@link statisticsStatement} into statistics. */
export function statisticsOfRows(rows: readonly StatisticsRow[]): AccountStatistics {
  const all = rows.find(({ kind }) => kind === 'all')
  const n = Number(all?.n ?? 0)
  const sharesOf = <K>(kind: StatisticsRow['kind'], key: (row: StatisticsRow) => K | null) => {
    const ofKind = rows.filter((row) => row.kind === kind)
    return new Map(ofKind.map((row) => [key(row) as K, n === 0 ? 0 : Number(row.n) / n]))
  }
  const cells = cellsOf(rows)
  const nOfStatus = new Map<number, number>()
  for (const { status, n: count } of cells) nOfStatus.set(status, (nOfStatus.get(status) ?? 0) + count)
  return {
    n,
    firstMs: all?.first_at?.getTime() ?? 0,
    lastMs: all?.last_at?.getTime() ?? -1,
    cells,
    nOfStatus,
    nOfCell: new Map(cells.map(({ status, network, symbol, n: count }) => [cellKey(status, network, symbol), count])),
    shareOfType: sharesOf('type', ({ type }) => type),
    currencies: currenciesOf(rows),
    shareOfInvoice: sharesOf('invoice', ({ name }) => name),
    shareOfSource: sharesOf('source', ({ name }) => name),
    sample: sampleOf(rows),
    seq: Number(all?.seq ?? 0),
  }
}

function cellsOf(rows: readonly StatisticsRow[]): Cell[] {
  return rows.flatMap(({ kind, status, network, name, n, first_at: first, last_at: last, priced }) =>
    kind === 'cell' && status !== null && network !== null && name !== null
      ? [
          {
            status,
            network,
            symbol: name,
            n: Number(n),
            priced: priced ?? true,
            firstMs: first?.getTime() ?? 0,
            lastMs: last?.getTime() ?? 0,
          },
        ]
      : [],
  )
}

function sampleOf(rows: readonly StatisticsRow[]): UsdSample {
  const row = rows.find(({ kind }) => kind === 'sample')
  const known = (row?.name ?? '').split(' ').filter((text) => text !== '')
  return { known: known.map(Number).toSorted((one, other) => one - other), n: Number(row?.n ?? 0) }
}

function currenciesOf(rows: readonly StatisticsRow[]): Map<string, CurrencyOnNetwork[]> {
  const found = new Map<string, CurrencyOnNetwork[]>()
  for (const { kind, network, name, n } of rows) {
    if (kind !== 'currency' || network === null || name === null) continue
    found.set(name, [...(found.get(name) ?? []), { network, n: Number(n) }])
  }
  return found
}
