import type { Knex } from 'knex'
import { chunksOf } from '../../domain/collections.ts'
import { readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { type EventPlace, eventKeyOf } from '../match/detected.ts'
import type { MatchableRequest } from '../match/match-event.ts'
import { type AccountEvent, columnsOf } from './account-events-repository.ts'
import type { KnownTopic } from './pending-replays-repository.ts'
import { queryRows } from './read-rows.ts'

const TOPICS_A_STATEMENT = 2_000

/** Topics in a statement on the directory. Of more at once, the planner would rather read all of it than look them up, in each statement anew. */
const TOPICS_A_LOOKUP = 200

/** @returns the accounts that know each topic, ascending; topics that no account knows are absent */
export async function findAccountsOfTopics(knex: Knex, topics: readonly Hex[]): Promise<Map<Hex, number[]>> {
  const accounts = new Map<Hex, number[]>()
  for (const chunk of chunksOf(topics, TOPICS_A_LOOKUP)) {
    const rows = await queryRows<KnownTopic>(
      knex,
      'select topic, account_id from reference_topics where topic = any(?) order by account_id',
      [chunk.map(hexToBytes)],
    )
    for (const { topic, accountId } of rows) accounts.set(topic, [...(accounts.get(topic) ?? []), accountId])
  }
  return accounts
}

/** @returns names by id */
export async function findAccountNames(knex: Knex, ids: readonly number[]): Promise<Map<number, string>> {
  const rows = await knex('accounts')
    .select<{ id: number; name: string }[]>('id', 'name')
    .whereIn('id', [...ids])
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Topics of stored events that no account knew, or whose transaction was too large to read, and that an account knows by now. */
export async function findClaimedTopics(knex: Knex, chainId: string): Promise<Hex[]> {
  const topics = await knex('unmatched_events')
    .distinct()
    .where({ chain_id: chainId })
    .whereIn('reason', ['UNKNOWN_TOPIC', 'RECEIPT_TOO_LARGE'])
    .pluck<Buffer[]>('topic')
  const accounts = await findAccountsOfTopics(knex, topics.map(bytesToHex))
  return [...accounts.keys()]
}

interface RequestFields extends Omit<MatchableRequest, 'amount'> {
  readonly amount: string
}

/**
 * @param topics - each once; each is looked up, as in `loadRequests`
 * @returns the account's requests whose payment topic or refund topic is one of these
 */
export async function findRequestsOfTopics(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<MatchableRequest[]> {
  const requests: MatchableRequest[] = []
  for (const chunk of chunksOf(topics, TOPICS_A_STATEMENT)) {
    const bytes = chunk.map(hexToBytes)
    const rows = await queryRows<RequestFields>(
      knex,
      `select r.* from unnest(?::bytea[]) as asked (topic) cross join lateral
         (select * from requests where account_id = ? and topic = asked.topic offset 0) r
       union all
       select r.* from unnest(?::bytea[]) as asked (topic) cross join lateral
         (select * from requests where account_id = ? and refund_topic = asked.topic offset 0) r
       where not (r.topic = any(?))`,
      [bytes, accountId, bytes, accountId, bytes],
    )
    for (const row of rows) {
      requests.push({ ...row, salt: row.salt.replace('0x', ''), amount: readStoredDecimal(row.amount) })
    }
  }
  return requests
}

/** Clocks differ, and some merchants store a request after they showed its reference. */
const BEFORE_REQUEST_MS = 86_400_000

/** The time from which payments of a request are looked for. */
export function sinceRequest(createdAt: Date): Date {
  return new Date(createdAt.getTime() - BEFORE_REQUEST_MS)
}

/** When the oldest request on a chain was created; undefined where there is none. Reads all requests: once for a chain and process. */
export async function oldestRequestOn(knex: Knex, network: string): Promise<Date | undefined> {
  const row = await knex('requests').where({ network }).min<{ oldest: Date | null }>({ oldest: 'created_at' }).first()
  return row?.oldest ?? undefined
}

/** When the oldest of an account's requests with these topics was created, by canonical name of the chain. */
export async function oldestRequestsOf(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<Map<string, Date>> {
  const rows = await queryRows<{ readonly network: string; readonly oldest: Date }>(
    knex,
    'select network, min(created_at) as oldest from requests where account_id = ? and topic = any(?) group by network',
    [accountId, topics.map(hexToBytes)],
  )
  return new Map(rows.map(({ network, oldest }) => [network, oldest]))
}

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
  const requests = await queryRows<RequestTopics>(
    knex,
    'select request_id, topic, refund_topic from requests where account_id = ? and request_id = any(?) order by request_id',
    [accountId, requestIds.map(hexToBytes)],
  )
  return withEvents(knex, accountId, requests)
}

/** Reads an account's requests that have one of these topics, with their events on all chains. */
export async function readEventsOfTopics(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<RequestEvents[]> {
  return withEvents(knex, accountId, await findRequestsOfTopics(knex, accountId, topics))
}

/** The same requests with their events on one chain alone. */
export function onChain(requests: readonly RequestEvents[], chainId: string): RequestEvents[] {
  return requests.map((request) => ({
    ...request,
    events: request.events.filter((event) => event.chainId === chainId),
  }))
}

type RequestTopics = Pick<MatchableRequest, 'requestId' | 'topic' | 'refundTopic'>

function topicsIn({ topic, refundTopic }: Pick<RequestTopics, 'topic' | 'refundTopic'>): Hex[] {
  return refundTopic === undefined ? [topic] : [topic, refundTopic]
}

async function withEvents(knex: Knex, accountId: number, requests: readonly RequestTopics[]): Promise<RequestEvents[]> {
  const found = await findEvents(knex, accountId, [...new Set(requests.flatMap(topicsIn))])
  const byTopic = Map.groupBy(
    found.flatMap((event) => topicsIn(event).map((topic) => ({ topic, event }))),
    ({ topic }) => topic,
  )
  return requests.map((request) => {
    const topics = topicsIn(request)
    const events = topics.flatMap((topic) => byTopic.get(topic) ?? []).map(({ event }) => event)
    const distinct = new Map(events.map((event) => [`${event.chainId} ${eventKeyOf(event)} ${event.isOwn}`, event]))
    const sorted = [...distinct.values()].toSorted((a, b) => a.blockNumber - b.blockNumber)
    return { requestId: request.requestId, topics, events: sorted }
  })
}

/** An event and the topics of its request, or its own topic where it is unmatched. */
type FoundEvent = StoredEvent & Pick<RequestTopics, 'topic' | 'refundTopic'>

/** What is stored under topics: unmatched events, and the payments and refunds of all accounts that know them. */
async function findEvents(knex: Knex, asking: number, topics: readonly Hex[]): Promise<FoundEvent[]> {
  if (topics.length === 0) return []
  const found = await queryRows<FoundEvent>(
    knex,
    `select chain_id, tx_hash, event_index, block_number, account_id = ? as is_own, topic
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
function findCounted(
  knex: Knex,
  which: { readonly account: number; readonly asking: number; readonly topics: Buffer[] },
): Promise<FoundEvent[]> {
  return queryRows(
    knex,
    `select p.chain_id, p.tx_hash, coalesce(p.event_index, 0) as event_index, p.block_number,
       p.detected and p.account_id = :asking as is_own, r.topic, r.refund_topic
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
}

/** Final blocks of a chain, both ends included, and their times. */
interface BlockSpan {
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
export function findStoredBetween(
  knex: Knex,
  accountIds: readonly number[],
  { chainId, from, to, fromTime, toTime }: BlockSpan,
): Promise<TouchedRequest[]> {
  return queryRows(
    knex,
    `select distinct account_id, request_id from payments
     where account_id = any(:accounts) and timestamp between :fromTime and :toTime and chain_id = :chainId
       and block_number between :from and :to and detected and request_id is not null
     union select distinct account_id, request_id from refunds
     where account_id = any(:accounts) and chain_id = :chainId and block_number between :from and :to`,
    { accounts: [...accountIds], chainId, from, to, fromTime, toTime },
  )
}

/** Whether an event is stored as a detected payment or as a refund. */
export async function isCounted(knex: Knex, of: AccountEvent): Promise<boolean> {
  const payment = await knex('payments')
    .where({ ...columnsOf(of), detected: true })
    .first('id')
  const refund = await knex('refunds').where(columnsOf(of)).first('event_index')
  return payment !== undefined || refund !== undefined
}
