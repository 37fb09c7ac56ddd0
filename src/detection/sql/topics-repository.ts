import type { Knex } from 'knex'
import { addressFromBytes } from '../../domain/address.ts'
import { readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { chunksOf } from '../chunks.ts'
import type { MatchableRequest } from '../match/match-event.ts'

const TOPICS_A_STATEMENT = 2_000

/** Topics in a statement on the directory. Of more at once, the planner would rather read all of it than look them up, in each statement anew. */
const TOPICS_A_LOOKUP = 200

/** A transaction that has an event with some topic. */
export interface SeenTransaction {
  /** CAIP-2. */
  readonly chainId: string
  readonly txHash: Hex
  readonly blockNumber: number
}

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

interface TransactionRow {
  readonly chain_id: string
  readonly tx_hash: Buffer
  readonly block_number: bigint
}

/**
 * Finds transactions that have events with one of the topics and may bring something new to an account:
 *
 * - events that are unmatched for no account or for other accounts
 * - payments and refunds of other accounts that know the topic
 * - the account's own payments that were imported and not yet detected
 * - the account's own refunds to payers who became known later (see {@link findReturnsToPayers})
 *
 * Everything else that the account has was read for it already.
 *
 * @returns lowest block first
 */
export async function findTransactionsOfTopics(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<SeenTransaction[]> {
  const directory = await findAccountsOfTopics(knex, topics)
  const bytes = topics.map(hexToBytes)
  const { rows: unmatched } = await knex.raw<{ rows: TransactionRow[] }>(
    'select chain_id, tx_hash, block_number from unmatched_events where topic = any(?) and account_id <> ?',
    [bytes, accountId],
  )
  const found = [...unmatched, ...(await findReturnsToPayers(knex, accountId, bytes))]
  for (const account of new Set([...directory.values()].flat())) {
    const own = topics.filter((topic) => directory.get(topic)?.includes(account)).map(hexToBytes)
    found.push(...(await findMatchedTransactions(knex, { account, asking: accountId, topics: own })))
  }
  return distinctTransactions(found)
}

/**
 * Finds what went to an address under a request's own topic before that address was known as a payer of the request: a bridge named the payer later, or
 * the payment is in a block that was read later. Where a payment has no known payer, anybody may be that payer.
 */
async function findReturnsToPayers(knex: Knex, accountId: number, topics: Buffer[]): Promise<TransactionRow[]> {
  const { rows: returns } = await knex.raw<{ rows: (TransactionRow & { topic: Buffer; payee: string })[] }>(
    `select chain_id, tx_hash, block_number, topic, event ->> 'to' as payee from unmatched_events
     where topic = any(?) and account_id = ? and reason = 'WRONG_PAYEE'`,
    [topics, accountId],
  )
  if (returns.length === 0) return []
  const { rows: payers } = await knex.raw<{ rows: { topic: Buffer; payer: Buffer | null }[] }>(
    `select distinct r.topic, p.payer from requests r
     join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.account_id = ? and p.account_id = ? and r.topic = any(?)`,
    [accountId, accountId, returns.map(({ topic }) => topic)],
  )
  const known = new Set(payers.map(({ topic, payer }) => `${bytesToHex(topic)} ${payer && addressFromBytes(payer)}`))
  return returns.filter(({ topic, payee }) => [payee, null].some((payer) => known.has(`${bytesToHex(topic)} ${payer}`)))
}

/** Payments and refunds of an account under topics, without those that were detected for the asking account. */
async function findMatchedTransactions(
  knex: Knex,
  which: { readonly account: number; readonly asking: number; readonly topics: Buffer[] },
): Promise<TransactionRow[]> {
  const { rows } = await knex.raw<{ rows: TransactionRow[] }>(
    `select p.chain_id, p.tx_hash, p.block_number from requests r
     join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.account_id = :account and p.account_id = :account
       and (r.topic = any(:topics) or r.refund_topic = any(:topics))
       and p.chain_id is not null and p.tx_hash is not null and p.block_number is not null
       and (p.account_id <> :asking or not p.detected)
     union
     select f.chain_id, f.tx_hash, f.block_number from requests r
     join refunds f on f.account_id = r.account_id and f.request_id = r.request_id
     where r.account_id = :account and f.account_id = :account and f.account_id <> :asking
       and (r.topic = any(:topics) or r.refund_topic = any(:topics))`,
    { ...which },
  )
  return rows
}

function distinctTransactions(rows: readonly TransactionRow[]): SeenTransaction[] {
  const transactions = rows.map(({ chain_id, tx_hash, block_number }) => ({
    chainId: chain_id,
    txHash: bytesToHex(tx_hash),
    blockNumber: Number(block_number),
  }))
  const distinct = new Map(transactions.map((each) => [`${each.chainId} ${each.txHash}`, each]))
  return [...distinct.values()].toSorted((a, b) => a.blockNumber - b.blockNumber)
}
