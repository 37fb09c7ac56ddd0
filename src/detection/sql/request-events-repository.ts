import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { type EventPlace, eventKeyOf } from '../match/detected.ts'
import { type AccountEvent, columnsOf } from './account-event.ts'
import { findAccountsOfTopics, findRequestsOfTopics } from './topics-repository.ts'

/** An event that is stored under a topic of a request. */
export interface StoredEvent extends EventPlace {
  /** CAIP-2. */
  readonly chainId: string
  readonly blockNumber: number
  /**
   * Whether it is stored as an event of the account. Others are of other accounts or of none, or were only imported: they may be the account's too, and
   * their index is not certain.
   */
  readonly isOwn: boolean
}

/** A request, and the events that are stored under its topics. */
export interface RequestEvents {
  /** `01` and 64 digits. */
  readonly requestId: string
  readonly topics: readonly Hex[]
  /** Lowest block first. */
  readonly events: readonly StoredEvent[]
}

/** Reads requests by their ids, with their events on all chains; requests that are not stored are left out. */
export async function readRequestEvents(
  knex: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<RequestEvents[]> {
  const { rows } = await knex.raw<{ rows: { request_id: Buffer; topic: Buffer; refund_topic: Buffer | null }[] }>(
    'select request_id, topic, refund_topic from requests where account_id = ? and request_id = any(?) order by request_id',
    [accountId, requestIds.map((id) => Buffer.from(id, 'hex'))],
  )
  const requests = rows.map(({ request_id, topic, refund_topic }) => ({
    requestId: request_id.toString('hex'),
    topics: [topic, refund_topic].flatMap((each) => (each === null ? [] : [bytesToHex(each)])),
  }))
  return withEvents(knex, accountId, requests)
}

/** Reads an account's requests that have one of these topics, with their events on all chains. */
export async function readEventsOfTopics(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<RequestEvents[]> {
  const requests = await findRequestsOfTopics(knex, accountId, topics)
  return withEvents(
    knex,
    accountId,
    requests.map(({ requestId, topic, refundTopic }) => ({
      requestId,
      topics: refundTopic === undefined ? [topic] : [topic, refundTopic],
    })),
  )
}

/** The same requests with their events on one chain alone. */
export function onChain(requests: readonly RequestEvents[], chainId: string): RequestEvents[] {
  return requests.map((request) => ({
    ...request,
    events: request.events.filter((event) => event.chainId === chainId),
  }))
}

async function withEvents(
  knex: Knex,
  accountId: number,
  requests: readonly Omit<RequestEvents, 'events'>[],
): Promise<RequestEvents[]> {
  const rows = await findEvents(knex, accountId, [...new Set(requests.flatMap(({ topics }) => topics))])
  const byTopic = Map.groupBy(
    rows.flatMap((row) =>
      [row.topic, row.refund_topic].flatMap((each) => (each === null ? [] : [{ topic: bytesToHex(each), row }])),
    ),
    ({ topic }) => topic,
  )
  return requests.map((request) => {
    const events = request.topics.flatMap((topic) => byTopic.get(topic) ?? []).map(({ row }) => toStoredEvent(row))
    const distinct = new Map(events.map((event) => [`${event.chainId} ${eventKeyOf(event)} ${event.isOwn}`, event]))
    return { ...request, events: [...distinct.values()].toSorted((a, b) => a.blockNumber - b.blockNumber) }
  })
}

interface EventRow {
  readonly chain_id: string
  readonly tx_hash: Buffer
  readonly event_index: number | null
  readonly block_number: bigint
  readonly is_own: boolean
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

function toStoredEvent({ chain_id, tx_hash, event_index, block_number, is_own }: EventRow): StoredEvent {
  return {
    chainId: chain_id,
    txHash: bytesToHex(tx_hash),
    eventIndex: event_index ?? 0,
    blockNumber: Number(block_number),
    isOwn: is_own,
  }
}

/** What is stored under topics: unmatched events, and the payments and refunds of all accounts that know them. */
async function findEvents(knex: Knex, asking: number, topics: readonly Hex[]): Promise<EventRow[]> {
  if (topics.length === 0) return []
  const { rows: found } = await knex.raw<{ rows: EventRow[] }>(
    `select chain_id, tx_hash, event_index, block_number, account_id = ? as is_own, topic, null::bytea as refund_topic
     from unmatched_events where topic = any(?)`,
    [asking, topics.map(hexToBytes)],
  )
  const directory = await findAccountsOfTopics(knex, topics)
  for (const account of new Set([asking, ...[...directory.values()].flat()])) {
    const own = account === asking ? topics : topics.filter((topic) => directory.get(topic)?.includes(account))
    found.push(...(await findCounted(knex, { account, asking, topics: own.map(hexToBytes) })))
  }
  return found
}

/** The payments and refunds of an account under topics. */
async function findCounted(
  knex: Knex,
  which: { readonly account: number; readonly asking: number; readonly topics: Buffer[] },
): Promise<EventRow[]> {
  const { rows } = await knex.raw<{ rows: EventRow[] }>(
    `select p.chain_id, p.tx_hash, p.event_index, p.block_number, p.detected and p.account_id = :asking as is_own, r.topic, r.refund_topic
     from requests r join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.account_id = :account and p.account_id = :account
       and (r.topic = any(:topics) or r.refund_topic = any(:topics))
       and p.chain_id is not null and p.tx_hash is not null and p.block_number is not null
     union
     select f.chain_id, f.tx_hash, f.event_index, f.block_number, f.account_id = :asking, r.topic, r.refund_topic
     from requests r join refunds f on f.account_id = r.account_id and f.request_id = r.request_id
     where r.account_id = :account and f.account_id = :account
       and (r.topic = any(:topics) or r.refund_topic = any(:topics))`,
    { ...which },
  )
  return rows
}

/** Final blocks of a chain, both ends included, and their times. */
export interface BlockSpan {
  /** CAIP-2. */
  readonly chainId: string
  readonly from: number
  readonly to: number
  readonly fromTime: Date
  readonly toTime: Date
}

/** A request of an account that something stored belongs to. */
interface TouchedRequest {
  readonly accountId: number
  /** `01` and 64 digits. */
  readonly requestId: string
}

/** The requests of accounts of which payments, refunds or unmatched events are stored in some blocks. By time too, since payments are indexed by it. */
export async function findStoredBetween(
  knex: Knex,
  accountIds: readonly number[],
  { chainId, from, to, fromTime, toTime }: BlockSpan,
): Promise<TouchedRequest[]> {
  const { rows } = await knex.raw<{ rows: { account_id: number; request_id: Buffer }[] }>(
    `select distinct account_id, request_id from payments
     where account_id = any(:accounts) and timestamp between :fromTime and :toTime and chain_id = :chainId
       and block_number between :from and :to and detected and request_id is not null
     union select distinct account_id, request_id from refunds
     where account_id = any(:accounts) and chain_id = :chainId and block_number between :from and :to`,
    { accounts: [...accountIds], chainId, from, to, fromTime, toTime },
  )
  return rows.map(({ account_id, request_id }) => ({ accountId: account_id, requestId: request_id.toString('hex') }))
}

/** Whether an event is stored as a detected payment or as a refund. */
export async function isCounted(knex: Knex, of: AccountEvent): Promise<boolean> {
  const payment = await knex('payments')
    .where({ ...columnsOf(of), detected: true })
    .first('id')
  const refund = await knex('refunds').where(columnsOf(of)).first('event_index')
  return payment !== undefined || refund !== undefined
}
