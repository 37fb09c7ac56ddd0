import type { Knex } from 'knex'
import { addressFromBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import type { EventPlace } from '../match/detected.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import { type AccountEvent, columnsOf } from './account-event.ts'
import { findRequestProxies } from './request-proxies-repository.ts'

/** An event of a request that is stored on a chain. */
export interface StoredEvent extends EventPlace {
  readonly blockNumber: number
}

/** A request, and what is stored of its payments, refunds and unmatched events on one chain. */
export interface RequestEvents {
  /** `01` and 64 digits. */
  readonly requestId: string
  readonly topics: readonly Hex[]
  /** Lowest block first. */
  readonly events: readonly StoredEvent[]
}

/** An account on a chain. */
interface AccountOnChain {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
}

interface RequestRow {
  readonly request_id: Buffer
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

interface EventRow {
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly block_number: bigint
}

const CROSSCHAIN = codeOfType('CROSSCHAIN')

/**
 * Finds an account's requests with these topics whose payers may be others than when their events were matched: those that a
 * SingleRequestProxy paid, and those to which a bridge delivered, also from the payee. By CAIP-2 of the chain of the payments.
 */
export async function findPaidThroughOthers(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<Map<string, RequestEvents[]>> {
  const { rows } = await knex.raw<{ rows: (RequestRow & { chain_id: string; payer: Buffer | null; type: number })[] }>(
    `select r.request_id, r.topic, r.refund_topic, p.chain_id, p.payer, p.type from requests r
     join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.account_id = ? and p.account_id = ? and r.topic = any(?) and p.detected
       and (p.payer is not null or p.type = ?)`,
    [accountId, accountId, topics.map(hexToBytes), CROSSCHAIN],
  )
  const found = new Map<string, RequestEvents[]>()
  const toSelf = await findPaidToSelf(knex, accountId, topics)
  for (const [chainId, ofChain] of Map.groupBy([...rows, ...toSelf], ({ chain_id }) => chain_id)) {
    const payers = ofChain.flatMap(({ payer }) => (payer === null ? [] : [addressFromBytes(payer)]))
    const proxies = await findRequestProxies(knex, chainId, payers)
    const paid = ofChain.filter(
      ({ payer, type }) => type === CROSSCHAIN || (payer !== null && proxies.has(addressFromBytes(payer))),
    )
    const distinct = new Map(paid.map((row) => [row.request_id.toString('hex'), row]))
    if (distinct.size > 0) found.set(chainId, await withEvents(knex, { accountId, chainId }, [...distinct.values()]))
  }
  return found
}

/** Requests with an event that is unmatched because the payee paid it. Such a payment may have come over a bridge. */
async function findPaidToSelf(knex: Knex, accountId: number, topics: readonly Hex[]) {
  const { rows: events } = await knex.raw<{ rows: { chain_id: string; topic: Buffer }[] }>(
    `select distinct chain_id, topic from unmatched_events where topic = any(?) and account_id = ? and reason = 'SELF_PAYMENT'`,
    [topics.map(hexToBytes), accountId],
  )
  if (events.length === 0) return []
  const { rows: requests } = await knex.raw<{ rows: RequestRow[] }>(
    'select request_id, topic, refund_topic from requests where account_id = ? and topic = any(?)',
    [accountId, events.map(({ topic }) => topic)],
  )
  return events.flatMap(({ chain_id, topic }) =>
    requests
      .filter((request) => request.topic.equals(topic))
      .map((request) => ({ ...request, chain_id, payer: null, type: CROSSCHAIN })),
  )
}

/** Reads requests by their ids, and what is stored of them on a chain; requests that are not stored are left out. */
export async function readRequestEvents(
  knex: Knex,
  of: AccountOnChain,
  requestIds: readonly string[],
): Promise<RequestEvents[]> {
  const { rows } = await knex.raw<{ rows: RequestRow[] }>(
    'select request_id, topic, refund_topic from requests where account_id = ? and request_id = any(?) order by request_id',
    [of.accountId, requestIds.map((id) => Buffer.from(id, 'hex'))],
  )
  return withEvents(knex, of, rows)
}

async function withEvents(knex: Knex, of: AccountOnChain, requests: readonly RequestRow[]): Promise<RequestEvents[]> {
  const counted = Map.groupBy(await findCounted(knex, of, requests), ({ request_id }) => request_id.toString('hex'))
  const unmatched = Map.groupBy(await findUnmatchedOf(knex, of, requests), ({ topic }) => topic.toString('hex'))
  return requests.map((request) => {
    const requestId = request.request_id.toString('hex')
    const topics = topicsOf(request)
    const rows = [
      ...(counted.get(requestId) ?? []),
      ...topics.flatMap((topic) => unmatched.get(topic.toString('hex')) ?? []),
    ]
    const sorted = rows.toSorted((a, b) => Number(a.block_number - b.block_number))
    return { requestId, topics: topics.map(bytesToHex), events: sorted.map(toStoredEvent) }
  })
}

function topicsOf({ topic, refund_topic }: RequestRow): Buffer[] {
  return refund_topic === null ? [topic] : [topic, refund_topic]
}

function toStoredEvent({ tx_hash, event_index, block_number }: EventRow): StoredEvent {
  return { txHash: bytesToHex(tx_hash), eventIndex: event_index, blockNumber: Number(block_number) }
}

/** The requests' detected payments, and their refunds. */
async function findCounted(knex: Knex, { accountId, chainId }: AccountOnChain, requests: readonly RequestRow[]) {
  const ids = requests.map(({ request_id }) => request_id)
  const { rows } = await knex.raw<{ rows: (EventRow & { request_id: Buffer })[] }>(
    `select request_id, tx_hash, event_index, block_number from payments
     where account_id = :accountId and request_id = any(:ids) and chain_id = :chainId and detected
     union select request_id, tx_hash, event_index, block_number from refunds
     where account_id = :accountId and request_id = any(:ids) and chain_id = :chainId`,
    { accountId, chainId, ids },
  )
  return rows
}

async function findUnmatchedOf(knex: Knex, { accountId, chainId }: AccountOnChain, requests: readonly RequestRow[]) {
  const { rows } = await knex.raw<{ rows: (EventRow & { topic: Buffer })[] }>(
    `select topic, tx_hash, event_index, block_number from unmatched_events
     where topic = any(?) and account_id = ? and chain_id = ?`,
    [requests.flatMap(topicsOf), accountId, chainId],
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

/** An unmatched event as it is stored. */
export interface StoredUnmatched {
  readonly reason: UnmatchedReason
  readonly topic: Hex
  readonly event: Readonly<Record<string, string>>
}

/** @returns undefined where the account has no such unmatched event */
export async function findUnmatched(knex: Knex, of: AccountEvent): Promise<StoredUnmatched | undefined> {
  const row = await knex('unmatched_events')
    .where(columnsOf(of))
    .first<{ reason: UnmatchedReason; topic: Buffer; event: Readonly<Record<string, string>> } | undefined>()
  return row && { reason: row.reason, topic: bytesToHex(row.topic), event: row.event }
}

/** Whether an event is stored as a detected payment or as a refund. */
export async function isCounted(knex: Knex, of: AccountEvent): Promise<boolean> {
  const payment = await knex('payments')
    .where({ ...columnsOf(of), detected: true })
    .first('id')
  const refund = await knex('refunds').where(columnsOf(of)).first('event_index')
  return payment !== undefined || refund !== undefined
}
