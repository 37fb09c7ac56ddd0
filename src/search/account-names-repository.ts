import type { Knex } from 'knex'
import { runCancellable } from '../db/cancellable.ts'

/** What the payments of an account call networks and currencies, beyond what tables and configuration know. */
export interface AccountNames {
  networks(): Promise<ReadonlySet<string>>
  /** Symbols of payment currencies. */
  symbols(): Promise<ReadonlySet<string>>
  /** Ids of payment currencies that have one of the symbols. */
  currencyIds(symbols: readonly string[]): Promise<ReadonlySet<string>>
  /** Currency ids and codes of invoices. */
  invoiceCurrencies(): Promise<ReadonlySet<string>>
}

/** Asks at most once for each kind of name, and only when it is needed. */
export function createAccountNames(knex: Knex, accountId: number, signal: AbortSignal | undefined): AccountNames {
  const ask = async (sql: string, bindings: readonly (number | string | readonly string[])[]) => {
    const query = knex.raw<{ rows: { name: string }[] }>(sql, bindings as Knex.RawBinding[])
    const { rows } = await runCancellable(knex, query, signal)
    return new Set(rows.map(({ name }) => name))
  }
  return {
    networks: once(() => ask(NETWORKS_SQL, [accountId])),
    symbols: once(() => ask(distinctSql('currency_symbol'), [accountId])),
    currencyIds: (symbols) => ask(CURRENCY_IDS_SQL, [accountId, symbols]),
    invoiceCurrencies: once(() => ask(distinctSql('invoice_currency'), [accountId])),
  }
}

/** The statistics have a row for each combination of names, where `select distinct` would read every payment of the account. */
function distinctSql(column: 'currency_symbol' | 'invoice_currency'): string {
  return `select distinct ${column} as name from payment_statistics where account_id = ? and n > 0 and ${column} <> ''`
}

const NETWORKS_SQL = `select distinct name from payment_statistics
cross join lateral (values (network), (source_network)) as names(name)
where account_id = ? and n > 0 and name <> ''`

const CURRENCY_IDS_SQL = `select distinct currency as name from payment_statistics
where account_id = ? and n > 0 and currency_symbol = any(?::text[])`

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}
