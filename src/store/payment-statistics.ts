import type { PreparedStatement } from '../postgres/prepared.ts'

/** Payments that a combination gained, or lost where `n` is negative. An unknown `sourceNetwork` or `invoiceCurrency` is '', an unknown `type` -1. */
export interface Arrivals {
  readonly network: string
  readonly sourceNetwork: string
  readonly currency: string
  readonly currencySymbol: string
  readonly invoiceCurrency: string
  readonly type: number
  readonly status: number
  readonly n: number
  readonly firstAt: Date
  readonly lastAt: Date
}

/** The columns of `payment_statistics` in which counts are written, without the account. */
const STATISTICS_COLUMNS = `network, source_network, currency, currency_symbol, invoice_currency, type, status, n, first_at, last_at`

/** The fields of arrivals and their types, in the order of {@link STATISTICS_COLUMNS}. */
const arrivalColumns = [
  ['network', 'text'],
  ['sourceNetwork', 'text'],
  ['currency', 'text'],
  ['currencySymbol', 'text'],
  ['invoiceCurrency', 'text'],
  ['type', 'smallint'],
  ['status', 'smallint'],
  ['n', 'bigint'],
  ['firstAt', 'timestamptz'],
  ['lastAt', 'timestamptz'],
] as const satisfies readonly (readonly [keyof Arrivals, string])[]

/** Adds counts to the stored ones. */
const ADD_TO_STORED = `
  on conflict (account_id, network, source_network, currency, invoice_currency, type, status) do update set
    n = stored.n + excluded.n,
    first_at = least(stored.first_at, excluded.first_at),
    last_at = greatest(stored.last_at, excluded.last_at)`

/** Binds the account, and a list for each column of {@link STATISTICS_COLUMNS}. */
const COUNT = `
  insert into payment_statistics as stored (account_id, ${STATISTICS_COLUMNS})
  select ?::int, added.* from unnest(${arrivalColumns.map(([, type]) => `?::${type}[]`).join(', ')}) as added
  ${ADD_TO_STORED}`

/** Adds counts to those of an account. Each combination may occur once. */
export function countStatement(accountId: number, counts: readonly Arrivals[]): PreparedStatement {
  const columns = arrivalColumns.map(([name]) => counts.map((count) => count[name]))
  return { sql: COUNT, bindings: [accountId, ...columns] }
}

/** The columns that decide how a payment is counted: the combination, and the time that bounds it. */
export const COUNTED_COLUMNS = [
  'network',
  'source_network',
  'currency',
  'currency_symbol',
  'invoice_currency',
  'type',
  'status',
  'timestamp',
] as const

/** The columns of {@link COUNTED_COLUMNS}. */
export interface CountedRow {
  readonly network: string
  readonly source_network: string | null
  readonly currency: string
  readonly currency_symbol: string
  readonly invoice_currency: string | null
  readonly type: number | null
  readonly status: number
  readonly timestamp: Date
}

/** A row that was written and is not as it was before. */
export interface ChangedRow {
  readonly id: string
  readonly before: CountedRow | undefined
  readonly after: CountedRow | undefined
}

/** What combinations of the statistics gained and lost. */
export function countMoves(changes: readonly ChangedRow[]): Arrivals[] {
  const moves = new Map<string, Arrivals>()
  const count = (row: CountedRow | undefined, n: 1 | -1) => {
    if (row === undefined) return
    const key = [row.network, row.source_network, row.currency, row.invoice_currency, row.type, row.status].join('\n')
    const known = moves.get(key)
    moves.set(key, {
      network: row.network,
      sourceNetwork: row.source_network ?? '',
      currency: row.currency,
      currencySymbol: row.currency_symbol,
      invoiceCurrency: row.invoice_currency ?? '',
      type: row.type ?? -1,
      status: row.status,
      n: (known?.n ?? 0) + n,
      firstAt: known !== undefined && known.firstAt < row.timestamp ? known.firstAt : row.timestamp,
      lastAt: known !== undefined && known.lastAt > row.timestamp ? known.lastAt : row.timestamp,
    })
  }
  for (const { before, after } of changes.filter(isMoved)) {
    count(after, 1)
    count(before, -1)
  }
  return [...moves.values()]
}

function isMoved({ before, after }: ChangedRow): boolean {
  return COUNTED_COLUMNS.some((key) => String(before?.[key]) !== String(after?.[key]))
}
