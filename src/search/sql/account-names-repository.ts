import type { Knex } from 'knex'
import { runCancellable } from '../../postgres/cancellable.ts'
import type { Statement } from './payment-query.ts'

/** What the payments of an account call networks and currencies, beyond what tables and configuration know. */
export interface AccountNames {
  networks(): Promise<ReadonlySet<string>>
  /** Symbols of payment currencies. */
  symbols(): Promise<ReadonlySet<string>>
  /** Ids of payment currencies. */
  currencyIds(): Promise<ReadonlySet<string>>
  /** Currency ids and codes of invoices. */
  invoiceCurrencies(): Promise<ReadonlySet<string>>
}

/** Accounts whose names a process remembers; the one that was asked about longest ago is forgotten first. */
const MOST_ACCOUNTS = 500

/** Names as of the combination of an account that came last. */
interface Remembered {
  readonly seq: string
  readonly sets: Map<string, Promise<ReadonlySet<string>>>
}

/**
 * Makes what tells the names of any account. An account of many networks and currencies has tens of thousands of combinations, so its
 * names are remembered until it has a new one, which is asked for with each call. A name stays known when its last payment is gone.
 */
export function createAccountNamesReader(
  knex: Knex,
): (accountId: number, signal: AbortSignal | undefined) => AccountNames {
  const accounts = new Map<number, Remembered>()

  function recall(accountId: number, seq: string): Remembered {
    const known = accounts.get(accountId)
    const remembered = known?.seq === seq ? known : { seq, sets: new Map() }
    accounts.delete(accountId)
    accounts.set(accountId, remembered)
    const [oldest] = accounts.keys()
    if (accounts.size > MOST_ACCOUNTS && oldest !== undefined) accounts.delete(oldest)
    return remembered
  }

  return (accountId, signal) => {
    const ask = async <Row>({ sql, bindings }: Statement): Promise<Row[]> =>
      (await runCancellable(knex, knex.raw<{ rows: Row[] }>(sql, bindings as Knex.RawBinding[]), signal)).rows
    const remembered = once(async () => {
      const [row] = await ask<{ seq: string | null }>({ sql: SEQ_SQL, bindings: [accountId] })
      return recall(accountId, row?.seq ?? '')
    })
    const names = async (key: string, statement: Statement): Promise<ReadonlySet<string>> => {
      const { sets } = await remembered()
      const known = sets.get(key)
      // A reading that another call began is broken off with that call.
      if (known !== undefined) return known.catch(() => read(statement))
      const reading = read(statement)
      sets.set(key, reading)
      reading.catch(() => sets.delete(key))
      return reading
    }
    const read = async (statement: Statement) =>
      new Set((await ask<{ name: string }>(statement)).map(({ name }) => name))
    return {
      networks: () => names('network', { sql: NETWORKS_SQL, bindings: [accountId] }),
      symbols: () => names('symbol', { sql: distinctSql('currency_symbol'), bindings: [accountId] }),
      currencyIds: () => names('currency', { sql: distinctSql('currency'), bindings: [accountId] }),
      invoiceCurrencies: () => names('invoice', { sql: distinctSql('invoice_currency'), bindings: [accountId] }),
    }
  }
}

const SEQ_SQL = 'select max(seq)::text as seq from payment_statistics where account_id = ?'

/** The statistics have a row for each combination of names, where `select distinct` would read every payment of the account. */
function distinctSql(column: 'currency' | 'currency_symbol' | 'invoice_currency'): string {
  return `select distinct ${column} as name from payment_statistics where account_id = ? and ${column} <> ''`
}

const NETWORKS_SQL = `select distinct name from payment_statistics
cross join lateral (values (network), (source_network)) as names(name)
where account_id = ? and name <> ''`

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}
