import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes, ZERO_ADDRESS } from '../../domain/address.ts'
import { readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import type { MatchableRequest } from '../match/match-event.ts'
import { type Acceptance, acceptanceKeyOf, findAccepted } from './accepted-events-repository.ts'
import { findRequestProxies } from './request-proxies-repository.ts'

/** A followed chain's place, as it is stored. */
export interface StoredChain {
  readonly chainId: string
  readonly network: string
  readonly genesisHash: Hex
  readonly scannedBlock: number
  readonly scannedHash: Hex
  readonly scannedTime: Date
  readonly headBlock: number
  readonly finalBlock: number
  /** Whether the chain has ever told its finalized block. */
  readonly hasFinalizedTag: boolean
  readonly alarm?: string
}

/** A block that is not final, or the last that is. */
export interface StoredBlock {
  readonly number: number
  readonly hash: Hex
}

/** What detection reads. */
export interface DetectionRepository {
  /** Which accounts know each topic; topics that nobody knows are absent. */
  accountsOfTopics(topics: readonly Hex[]): Promise<Map<Hex, number[]>>
  /** Names of accounts by id. */
  accountNames(ids: readonly number[]): Promise<Map<number, string>>
  /** An account's requests that know one of the topics, as their payments' or their refunds'. */
  requestsOfTopics(accountId: number, topics: readonly Hex[]): Promise<MatchableRequest[]>
  /**
   * Who paid requests of an account and when first, by request id.
   *
   * @param except - transactions whose detected payments are left out, because they are being read again
   */
  payersOf(
    accountId: number,
    requestIds: readonly string[],
    except?: ChainTransactions,
  ): Promise<Map<string, KnownPayers>>
  /** Who paid the payments that were detected in these transactions for the account, by {@link acceptanceKeyOf}; undefined: nobody knows. */
  detectedPayersOf(accountId: number, transactions: ChainTransactions): Promise<Map<string, Address | undefined>>
  /** When each of the addresses was a refund wallet of the account; those that never were are absent. */
  walletsOf(accountId: number, addresses: readonly Address[]): Promise<Map<Address, WalletTime[]>>
  /** What an operator has accepted of these transactions for the account, by {@link acceptanceKeyOf}. */
  acceptedOf(accountId: number, transactions: ChainTransactions): Promise<Map<string, Acceptance>>
  chain(chainId: string): Promise<StoredChain | undefined>
  /** The chain's stored blocks, lowest first. */
  blocks(chainId: string): Promise<StoredBlock[]>
  /**
   * Transactions in which events with one of the topics were seen and may be new to the account, in the order of their blocks:
   * without those that were read for it already.
   */
  transactionsOfTopics(accountId: number, topics: readonly Hex[]): Promise<SeenTransaction[]>
  /** Which of the addresses are SingleRequestProxies that a followed factory made. */
  requestProxiesAmong(chainId: string, addresses: readonly Address[]): Promise<Set<Address>>
  /** Topics of events whose transactions were not read, because they were nobody's or too large, and that are somebody's now. */
  claimedTopics(chainId: string): Promise<Hex[]>
}

/** Transactions of one chain. */
export interface ChainTransactions {
  /** CAIP-2. */
  readonly chainId: string
  readonly txHashes: readonly Hex[]
}

/** The payers of one request. */
export interface KnownPayers {
  readonly firstOf: ReadonlyMap<Address, FirstPayment>
  /** The first payment whose payer is not known. */
  readonly unknown?: FirstPayment
}

/** From when to when an address was a refund wallet. */
export interface WalletTime {
  readonly registeredAt: Date
  readonly removedAt?: Date
}

/** Where somebody's first payment stands. Payments are ordered by time first, since an import may name no block. */
export interface FirstPayment {
  readonly timestampSec: number
  /** 0 where it is not known. */
  readonly blockNumber: number
}

export interface SeenTransaction {
  readonly chainId: string
  readonly txHash: Hex
  readonly blockNumber: number
}

/** What stored addresses of followed chains begin with. */
const EVM_FAMILY = addressToBytes(ZERO_ADDRESS).subarray(0, 1)

/** Most topics in one statement. */
const CHUNK = 2_000

/** Makes the repository on a database. */
export function createDetectionRepository(knex: Knex): DetectionRepository {
  async function accountsOfTopics(topics: readonly Hex[]) {
    const accounts = new Map<Hex, number[]>()
    for (const chunk of chunksOf(topics)) {
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

  return {
    accountsOfTopics,
    async accountNames(ids) {
      const rows = await knex('accounts')
        .select<{ id: number; name: string }[]>('id', 'name')
        .whereIn('id', [...ids])
      return new Map(rows.map(({ id, name }) => [id, name]))
    },
    async requestsOfTopics(accountId, topics) {
      const requests: MatchableRequest[] = []
      for (const chunk of chunksOf(topics)) {
        const bytes = chunk.map(hexToBytes)
        const { rows } = await knex.raw<{ rows: RequestRow[] }>(
          `select * from requests where account_id = ? and topic = any(?)
           union all
           select * from requests where account_id = ? and refund_topic = any(?) and not (topic = any(?))`,
          [accountId, bytes, accountId, bytes, bytes],
        )
        requests.push(...rows.map(toMatchable))
      }
      return requests
    },
    async payersOf(accountId, requestIds, except) {
      const { rows } = await knex.raw<{ rows: PayerRow[] }>(
        `select distinct on (request_id, payer) request_id, payer, timestamp, coalesce(block_number, 0) as block_number
         from payments where account_id = ? and request_id = any(?)
           and (detected and not imported and chain_id = ? and tx_hash = any(?)) is not true
         order by request_id, payer, timestamp, coalesce(block_number, 0)`,
        [accountId, requestIds.map(hexToBytes), except?.chainId ?? '', (except?.txHashes ?? []).map(hexToBytes)],
      )
      const groups = Map.groupBy(rows, ({ request_id }) => request_id.toString('hex'))
      return new Map([...groups].map(([requestId, list]) => [requestId, toKnownPayers(list)]))
    },
    async detectedPayersOf(accountId, { chainId, txHashes }) {
      const { rows } = await knex.raw<{ rows: { tx_hash: Buffer; event_index: number; payer: Buffer | null }[] }>(
        `select tx_hash, event_index, payer from payments
         where account_id = ? and tx_hash = any(?) and event_index is not null and chain_id = ?
           and detected and not imported`,
        [accountId, txHashes.map(hexToBytes), chainId],
      )
      return new Map(
        rows.map(({ tx_hash, event_index, payer }) => [
          acceptanceKeyOf(bytesToHex(tx_hash), event_index),
          payer === null ? undefined : addressFromBytes(payer),
        ]),
      )
    },
    async walletsOf(accountId, addresses) {
      const { rows } = await knex.raw<{ rows: WalletRow[] }>(
        'select address, registered_at, removed_at from refund_wallets where account_id = ? and address = any(?)',
        [accountId, addresses.map(addressToBytes)],
      )
      const times = Map.groupBy(rows, ({ address }) => addressFromBytes(address))
      return new Map([...times].map(([address, list]) => [address, list.map(toWalletTime)]))
    },
    acceptedOf: (accountId, transactions) => findAccepted(knex, accountId, transactions),
    async chain(chainId) {
      const row = await knex('chain_state').where({ chain_id: chainId }).first<ChainRow | undefined>()
      return row === undefined ? undefined : toStoredChain(row)
    },
    async blocks(chainId) {
      const rows = await knex('chain_blocks')
        .select<{ number: bigint; hash: Buffer }[]>('number', 'hash')
        .where({ chain_id: chainId })
        .orderBy('number')
      return rows.map(({ number, hash }) => ({ number: Number(number), hash: bytesToHex(hash) }))
    },
    transactionsOfTopics: async (accountId, topics) =>
      findTransactions(knex, { accountId, topics, directory: await accountsOfTopics(topics) }),
    requestProxiesAmong: (chainId, addresses) => findRequestProxies(knex, chainId, addresses),
    async claimedTopics(chainId) {
      const rows = await knex('unmatched_events')
        .distinct<{ topic: Buffer }[]>('topic')
        .where({ chain_id: chainId })
        .whereIn('reason', ['UNKNOWN_TOPIC', 'RECEIPT_TOO_LARGE'])
      return [...(await accountsOfTopics(rows.map(({ topic }) => bytesToHex(topic)))).keys()]
    },
  }
}

interface WantedTopics {
  readonly accountId: number
  readonly topics: readonly Hex[]
  /** Which accounts know each. */
  readonly directory: ReadonlyMap<Hex, readonly number[]>
}

/**
 * Those that were not matched, and those that were matched for accounts which knew the topic before. What the account imported
 * may not have been seen for it yet, and what went to nobody it knew is a refund where he is known by now to have paid by a bridge;
 * everything else of its own has been.
 */
async function findTransactions(
  knex: Knex,
  { accountId, topics, directory }: WantedTopics,
): Promise<SeenTransaction[]> {
  type Row = { chain_id: string; tx_hash: Buffer; block_number: bigint }
  const unmatched = await knex.raw<{ rows: Row[] }>(
    `select chain_id, tx_hash, block_number from unmatched_events where topic = any(:bytes) and account_id <> :accountId
     union all
     select u.chain_id, u.tx_hash, u.block_number from unmatched_events u
     where u.topic = any(:bytes) and u.account_id = :accountId and u.reason = 'WRONG_PAYEE' and exists (
       select from requests r join payments p on p.account_id = r.account_id and p.request_id = r.request_id
       where r.account_id = :accountId and p.account_id = :accountId and r.topic = u.topic and p.type = :carried
         and p.payer = :evm || decode(substr(u.event ->> 'to', 3), 'hex'))`,
    { bytes: topics.map(hexToBytes), accountId, carried: codeOfType('CROSSCHAIN'), evm: EVM_FAMILY },
  )
  const found = [...unmatched.rows]
  for (const account of new Set([...directory.values()].flat())) {
    const bytes = topics.filter((topic) => directory.get(topic)?.includes(account)).map(hexToBytes)
    const known = await knex.raw<{ rows: Row[] }>(
      `select p.chain_id, p.tx_hash, p.block_number from requests r
       join payments p on p.account_id = r.account_id and p.request_id = r.request_id
       where r.account_id = :account and p.account_id = :account
         and (r.topic = any(:bytes) or r.refund_topic = any(:bytes))
         and p.chain_id is not null and p.tx_hash is not null and p.block_number is not null
         and (p.account_id <> :asking or not p.detected)
       union
       select f.chain_id, f.tx_hash, f.block_number from requests r
       join refunds f on f.account_id = r.account_id and f.request_id = r.request_id
       where r.account_id = :account and f.account_id = :account and f.account_id <> :asking
         and (r.topic = any(:bytes) or r.refund_topic = any(:bytes))`,
      { account, asking: accountId, bytes },
    )
    found.push(...known.rows)
  }
  const transactions = found.map((row) => ({
    chainId: row.chain_id,
    txHash: bytesToHex(row.tx_hash),
    blockNumber: Number(row.block_number),
  }))
  const distinct = new Map(
    transactions.map((transaction) => [`${transaction.chainId} ${transaction.txHash}`, transaction]),
  )
  return [...distinct.values()].toSorted((a, b) => a.blockNumber - b.blockNumber)
}

function chunksOf<T>(list: readonly T[]): T[][] {
  const chunks: T[][] = []
  for (let from = 0; from < list.length; from += CHUNK) chunks.push(list.slice(from, from + CHUNK))
  return chunks
}

interface PayerRow {
  readonly request_id: Buffer
  readonly payer: Buffer | null
  readonly timestamp: Date
  readonly block_number: bigint
}

function toKnownPayers(rows: readonly PayerRow[]): KnownPayers {
  const placed = rows.map(({ payer, timestamp, block_number }) => ({
    payer,
    first: { timestampSec: timestamp.getTime() / 1_000, blockNumber: Number(block_number) },
  }))
  const firstOf = new Map(
    placed.flatMap(({ payer, first }) => (payer === null ? [] : [[addressFromBytes(payer), first]])),
  )
  const unknown = placed.find(({ payer }) => payer === null)?.first
  return { firstOf, ...(unknown && { unknown }) }
}

interface WalletRow {
  readonly address: Buffer
  readonly registered_at: Date
  readonly removed_at: Date | null
}

function toWalletTime({ registered_at, removed_at }: WalletRow): WalletTime {
  return { registeredAt: registered_at, ...(removed_at !== null && { removedAt: removed_at }) }
}

interface ChainRow {
  readonly chain_id: string
  readonly network: string
  readonly genesis_hash: Buffer
  readonly scanned_block: bigint
  readonly scanned_hash: Buffer
  readonly scanned_time: Date
  readonly head_block: bigint
  readonly final_block: bigint
  readonly has_finalized_tag: boolean
  readonly alarm: string | null
}

/** A row of `chain_state`. */
export function toStoredChain(row: ChainRow): StoredChain {
  return {
    chainId: row.chain_id,
    network: row.network,
    genesisHash: bytesToHex(row.genesis_hash),
    scannedBlock: Number(row.scanned_block),
    scannedHash: bytesToHex(row.scanned_hash),
    scannedTime: row.scanned_time,
    headBlock: Number(row.head_block),
    finalBlock: Number(row.final_block),
    hasFinalizedTag: row.has_finalized_tag,
    ...(row.alarm === null ? {} : { alarm: row.alarm }),
  }
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
    ...(row.reference === null ? {} : { reference: row.reference }),
    ...(row.refund_address === null ? {} : { refundAddress: addressFromBytes(row.refund_address) }),
    ...(row.refund_topic === null ? {} : { refundTopic: bytesToHex(row.refund_topic) }),
  }
}
