import type { Knex } from 'knex'
import { type Address, addressFromBytes } from '../../domain/address.ts'
import { type Decimal, readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'

/** A stored request of an account. */
export interface StoredRequest {
  readonly accountId: number
  /** `01` and 64 digits. */
  readonly requestId: string
  readonly paymentReference: Hex
  readonly topic: Hex
  readonly payee: Address
  /** In the invoice currency. */
  readonly amount: Decimal
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
  /** Canonical name of its chain. */
  readonly network: string
  readonly reference?: string | undefined
  readonly refundAddress?: Address | undefined
  readonly refundTopic?: Hex | undefined
  /** Rank of what payments make of it, as stored. */
  readonly status: number
  /** As stored. */
  readonly paid: Decimal
  readonly pending: Decimal
  readonly held: Decimal
}

interface RequestRow {
  readonly request_id: Buffer
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
  readonly status: number
  readonly paid: string
  readonly pending: string
  readonly held: string
}

const TOPICS_A_STATEMENT = 2_000

/** The accounts that know each of some topics; other topics are absent. */
export async function findAccounts(knex: Knex, topics: readonly Hex[]): Promise<Map<Hex, number[]>> {
  const accounts = new Map<Hex, number[]>()
  for (let from = 0; from < topics.length; from += TOPICS_A_STATEMENT) {
    const { rows } = await knex.raw<{ rows: { topic: Buffer; account_id: number }[] }>(
      'select topic, account_id from reference_topics where topic = any(?)',
      [topics.slice(from, from + TOPICS_A_STATEMENT).map(hexToBytes)],
    )
    for (const { topic, account_id } of rows) {
      const key = bytesToHex(topic)
      accounts.set(key, [...(accounts.get(key) ?? []), account_id])
    }
  }
  return accounts
}

/** The requests of an account that have one of some topics, as theirs or as that of their refund address. */
export async function requestsOfTopics(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<StoredRequest[]> {
  const bytes = topics.map(hexToBytes)
  const { rows } = await knex.raw<{ rows: RequestRow[] }>(
    `select * from requests where account_id = ? and topic = any(?)
     union
     select * from requests where account_id = ? and refund_topic = any(?)`,
    [accountId, bytes, accountId, bytes],
  )
  return rows.map((row) => toRequest(accountId, row))
}

/** @param requestIds - hexadecimal digits */
export async function requestsOfIds(
  knex: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<StoredRequest[]> {
  const { rows } = await knex.raw<{ rows: RequestRow[] }>(
    'select * from requests where account_id = ? and request_id = any(?) order by request_id',
    [accountId, requestIds.map(hexToBytes)],
  )
  return rows.map((row) => toRequest(accountId, row))
}

function toRequest(accountId: number, row: RequestRow): StoredRequest {
  return {
    accountId,
    requestId: row.request_id.toString('hex'),
    paymentReference: bytesToHex(row.payment_reference),
    topic: bytesToHex(row.topic),
    payee: addressFromBytes(row.payee),
    amount: readStoredDecimal(row.amount),
    invoiceCurrency: row.invoice_currency,
    paymentCurrency: row.payment_currency,
    network: row.network,
    reference: row.reference ?? undefined,
    refundAddress: row.refund_address === null ? undefined : addressFromBytes(row.refund_address),
    refundTopic: row.refund_topic === null ? undefined : bytesToHex(row.refund_topic),
    status: row.status,
    paid: readStoredDecimal(row.paid),
    pending: readStoredDecimal(row.pending),
    held: readStoredDecimal(row.held),
  }
}

/** When an address was a refund wallet of an account. */
export interface WalletTime {
  readonly address: Address
  readonly registeredAt: Date
  readonly removedAt?: Date | undefined
}

/** All refund wallets that an account ever had. */
export async function walletsOf(knex: Knex, accountId: number): Promise<WalletTime[]> {
  const rows = await knex('refund_wallets')
    .where({ account_id: accountId })
    .select<{ address: Buffer; registered_at: Date; removed_at: Date | null }[]>(
      'address',
      'registered_at',
      'removed_at',
    )
  return rows.map(({ address, registered_at, removed_at }) => ({
    address: addressFromBytes(address),
    registeredAt: registered_at,
    removedAt: removed_at ?? undefined,
  }))
}

/** What an account's operators accepted on a chain, by transaction hash and event index. */
export async function acceptedOf(
  knex: Knex,
  accountId: number,
  chainId: string,
): Promise<Map<string, 'PAYMENT' | 'REFUND'>> {
  const rows = await knex('accepted_events')
    .where({ account_id: accountId, chain_id: chainId })
    .select<{ tx_hash: Buffer; event_index: number; accepted_as: 'PAYMENT' | 'REFUND' }[]>(
      'tx_hash',
      'event_index',
      'accepted_as',
    )
  return new Map(rows.map((row) => [`${bytesToHex(row.tx_hash)} ${row.event_index}`, row.accepted_as]))
}
