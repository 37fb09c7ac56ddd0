import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { chunksOf } from '../chunks.ts'
import type { EventPlace, UnmatchedEvent } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'

const ROWS_A_STATEMENT = 500

/** An unmatched event as operators see it. */
export interface ListedUnmatched {
  readonly timestamp: Date
  /** Canonical name of the chain. */
  readonly network: string
  readonly txHash: Hex
  readonly eventIndex: number
  /** Name of the account; absent where no account knows the topic. */
  readonly account?: string | undefined
  readonly reason: UnmatchedReason
  /** The fields of the event; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** Selects unmatched events; a field that is undefined selects all. */
interface UnmatchedFilter {
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

/** Lists unmatched events, newest first. */
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
    account: name ?? undefined,
    reason,
    event,
  }))
}

/** Stores unmatched events; one that is stored already is replaced. */
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
  for (const some of chunksOf(rows, ROWS_A_STATEMENT)) {
    await trx('unmatched_events')
      .insert(some)
      .onConflict(['chain_id', 'tx_hash', 'event_index', 'account_id'])
      .merge(['reason', 'topic', 'block_number', 'timestamp', 'event'])
  }
}

/** Pairs of account and topic, among these, under which money went to somebody who was not known as a payer. */
export async function findReturnsToUnknown(
  trx: Knex,
  chainId: string,
  { accountIds, topics }: { readonly accountIds: readonly number[]; readonly topics: readonly Hex[] },
): Promise<{ readonly accountId: number; readonly topic: Hex }[]> {
  const { rows } = await trx.raw<{ rows: { account_id: number; topic: Buffer }[] }>(
    `select distinct account_id, topic from unmatched_events
     where chain_id = ? and account_id = any(?) and topic = any(?) and reason = 'WRONG_PAYEE'`,
    [chainId, [...accountIds], topics.map(hexToBytes)],
  )
  return rows.map(({ account_id, topic }) => ({ accountId: account_id, topic: bytesToHex(topic) }))
}

/** Deletes the unmatched events of these transactions and topics: those of the account, and those that belong to no account. */
export async function deleteUnmatchedOfTopics(
  trx: Knex,
  chainId: string,
  deleted: { readonly accountId: number; readonly txHashes: Iterable<Hex>; readonly topics: Iterable<Hex> },
): Promise<void> {
  const { accountId, txHashes, topics } = deleted
  await trx.raw(
    `delete from unmatched_events
     where chain_id = ? and tx_hash = any(?) and topic = any(?) and account_id = any(?)`,
    [chainId, [...txHashes].map(hexToBytes), [...topics].map(hexToBytes), [0, accountId]],
  )
}

/** Deletes the account's unmatched events at these places. */
export async function deleteUnmatchedAt(
  trx: Knex,
  chainId: string,
  accountId: number,
  places: readonly EventPlace[],
): Promise<void> {
  await trx.raw(
    `delete from unmatched_events u using unnest(?::bytea[], ?::integer[]) as e (tx_hash, event_index)
     where u.chain_id = ? and u.account_id = ? and u.tx_hash = e.tx_hash and u.event_index = e.event_index`,
    [places.map(({ txHash }) => hexToBytes(txHash)), places.map(({ eventIndex }) => eventIndex), chainId, accountId],
  )
}

export async function deleteUnmatchedAbove(trx: Knex, chainId: string, number: number): Promise<void> {
  await trx('unmatched_events').where({ chain_id: chainId }).where('block_number', '>', number).delete()
}

/**
 * Limits what a chain's unmatched events take up, since anybody can emit one for the price of a transaction: keeps the latest `keep` of unknown
 * topics, and as many that belong to accounts. Events in blocks that are not final are kept whatever their number.
 */
export async function pruneUnmatched(knex: Knex, chainId: string, keep: number): Promise<void> {
  for (const group of ['account_id = 0', 'account_id <> 0']) {
    await knex.raw(
      `delete from unmatched_events where chain_id = :chainId and ${group}
         and block_number < (
           select block_number from unmatched_events where chain_id = :chainId and ${group}
           order by block_number desc offset :before limit 1)
         and block_number <= (select final_block from chain_state where chain_id = :chainId)`,
      { chainId, before: keep - 1 },
    )
  }
}
