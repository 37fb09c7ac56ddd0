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
  const distinct = (column: string) => once(() => ask(distinctSql(column), [accountId, accountId]))
  return {
    networks: once(async () => {
      const [destinations, sources] = await Promise.all([
        ask(distinctSql('network'), [accountId, accountId]),
        ask(SOURCE_NETWORKS_SQL, [accountId]),
      ])
      return new Set([...destinations, ...sources])
    }),
    symbols: distinct('currency_symbol'),
    currencyIds: (symbols) => ask(CURRENCY_IDS_SQL, [accountId, symbols]),
    invoiceCurrencies: distinct('invoice_currency'),
  }
}

/** One index probe for each distinct value, where `select distinct` would read every payment of the account. */
function distinctSql(column: 'network' | 'currency_symbol' | 'invoice_currency' | (string & {})): string {
  return `with recursive known(name) as (
  select min(${column}) from payments where account_id = ?
  union all
  select (select min(p.${column}) from payments p where p.account_id = ? and p.${column} > known.name)
  from known where known.name is not null
)
select name from known where name is not null`
}

const SOURCE_NETWORKS_SQL = `select distinct source_network as name from payments
where account_id = ? and source_network <> network`

const CURRENCY_IDS_SQL = `select distinct currency as name from payments
where account_id = ? and currency_symbol = any(?::text[])`

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}
