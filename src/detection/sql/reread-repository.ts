import type { Knex } from 'knex'
import { addressToBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { type EventPlace, eventKeyOf, type Findings } from '../match/detected.ts'

/** A detected payment or refund of an account, and the topics under which its event can be. */
export interface StoredEvent extends EventPlace {
  readonly accountId: number
  readonly blockNumber: number
  readonly what: 'payment' | 'refund'
  /** Of its request: that of payments, then that of refunds. */
  readonly topics: readonly Hex[]
}

/** Blocks of a chain, both ends included. */
export interface ChainRange {
  /** CAIP-2. */
  readonly chainId: string
  readonly from: number
  readonly to: number
}

interface StoredRow {
  readonly account_id: number
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly block_number: bigint
  readonly what: StoredEvent['what']
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

/** The detected payments and refunds in some blocks, lowest block first. Imported payments are left out. */
export async function findStoredEvents(knex: Knex, { chainId, from, to }: ChainRange): Promise<StoredEvent[]> {
  const { rows } = await knex.raw<{ rows: StoredRow[] }>(
    `select p.account_id, p.tx_hash, p.event_index, p.block_number, 'payment' as what, r.topic, r.refund_topic
     from payments p join requests r on r.account_id = p.account_id and r.request_id = p.request_id
     where p.chain_id = ? and p.detected and not p.imported and p.block_number between ? and ?
     union all
     select f.account_id, f.tx_hash, f.event_index, f.block_number, 'refund' as what, r.topic, r.refund_topic
     from refunds f join requests r on r.account_id = f.account_id and r.request_id = f.request_id
     where f.chain_id = ? and f.block_number between ? and ?
     order by block_number`,
    [chainId, from, to, chainId, from, to],
  )
  return rows.map((row) => ({
    accountId: row.account_id,
    txHash: bytesToHex(row.tx_hash),
    eventIndex: row.event_index,
    blockNumber: Number(row.block_number),
    what: row.what,
    topics: [row.topic, ...(row.refund_topic === null ? [] : [row.refund_topic])].map(bytesToHex),
  }))
}

/** An unmatched event that is stored but is not in its blocks. */
export interface GoneUnmatched extends EventPlace {
  /** 0: of no account. */
  readonly accountId: number
  readonly reason: string
}

/**
 * Deletes the unmatched events and the SingleRequestProxies of some blocks, other than those that were found there.
 *
 * @param kept - transactions whose events stay as they are
 * @returns the unmatched events that were deleted
 */
export async function deleteOthersInRange(
  trx: Knex,
  { chainId, from, to }: ChainRange,
  found: Pick<Findings, 'unmatched' | 'proxies'>,
  kept: Iterable<Hex>,
): Promise<GoneUnmatched[]> {
  const { rows } = await trx.raw<{
    rows: { tx_hash: Buffer; event_index: number; account_id: number; reason: string }[]
  }>(
    `delete from unmatched_events u where u.chain_id = ? and u.block_number between ? and ? and not (u.tx_hash = any(?))
       and not exists (select from unnest(?::bytea[], ?::integer[], ?::integer[]) as e (tx_hash, event_index, account_id)
         where e.tx_hash = u.tx_hash and e.event_index = u.event_index and e.account_id = u.account_id)
     returning tx_hash, event_index, account_id, reason`,
    [
      chainId,
      from,
      to,
      [...kept].map(hexToBytes),
      found.unmatched.map(({ txHash }) => hexToBytes(txHash)),
      found.unmatched.map(({ eventIndex }) => eventIndex),
      found.unmatched.map(({ accountId }) => accountId),
    ],
  )
  await trx.raw(
    `delete from single_request_proxies where chain_id = ? and block_number between ? and ? and not (address = any(?))`,
    [chainId, from, to, found.proxies.map(({ address }) => addressToBytes(address))],
  )
  return rows.map(({ tx_hash, event_index, account_id, reason }) => ({
    txHash: bytesToHex(tx_hash),
    eventIndex: event_index,
    accountId: account_id,
    reason,
  }))
}

/** Which unmatched events of some blocks are stored, by {@link unmatchedKeyOf}. */
export async function findUnmatchedKeys(trx: Knex, { chainId, from, to }: ChainRange): Promise<Set<string>> {
  const rows = await trx('unmatched_events')
    .where({ chain_id: chainId })
    .whereBetween('block_number', [from, to])
    .select<{ tx_hash: Buffer; event_index: number; account_id: number; reason: string }[]>(
      'tx_hash',
      'event_index',
      'account_id',
      'reason',
    )
  return new Set(
    rows.map(({ tx_hash, event_index, account_id, reason }) =>
      unmatchedKeyOf({ txHash: bytesToHex(tx_hash), eventIndex: event_index, accountId: account_id, reason }),
    ),
  )
}

/** An unmatched event with its reason as the key of a set. */
export function unmatchedKeyOf(event: GoneUnmatched): string {
  return `${eventKeyOf(event)} ${event.accountId} ${event.reason}`
}
