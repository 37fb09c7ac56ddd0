import type { Knex } from 'knex'
import { addressFromBytes } from '../../domain/address.ts'
import { chunksOf } from '../../domain/collections.ts'
import { readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { MatchableRequest } from '../match/match-event.ts'

const TOPICS_A_STATEMENT = 2_000

/** Topics in a statement on the directory. Of more at once, the planner would rather read all of it than look them up, in each statement anew. */
const TOPICS_A_LOOKUP = 200

/** @returns the accounts that know each topic, ascending; topics that no account knows are absent */
export async function findAccountsOfTopics(knex: Knex, topics: readonly Hex[]): Promise<Map<Hex, number[]>> {
  const accounts = new Map<Hex, number[]>()
  for (const chunk of chunksOf(topics, TOPICS_A_LOOKUP)) {
    const { rows } = await knex.raw<{ rows: { topic: Buffer; account_id: number }[] }>(
      'select topic, account_id from reference_topics where topic = any(?) order by account_id',
      [chunk.map(hexToBytes)],
    )
    for (const { topic, account_id } of rows) {
      const key = bytesToHex(topic)
      accounts.set(key, [...(accounts.get(key) ?? []), account_id])
    }
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
  const rows = await knex('unmatched_events')
    .distinct<{ topic: Buffer }[]>('topic')
    .where({ chain_id: chainId })
    .whereIn('reason', ['UNKNOWN_TOPIC', 'RECEIPT_TOO_LARGE'])
  const accounts = await findAccountsOfTopics(
    knex,
    rows.map(({ topic }) => bytesToHex(topic)),
  )
  return [...accounts.keys()]
}

interface RequestRow {
  readonly request_id: Buffer
  readonly salt: Buffer
  readonly payment_reference: Buffer
  readonly topic: Buffer
  readonly payee: Buffer
  readonly amount: string
  readonly invoice_currency: string
  readonly payment_currency: string
  readonly network: string
  readonly reference: string | null
  readonly refund_address: Buffer | null
  readonly refund_topic: Buffer | null
  readonly created_at: Date
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
    const { rows } = await knex.raw<{ rows: RequestRow[] }>(
      `select r.* from unnest(?::bytea[]) as asked (topic) cross join lateral
         (select * from requests where account_id = ? and topic = asked.topic offset 0) r
       union all
       select r.* from unnest(?::bytea[]) as asked (topic) cross join lateral
         (select * from requests where account_id = ? and refund_topic = asked.topic offset 0) r
       where not (r.topic = any(?))`,
      [bytes, accountId, bytes, accountId, bytes],
    )
    requests.push(...rows.map(toMatchable))
  }
  return requests
}

function toMatchable(row: RequestRow): MatchableRequest {
  return {
    requestId: row.request_id.toString('hex'),
    salt: row.salt.toString('hex'),
    paymentReference: bytesToHex(row.payment_reference),
    topic: bytesToHex(row.topic),
    payee: addressFromBytes(row.payee),
    amount: readStoredDecimal(row.amount),
    invoiceCurrency: row.invoice_currency,
    paymentCurrency: row.payment_currency,
    network: row.network,
    createdAt: row.created_at,
    reference: row.reference ?? undefined,
    refundAddress: row.refund_address === null ? undefined : addressFromBytes(row.refund_address),
    refundTopic: row.refund_topic === null ? undefined : bytesToHex(row.refund_topic),
  }
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
  const { rows } = await knex.raw<{ rows: { network: string; oldest: Date }[] }>(
    'select network, min(created_at) as oldest from requests where account_id = ? and topic = any(?) group by network',
    [accountId, topics.map(hexToBytes)],
  )
  return new Map(rows.map(({ network, oldest }) => [network, oldest]))
}
