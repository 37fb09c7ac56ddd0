import type { Statement } from './payment-query-repository.ts'

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
  /** The part of the payments that has the value, from 0 to 1. */
  readonly shareOfType: ReadonlyMap<number, number>
  /** By the id of the payment currency: on which networks, and how many. */
  readonly currencies: ReadonlyMap<string, readonly CurrencyOnNetwork[]>
  readonly shareOfInvoice: ReadonlyMap<string, number>
  /** Of those whose source is not their destination. */
  readonly shareOfSource: ReadonlyMap<string, number>
  /** The number of the combination that came last; 0 without any. */
  readonly seq: number
}

/** Payments of one status on one destination network in currencies of one symbol. */
export interface Cell {
  readonly status: number
  readonly network: string
  readonly symbol: string
  readonly n: number
  /** Milliseconds since 1970. */
  readonly firstMs: number
  readonly lastMs: number
}

/** Payments in one currency on one destination network. */
export interface CurrencyOnNetwork {
  readonly network: string
  readonly n: number
}

/** A row of {@link STATISTICS_SQL}: `kind` says of what. */
export interface StatisticsRow {
  readonly kind: 'cell' | 'type' | 'currency' | 'invoice' | 'source' | 'all'
  readonly status: number | null
  readonly type: number | null
  readonly network: string | null
  readonly name: string | null
  readonly n: string
  readonly first_at: Date | null
  readonly last_at: Date | null
  readonly seq: string | null
}

/** Reads the statistics in one pass. */
export function statisticsStatement(accountId: number): Statement {
  return { sql: STATISTICS_SQL, bindings: [accountId] }
}

const STATISTICS_SQL = `with mine as materialized (
  select network, source_network, currency, currency_symbol, invoice_currency, type, status, n, first_at, last_at, seq
  from payment_statistics where account_id = ?
)
select 'cell' as kind, status, null::smallint as type, network, currency_symbol as name, sum(n)::text as n, min(first_at) as first_at,
  max(last_at) as last_at, null::text as seq
from mine group by status, network, currency_symbol
union all select 'type', null, type, null, null, sum(n)::text, null, null, null from mine group by type
union all select 'currency', null, null, network, currency, sum(n)::text, null, null, null from mine group by network, currency
union all select 'invoice', null, null, null, invoice_currency, sum(n)::text, null, null, null from mine group by invoice_currency
union all select 'source', null, null, null, source_network, sum(n)::text, null, null, null from mine
  where source_network <> network group by source_network
union all select 'all', null, null, null, null, coalesce(sum(n), 0)::text, min(first_at), max(last_at), coalesce(max(seq), 0)::text from mine`

/** Makes statistics of the rows. */
export function statisticsOfRows(rows: readonly StatisticsRow[]): AccountStatistics {
  const all = rows.find(({ kind }) => kind === 'all')
  const n = Number(all?.n ?? 0)
  const sharesOf = <K>(kind: StatisticsRow['kind'], key: (row: StatisticsRow) => K | null) => {
    const ofKind = rows.filter((row) => row.kind === kind)
    return new Map(ofKind.map((row) => [key(row) as K, n === 0 ? 0 : Number(row.n) / n]))
  }
  return {
    n,
    firstMs: all?.first_at?.getTime() ?? 0,
    lastMs: all?.last_at?.getTime() ?? -1,
    cells: rows.flatMap(({ kind, status, network, name, n: count, first_at: first, last_at: last }) =>
      kind === 'cell' && status !== null && network !== null && name !== null
        ? [
            {
              status,
              network,
              symbol: name,
              n: Number(count),
              firstMs: first?.getTime() ?? 0,
              lastMs: last?.getTime() ?? 0,
            },
          ]
        : [],
    ),
    shareOfType: sharesOf('type', ({ type }) => type),
    currencies: currenciesOf(rows),
    shareOfInvoice: sharesOf('invoice', ({ name }) => name),
    shareOfSource: sharesOf('source', ({ name }) => name),
    seq: Number(all?.seq ?? 0),
  }
}

function currenciesOf(rows: readonly StatisticsRow[]): Map<string, CurrencyOnNetwork[]> {
  const found = new Map<string, CurrencyOnNetwork[]>()
  for (const { kind, network, name, n } of rows) {
    if (kind !== 'currency' || network === null || name === null) continue
    found.set(name, [...(found.get(name) ?? []), { network, n: Number(n) }])
  }
  return found
}
