import type { Knex } from 'knex'
import { addressFromBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import { type AccountEvent, columnsOf } from './account-event.ts'
import { findRequestProxies } from './request-proxies-repository.ts'

/** Reasons that depend on who paid, and so on the rules in force; the others depend on the event alone. */
const PAYER_REASONS: readonly UnmatchedReason[] = ['WRONG_PAYEE', 'NOTHING_RECEIVED', 'SELF_PAYMENT', 'NOT_FROM_PAYEE']

/** A request whose payments, refunds and unmatched events are to be read again. */
export interface RecheckedRequest {
  /** `01` and 64 digits. */
  readonly requestId: string
  readonly topics: readonly Hex[]
  /** Lowest block first. */
  readonly txHashes: readonly Hex[]
}

/** Selects what to read again. */
interface RecheckScope {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
  /** Only payments and refunds in blocks before this time; unmatched events of any time. */
  readonly before: Date
}

/** When this database was made. What it has was judged by the present rules. */
export async function findRulesStart(knex: Knex): Promise<Date> {
  const row = await knex('schema_steps').min<{ at: Date } | undefined>('applied_at as at').first()
  if (row === undefined) throw new Error('the database has no schema')
  return row.at
}

interface RequestRow {
  readonly request_id: Buffer
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

interface TransactionRow {
  readonly tx_hash: Buffer
  readonly block_number: bigint
}

/**
 * Reads the next requests after an id, in the order of their ids. Most have no transactions to read again.
 *
 * @param after - '' for the first
 */
export async function nextRechecked(
  knex: Knex,
  scope: RecheckScope & {
    /** Canonical name of the chain. */
    readonly network: string
  },
  after: string,
  limit: number,
): Promise<RecheckedRequest[]> {
  const { accountId, network } = scope
  const { rows } = await knex.raw<{ rows: RequestRow[] }>(
    `select request_id, topic, refund_topic from requests
     where account_id = ? and network = ? and request_id > ? order by request_id limit ?`,
    [accountId, network, Buffer.from(after, 'hex'), limit],
  )
  return findEvents(knex, scope, rows)
}

const CROSSCHAIN = codeOfType('CROSSCHAIN')
/** Nothing is as late as this. */
const AT_ANY_TIME = new Date(8_640_000_000_000)

/**
 * Finds an account's requests with these topics whose payers may be others than when their events were matched: those that a
 * SingleRequestProxy paid, and those to which a bridge delivered, also from the payee. By CAIP-2 of the chain of the payments.
 */
export async function findPaidThroughOthers(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<Map<string, RecheckedRequest[]>> {
  const { rows } = await knex.raw<{ rows: (RequestRow & { chain_id: string; payer: Buffer | null; type: number })[] }>(
    `select r.request_id, r.topic, r.refund_topic, p.chain_id, p.payer, p.type from requests r
     join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.account_id = ? and p.account_id = ? and r.topic = any(?) and p.detected
       and (p.payer is not null or p.type = ?)`,
    [accountId, accountId, topics.map(hexToBytes), CROSSCHAIN],
  )
  const found = new Map<string, RecheckedRequest[]>()
  const toSelf = await findPaidToSelf(knex, accountId, topics)
  for (const [chainId, ofChain] of Map.groupBy([...rows, ...toSelf], ({ chain_id }) => chain_id)) {
    const payers = ofChain.flatMap(({ payer }) => (payer === null ? [] : [addressFromBytes(payer)]))
    const proxies = await findRequestProxies(knex, chainId, payers)
    const paid = ofChain.filter(
      ({ payer, type }) => type === CROSSCHAIN || (payer !== null && proxies.has(addressFromBytes(payer))),
    )
    const distinct = new Map(paid.map((row) => [row.request_id.toString('hex'), row]))
    const scope = { accountId, chainId, before: AT_ANY_TIME }
    if (distinct.size > 0) found.set(chainId, await findEvents(knex, scope, [...distinct.values()]))
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

/** Reads requests by their ids; those that are not stored are left out. */
export async function readRechecked(
  knex: Knex,
  scope: RecheckScope & {
    /** Canonical name of the chain. */
    readonly network: string
  },
  requestIds: readonly string[],
): Promise<RecheckedRequest[]> {
  const { accountId, network } = scope
  const { rows } = await knex.raw<{ rows: RequestRow[] }>(
    `select request_id, topic, refund_topic from requests
     where account_id = ? and network = ? and request_id = any(?) order by request_id`,
    [accountId, network, requestIds.map((id) => Buffer.from(id, 'hex'))],
  )
  return findEvents(knex, scope, rows)
}

/** Finds the transactions of requests that are to be read again. */
async function findEvents(
  knex: Knex,
  scope: RecheckScope,
  requests: readonly RequestRow[],
): Promise<RecheckedRequest[]> {
  const matched = Map.groupBy(await findMatched(knex, scope, requests), ({ request_id }) => request_id.toString('hex'))
  const unmatched = Map.groupBy(await findDoubted(knex, scope, requests), ({ topic }) => topic.toString('hex'))
  return requests.map((request) => {
    const requestId = request.request_id.toString('hex')
    const topics = topicsOf(request)
    const rows = [
      ...(matched.get(requestId) ?? []),
      ...topics.flatMap((topic) => unmatched.get(topic.toString('hex')) ?? []),
    ]
    return { requestId, topics: topics.map(bytesToHex), txHashes: inBlockOrder(rows) }
  })
}

function topicsOf({ topic, refund_topic }: RequestRow): Buffer[] {
  return refund_topic === null ? [topic] : [topic, refund_topic]
}

/** Transactions of the requests' detected payments and refunds. */
async function findMatched(knex: Knex, { accountId, chainId, before }: RecheckScope, requests: readonly RequestRow[]) {
  const ids = requests.map(({ request_id }) => request_id)
  const { rows } = await knex.raw<{ rows: (TransactionRow & { request_id: Buffer })[] }>(
    `select request_id, tx_hash, block_number from payments
     where account_id = ? and request_id = any(?) and chain_id = ? and detected and timestamp < ?
     union select request_id, tx_hash, block_number from refunds
     where account_id = ? and request_id = any(?) and chain_id = ? and timestamp < ?`,
    [accountId, ids, chainId, before, accountId, ids, chainId, before],
  )
  return rows
}

/** Transactions of the requests' events that are unmatched because of who paid. */
async function findDoubted(knex: Knex, { accountId, chainId }: RecheckScope, requests: readonly RequestRow[]) {
  const { rows } = await knex.raw<{ rows: (TransactionRow & { topic: Buffer })[] }>(
    `select topic, tx_hash, block_number from unmatched_events
     where topic = any(?) and account_id = ? and chain_id = ? and reason = any(?)`,
    [requests.flatMap(topicsOf), accountId, chainId, [...PAYER_REASONS]],
  )
  return rows
}

function inBlockOrder(rows: readonly TransactionRow[]): Hex[] {
  const sorted = rows.toSorted((a, b) => Number(a.block_number - b.block_number))
  return [...new Set(sorted.map(({ tx_hash }) => bytesToHex(tx_hash)))]
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
