import type { Knex } from 'knex'
import type { PaymentRow } from './payment-row.ts'

/** The columns of `payment_statistics` in which counts are written, with their types, without the account. */
const statisticsColumns = {
  network: 'text',
  source_network: 'text',
  currency: 'text',
  currency_symbol: 'text',
  invoice_currency: 'text',
  type: 'smallint',
  status: 'smallint',
  n: 'bigint',
  first_at: 'timestamptz',
  last_at: 'timestamptz',
}

/** Payments that a combination gained, or lost where `n` is negative. An unknown `source_network` or `invoice_currency` is '', an unknown `type` -1. */
interface Arrivals extends Readonly<Record<'network' | 'source_network' | 'currency' | 'currency_symbol', string>> {
  readonly invoice_currency: string
  readonly type: number
  readonly status: number
  n: number
  first_at: Date
  last_at: Date
}

/** Adds counts to the stored ones. */
const ADD_TO_STORED = `
  on conflict (account_id, network, source_network, currency, invoice_currency, type, status) do update set
    n = stored.n + excluded.n,
    first_at = least(stored.first_at, excluded.first_at),
    last_at = greatest(stored.last_at, excluded.last_at)`

/** Binds the account, and a list for each column of {@link statisticsColumns}. */
const COUNT = `
  insert into payment_statistics as stored (account_id, ${Object.keys(statisticsColumns).join(', ')})
  select ?::int, added.* from unnest(${Object.values(statisticsColumns)
    .map((type) => `?::${type}[]`)
    .join(', ')}) as added
  ${ADD_TO_STORED}`

/** Adds counts to those of an account. Each combination may occur once. */
export async function addCounts(
  { trx, accountId }: { readonly trx: Knex; readonly accountId: number },
  counts: readonly Arrivals[],
): Promise<void> {
  if (counts.length === 0) return
  const names = Object.keys(statisticsColumns) as (keyof Arrivals)[]
  const columns = names.map((name) => counts.map((count) => count[name]))
  await trx.raw(COUNT, [accountId, ...columns] as Knex.RawBinding[])
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

export type CountedRow = Pick<PaymentRow, (typeof COUNTED_COLUMNS)[number]>

/** What combinations of the statistics gained and lost. */
export function countMoves(
  changes: readonly { readonly before?: CountedRow | undefined; readonly after?: CountedRow | undefined }[],
): Arrivals[] {
  const moves = new Map<string, Arrivals>()
  const count = (row: CountedRow | undefined, n: 1 | -1) => {
    if (row === undefined) return
    const combination = {
      network: row.network,
      source_network: row.source_network ?? '',
      currency: row.currency,
      currency_symbol: row.currency_symbol,
      invoice_currency: row.invoice_currency ?? '',
      type: row.type ?? -1,
      status: row.status,
    }
    const key = Object.values(combination).join('\n')
    const known = moves.get(key)
    if (known === undefined) {
      moves.set(key, { ...combination, n, first_at: row.timestamp, last_at: row.timestamp })
      return
    }
    known.n += n
    if (row.timestamp < known.first_at) known.first_at = row.timestamp
    if (row.timestamp > known.last_at) known.last_at = row.timestamp
  }
  for (const { before, after } of changes) {
    if (before !== undefined && after !== undefined && isSame(before, after)) continue
    count(after, 1)
    count(before, -1)
  }
  return [...moves.values()]
}

function isSame(before: CountedRow, after: CountedRow): boolean {
  return COUNTED_COLUMNS.every((key) => String(before[key]) === String(after[key]))
}
