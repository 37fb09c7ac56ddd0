import type { Knex } from 'knex'
import type { AccountNames } from '../../chains/resolve-names.ts'
import { dropOldest } from '../../domain/collections.ts'
import { readOnce } from '../../errors/gather-errors.ts'
import { raw, readRows, type Statement } from '../../postgres/statement.ts'

/** Accounts whose names a process remembers; the least recently used is evicted first. */
const MAX_ACCOUNTS = 500

/** The names of an account, valid until it has a newer combination than `seq`. */
interface CachedNames {
  readonly seq: string
  readonly sets: Map<string, Promise<ReadonlySet<string>>>
}

/**
 * Makes the reader of any account's names. An account of many networks and currencies has tens of thousands of combinations, so its names
 * are cached; a call asks for the number of the newest combination and reads the names again when there is a new one. A name stays
 * known when its last payment is gone.
 */
export function createAccountNamesReader(knex: Knex) {
  const accounts = new Map<number, CachedNames>()

  return (accountId: number, signal: AbortSignal | undefined): AccountNames => {
    const cached = readOnce(async () => {
      const [row] = await readRows<{ seq: string | null }>(knex, newestSeq(accountId), signal)
      const seq = row?.seq ?? ''
      const known = accounts.get(accountId)
      const names: CachedNames = known?.seq === seq ? known : { seq, sets: new Map() }
      accounts.delete(accountId)
      accounts.set(accountId, names)
      dropOldest(accounts, MAX_ACCOUNTS)
      return names
    })
    const read = async (statement: Statement) =>
      new Set((await readRows<{ name: string }>(knex, statement, signal)).map(({ name }) => name))
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
  return raw('select max(seq)::text as seq from payment_statistics where account_id = ?', [accountId])
}

/** The statistics have one row for each combination; `select distinct` on the payments would read them all. */
function networkNames(accountId: number): Statement {
  return raw(
    `select distinct name from payment_statistics
cross join lateral (values (network), (source_network)) as names(name)
where account_id = ? and name <> ''`,
    [accountId],
  )
}

function distinctNames(accountId: number, column: 'currency' | 'currency_symbol' | 'invoice_currency'): Statement {
  return raw(`select distinct ${column} as name from payment_statistics where account_id = ? and ${column} <> ''`, [
    accountId,
  ])
}
