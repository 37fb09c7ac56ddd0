import type { Knex } from 'knex'
import { runCancellable } from '../../postgres/cancellable.ts'
import { bind, raw, type Statement, sql } from '../../postgres/statement.ts'

/** The names of networks and currencies that the payments of an account have, beyond those of the configuration and built-in tables. */
export interface AccountNames {
  networks(): Promise<ReadonlySet<string>>
  /** Symbols of payment currencies. */
  symbols(): Promise<ReadonlySet<string>>
  /** Ids of payment currencies. */
  currencyIds(): Promise<ReadonlySet<string>>
  /** Currency ids and codes of invoices. */
  invoiceCurrencies(): Promise<ReadonlySet<string>>
}

/** Accounts whose names a process remembers; the least recently used is evicted first. */
const MAX_ACCOUNTS = 500

/** The names of an account, valid until it has a newer combination than `seq`. */
interface CachedNames {
  readonly seq: string
  readonly sets: Map<string, Promise<ReadonlySet<string>>>
}

/**
 * Makes the reader of any account's names. An account of many networks and currencies has tens of thousands of combinations, so its names
 * are cached; each call asks for the number of the newest combination and reads the names again when there is a new one. A name stays
 * known when its last payment is gone.
 */
export function createAccountNamesReader(
  knex: Knex,
): (accountId: number, signal: AbortSignal | undefined) => AccountNames {
  const accounts = new Map<number, CachedNames>()

  function cachedAt(accountId: number, seq: string): CachedNames {
    const known = accounts.get(accountId)
    const cached = known?.seq === seq ? known : { seq, sets: new Map() }
    accounts.delete(accountId)
    accounts.set(accountId, cached)
    const [oldest] = accounts.keys()
    if (accounts.size > MAX_ACCOUNTS && oldest !== undefined) accounts.delete(oldest)
    return cached
  }

  return (accountId, signal) => {
    const ask = async <Row>(statement: Statement): Promise<Row[]> => {
      const query = knex.raw<{ rows: Row[] }>(statement.sql, statement.bindings as Knex.RawBinding[])
      return (await runCancellable(knex, query, signal)).rows
    }
    const cached = once(async () => {
      const [row] = await ask<{ seq: string | null }>(newestSeq(accountId))
      return cachedAt(accountId, row?.seq ?? '')
    })
    const read = async (statement: Statement) =>
      new Set((await ask<{ name: string }>(statement)).map(({ name }) => name))
    const names = async (key: string, statement: Statement): Promise<ReadonlySet<string>> => {
      const { sets } = await cached()
      const known = sets.get(key)
      // a read that another call began fails when that call is cancelled
      if (known !== undefined) return known.catch(() => read(statement))
      const reading = read(statement)
      sets.set(key, reading)
      reading.catch(() => sets.delete(key))
      return reading
    }
    return {
      networks: () => names('network', networkNames(accountId)),
      symbols: () => names('symbol', distinctNames(accountId, 'currency_symbol')),
      currencyIds: () => names('currency', distinctNames(accountId, 'currency')),
      invoiceCurrencies: () => names('invoice', distinctNames(accountId, 'invoice_currency')),
    }
  }
}

function newestSeq(accountId: number): Statement {
  return sql`select max(seq)::text as seq from payment_statistics where account_id = ${bind(accountId)}`
}

/** The statistics have one row for each combination; `select distinct` on the payments would read them all. */
function networkNames(accountId: number): Statement {
  return sql`select distinct name from payment_statistics
cross join lateral (values (network), (source_network)) as names(name)
where account_id = ${bind(accountId)} and name <> ''`
}

function distinctNames(accountId: number, column: 'currency' | 'currency_symbol' | 'invoice_currency'): Statement {
  const name = raw(column)
  return sql`select distinct ${name} as name from payment_statistics where account_id = ${bind(accountId)} and ${name} <> ''`
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}
