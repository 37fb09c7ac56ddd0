import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { UnmatchedEvent } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import type { EventPlace } from './ledger-repository.ts'

const ROWS_A_STATEMENT = 500

/** An event that counts for nothing, as operators see it. */
export interface ListedUnmatched {
  readonly timestamp: Date
  /** Canonical name of the chain. */
  readonly network: string
  readonly txHash: Hex
  readonly eventIndex: number
  /** Name of the account; absent where nobody knows the topic. */
  readonly account?: string
  readonly reason: UnmatchedReason
  /** What it said; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** Which of them are listed. */
export interface UnmatchedFilter {
  readonly accountId?: number | undefined
  /** CAIP-2. */
  readonly chainId?: string | undefined
  readonly reason?: UnmatchedReason | undefined
}

interface ListedRow {
  readonly timestamp: Date
  readonly network: string | null
  readonly chain_id: string
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly name: string | null
  readonly reason: UnmatchedReason
  readonly event: Readonly<Record<string, string>>
}

/** Events that count for nothing, newest first. */
export async function listUnmatched(knex: Knex, filter: UnmatchedFilter, limit: number): Promise<ListedUnmatched[]> {
  const query = knex('unmatched_events as u')
    .leftJoin('chain_state as c', 'c.chain_id', 'u.chain_id')
    .leftJoin('accounts as a', 'a.id', 'u.account_id')
    .orderBy([
      { column: 'u.timestamp', order: 'desc' },
      { column: 'u.block_number', order: 'desc' },
      { column: 'u.tx_hash' },
      { column: 'u.event_index', order: 'desc' },
      { column: 'u.account_id' },
    ])
    .limit(limit)
  if (filter.accountId !== undefined) void query.where('u.account_id', filter.accountId)
  if (filter.chainId !== undefined) void query.where('u.chain_id', filter.chainId)
  if (filter.reason !== undefined) void query.where('u.reason', filter.reason)
  const columns = [
    'u.timestamp',
    'c.network',
    'u.chain_id',
    'u.tx_hash',
    'u.event_index',
    'a.name',
    'u.reason',
    'u.event',
  ]
  const rows: ListedRow[] = await query.select(columns)
  return rows.map(({ timestamp, network, chain_id, tx_hash, event_index, name, reason, event }) => ({
    timestamp,
    network: network ?? chain_id,
    txHash: bytesToHex(tx_hash),
    eventIndex: event_index,
    ...(name !== null && { account: name }),
    reason,
    event,
  }))
}

/** Stores events that change no balance; one that is stored already is replaced. */
export async function storeUnmatched(trx: Knex, chainId: string, events: readonly UnmatchedEvent[]): Promise<void> {
  const rows = events.map((event) => ({
    chain_id: chainId,
    tx_hash: hexToBytes(event.txHash),
    event_index: event.eventIndex,
    account_id: event.accountId,
    reason: event.reason,
    topic: hexToBytes(event.topic),
    block_number: event.blockNumber,
    timestamp: event.timestamp,
    event: JSON.stringify(event.event),
  }))
  for (let from = 0; from < rows.length; from += ROWS_A_STATEMENT) {
    await trx('unmatched_events')
      .insert(rows.slice(from, from + ROWS_A_STATEMENT))
      .onConflict(['chain_id', 'tx_hash', 'event_index', 'account_id'])
      .merge(['reason', 'topic', 'block_number', 'timestamp', 'event'])
  }
}

/** What an account no longer counts as unmatched: its own rows and nobody's, of these transactions and topics. */
export async function forgetUnmatched(
  trx: Knex,
  chainId: string,
  forgotten: { readonly accountId: number; readonly txHashes: Iterable<Hex>; readonly topics: Iterable<Hex> },
): Promise<void> {
  const { accountId, txHashes, topics } = forgotten
  await trx.raw(
    `delete from unmatched_events
     where chain_id = ? and tx_hash = any(?) and topic = any(?) and account_id = any(?)`,
    [chainId, [...txHashes].map(hexToBytes), [...topics].map(hexToBytes), [0, accountId]],
  )
}

/** What an account no longer counts as unmatched: its own rows of these events. */
export async function forgetEvents(
  trx: Knex,
  chainId: string,
  accountId: number,
  events: readonly EventPlace[],
): Promise<void> {
  await trx.raw(
    `delete from unmatched_events u using unnest(?::bytea[], ?::integer[]) as e (tx_hash, event_index)
     where u.chain_id = ? and u.account_id = ? and u.tx_hash = e.tx_hash and u.event_index = e.event_index`,
    [events.map(({ txHash }) => hexToBytes(txHash)), events.map(({ eventIndex }) => eventIndex), chainId, accountId],
  )
}

/**
 * Keeps a chain's latest events of unknown topics, and as many that are unmatched for accounts: anybody can make either for the
 * price of a transaction. Those in blocks that are not final stay, whatever their number.
 */
export async function pruneUnmatched(knex: Knex, chainId: string, keep: number): Promise<void> {
  for (const whose of ['account_id = 0', 'account_id <> 0']) {
    await knex.raw(
      `delete from unmatched_events where chain_id = :chainId and ${whose}
         and block_number < (
           select block_number from unmatched_events where chain_id = :chainId and ${whose}
           order by block_number desc offset :before limit 1)
         and block_number <= (select final_block from chain_state where chain_id = :chainId)`,
      { chainId, before: keep - 1 },
    )
  }
}
