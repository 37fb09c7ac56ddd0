import type { Statement } from './payment-query.ts'

/**
 * What the payments of an account come to, for deciding how to read them. The numbers may be some minutes old; which cells there are is
 * complete up to `seq`, so whoever relies on that asks in the statement whether there has come one since.
 */
export interface AccountStatistics {
  /** All payments. */
  readonly n: number
  /** Milliseconds since 1970; the wrong way round when there is no payment. */
  readonly firstMs: number
  readonly lastMs: number
  readonly cells: readonly Cell[]
  /** How many payments the cells of a status have, by its rank, and how many a cell has, by its {@link cellKey}. */
  readonly nOfStatus: ReadonlyMap<number, number>
  readonly nOfCell: ReadonlyMap<string, number>
  /** The part of the payments that has the value, from 0 to 1. */
  readonly shareOfType: ReadonlyMap<number, number>
  /** By the id of the payment currency: on which networks, and how many. */
  readonly currencies: ReadonlyMap<string, readonly CurrencyOnNetwork[]>
  readonly shareOfInvoice: ReadonlyMap<string, number>
  /** Of those whose source is not their destination. */
  readonly shareOfSource: ReadonlyMap<string, number>
  /** Of payments from anywhere in the account's time. */
  readonly sample: DollarSample
  /** The number of the combination that came last; 0 without any. */
  readonly seq: number
}

/** Payments of one status on one destination network in currencies of one symbol. */
export interface Cell {
  readonly status: number
  readonly network: string
  readonly symbol: string
  readonly n: number
  /** Whether the US dollars of any of them may be known; complete up to `seq`, as cells are. */
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

/** What some payments come to in US dollars. */
export interface DollarSample {
  /** Those of known amount, the least first; not exact, since they are only counted. */
  readonly known: readonly number[]
  /** Those of unknown amount as well. */
  readonly n: number
}

/** A row of {@link STATISTICS_SQL}: `kind` says of what. Of a sample, `name` is the amounts. */
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

/** Reads the statistics in one pass. */
export function statisticsStatement(accountId: number): Statement {
  return { sql: STATISTICS_SQL, bindings: [accountId, accountId] }
}

/** Runs of neighbours in time, evenly far apart: each run is one descent of an index that has the amounts. */
const SAMPLE_RUNS = 160
const SAMPLE_RUN = 50

const STATISTICS_SQL = `with mine as materialized (
  select network, source_network, currency, currency_symbol, invoice_currency, type, status, n, first_at, last_at, seq, priced
  from payment_statistics where account_id = ?
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
  cross join generate_series(0, ${SAMPLE_RUNS - 1}) as run
  cross join lateral (
    select amount_in_usd from payments
    where account_id = ? and status = frequent.status
      and timestamp >= frequent.first_at + run * (frequent.last_at - frequent.first_at) / ${SAMPLE_RUNS}.0
    order by timestamp, id limit ${SAMPLE_RUN}
  ) k`

/** Makes statistics of the rows. */
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

function sampleOf(rows: readonly StatisticsRow[]): DollarSample {
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
