import type { Knex } from 'knex'
import { chunksOf } from '../../domain/collections.ts'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import type { CutPosition } from '../../domain/pages/cut-page.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import type { EventPlace, UnmatchedEvent } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import { type AccountEvent, columnsOf } from './account-events-repository.ts'
import type { KnownTopic } from './pending-replays-repository.ts'
import { queryRows, readRows } from './read-rows.ts'

const ROWS_A_STATEMENT = 500

/** An unmatched event as operators see it. */
export interface ListedUnmatched extends UnmatchedEvent {
  /** CAIP-2. */
  readonly chainId: string
  /** Canonical name of the chain. */
  readonly network: string
  /** Name of the account; absent where no account knows the topic. */
  readonly account?: string | undefined
}

/** Selects unmatched events; a field that is undefined selects all, an empty list none. */
export interface UnmatchedFilter {
  readonly accountIds?: readonly number[] | undefined
  /** CAIP-2. */
  readonly chainIds?: readonly string[] | undefined
  readonly reasons?: readonly UnmatchedReason[] | undefined
  readonly txHashes?: readonly Hex[] | undefined
  readonly eventIndex?: number | undefined
  /** Times of blocks, inclusive, in milliseconds since 1970. */
  readonly fromDate?: number | undefined
  readonly toDate?: number | undefined
}

/** Beside which event a page of a list begins. */
export interface UnmatchedPosition extends CutPosition {
  /** The columns of the order: time in milliseconds, chain id, block, transaction hash, event index, account id. */
  readonly key: readonly [number, string, number, Hex, number, number]
}

/** The order of a list: time and block first, since some chains have several blocks a second, then what makes a row unique. */
const ORDER = ['u.timestamp', 'u.chain_id', 'u.block_number', 'u.tx_hash', 'u.event_index', 'u.account_id'] as const

const COLUMNS = [...ORDER, 'c.network', 'a.name as account', 'u.reason', 'u.topic', 'u.event'] as const

/** Lists unmatched events in reading order: newest first, or oldest first where the position says so. */
export async function listUnmatched(
  knex: Knex,
  filter: UnmatchedFilter,
  { rows, position }: { readonly rows: number; readonly position?: UnmatchedPosition | undefined },
  signal?: AbortSignal,
): Promise<ListedUnmatched[]> {
  const order = position?.direction === 'backward' ? 'asc' : 'desc'
  const query = knex('unmatched_events as u')
    .leftJoin('chain_state as c', 'c.chain_id', 'u.chain_id')
    .leftJoin('accounts as a', 'a.id', 'u.account_id')
    .select<object[]>(...COLUMNS)
    .orderBy(ORDER.map((column) => ({ column, order })))
    .limit(rows)
  narrow(query, filter)
  if (position !== undefined) {
    const [timestamp, chainId, blockNumber, txHash, eventIndex, accountId] = position.key
    const comparison = `${order === 'asc' ? '>' : '<'}${position.inclusive ? '=' : ''}`
    const values = [new Date(timestamp), chainId, blockNumber, hexToBytes(txHash), eventIndex, accountId]
    void query.whereRaw(`(${ORDER.join(', ')}) ${comparison} (?::timestamptz, ?, ?, ?, ?, ?)`, values)
  }
  const listed = readRows<ListedUnmatched>(await runCancellable<object[]>(knex, query, signal))
  return listed.map((event) => ({ ...event, network: event.network ?? event.chainId }))
}

function narrow(query: Knex.QueryBuilder, filter: UnmatchedFilter): void {
  const { accountIds, chainIds, reasons, txHashes, eventIndex, fromDate, toDate } = filter
  if (accountIds !== undefined) void query.whereIn('u.account_id', accountIds)
  if (chainIds !== undefined) void query.whereIn('u.chain_id', chainIds)
  if (reasons !== undefined) void query.whereIn('u.reason', reasons)
  if (txHashes !== undefined) void query.whereIn('u.tx_hash', txHashes.map(hexToBytes))
  if (eventIndex !== undefined) void query.where('u.event_index', eventIndex)
  if (fromDate !== undefined) void query.where('u.timestamp', '>=', new Date(fromDate))
  if (toDate !== undefined) void query.where('u.timestamp', '<=', new Date(toDate))
}

/** The ids of accounts by name; a name that no account has is left out. */
export async function findAccountIds(knex: Knex, names: readonly string[]): Promise<Map<string, number>> {
  const rows = await knex('accounts').whereIn('name', names).select<{ id: number; name: string }[]>('id', 'name')
  return new Map(rows.map(({ id, name }) => [name, id]))
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
export function findReturnsToUnknown(
  trx: Knex,
  chainId: string,
  { accountIds, topics }: { readonly accountIds: readonly number[]; readonly topics: readonly Hex[] },
): Promise<KnownTopic[]> {
  return queryRows(
    trx,
    `select distinct account_id, topic from unmatched_events
     where chain_id = ? and account_id = any(?) and topic = any(?) and reason = 'WRONG_PAYEE'`,
    [chainId, [...accountIds], topics.map(hexToBytes)],
  )
}

/** Deletes the unmatched events of no account in these transactions whose topics are known now. */
export async function deleteUnknown(
  trx: Knex,
  chainId: string,
  { txHashes, topics }: { readonly txHashes: Iterable<Hex>; readonly topics: readonly Hex[] },
): Promise<void> {
  await trx.raw(
    'delete from unmatched_events where chain_id = ? and tx_hash = any(?) and topic = any(?) and account_id = 0',
    [chainId, [...txHashes].map(hexToBytes), topics.map(hexToBytes)],
  )
}

/** Deletes the account's unmatched events at these places. @returns those that were stored */
export function deleteUnmatchedAt(
  trx: Knex,
  chainId: string,
  accountId: number,
  places: readonly EventPlace[],
): Promise<UnmatchedEvent[]> {
  return queryRows(
    trx,
    `delete from unmatched_events u using unnest(?::bytea[], ?::integer[]) as e (tx_hash, event_index)
     where u.chain_id = ? and u.account_id = ? and u.tx_hash = e.tx_hash and u.event_index = e.event_index returning u.*`,
    [places.map(({ txHash }) => hexToBytes(txHash)), places.map(({ eventIndex }) => eventIndex), chainId, accountId],
  )
}

/** @returns undefined where the account has no such unmatched event */
export async function findUnmatched(knex: Knex, of: AccountEvent): Promise<UnmatchedEvent | undefined> {
  const [stored] = readRows<UnmatchedEvent>(await knex('unmatched_events').where(columnsOf(of)))
  return stored
}

/** The unmatched events of unknown topics that are stored in some blocks. */
export async function findUnknownBetween(
  knex: Knex,
  { chainId, from, to }: { readonly chainId: string; readonly from: number; readonly to: number },
): Promise<UnmatchedEvent[]> {
  const rows = await knex('unmatched_events')
    .where({ chain_id: chainId, account_id: 0, reason: 'UNKNOWN_TOPIC' })
    .whereBetween('block_number', [from, to])
  return readRows<UnmatchedEvent>(rows)
}

/** How many unmatched events of unknown topics a chain has. Old ones are deleted beyond a number. */
export async function countUnknown(knex: Knex, chainId: string): Promise<number> {
  const row = await knex('unmatched_events').where({ chain_id: chainId, account_id: 0 }).count<{ count: bigint }[]>()
  return Number(row[0]?.count ?? 0)
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
