import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { type EventPlace, eventKeyOf } from '../match/detected.ts'

/** One event of one chain, for one account. */
export interface AccountEvent extends EventPlace {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
}

/** The columns that identify the event in every table of an account's events. */
export function columnsOf({ accountId, chainId, txHash, eventIndex }: AccountEvent) {
  return { account_id: accountId, chain_id: chainId, tx_hash: hexToBytes(txHash), event_index: eventIndex }
}

/** Transactions of one chain. */
export interface ChainTransactions {
  /** CAIP-2. */
  readonly chainId: string
  readonly txHashes: readonly Hex[]
}

/**
 * Reads rows of an account's events in some transactions.
 *
 * @param table - a table of events, or a subquery
 * @param columns - beside the place of the event
 * @returns what `read` makes of each row, by {@link eventKeyOf}
 */
export async function findByEvent<Row, T>(
  knex: Knex,
  table: string,
  columns: readonly (keyof Row & string)[],
  asked: { readonly accountId: number } & ChainTransactions,
  read: (row: Row) => T,
): Promise<Map<string, T>> {
  if (asked.txHashes.length === 0) return new Map()
  const { rows } = await knex.raw<{ rows: (Row & { readonly tx_hash: Buffer; readonly event_index: number })[] }>(
    `select tx_hash, event_index, ${columns.join()} from ${table}
     where account_id = ? and chain_id = ? and tx_hash = any(?) and event_index is not null`,
    [asked.accountId, asked.chainId, asked.txHashes.map(hexToBytes)],
  )
  return new Map(
    rows.map((row) => [eventKeyOf({ txHash: bytesToHex(row.tx_hash), eventIndex: row.event_index }), read(row)]),
  )
}
