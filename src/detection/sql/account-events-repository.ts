import type { Knex } from 'knex'
import { type Address, addressToBytes } from '../../domain/address.ts'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import { type EventPlace, eventKeyOf } from '../match/detected.ts'
import type { AcceptedAs } from '../match/match-event.ts'
import { queryRows } from './read-rows.ts'

/** One event of one chain, for one account. */
export interface AccountEvent extends EventPlace {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
}

/** The columns that identify the event in every table of an account's events. */
export function columnsOf({ accountId, chainId, txHash, eventIndex }: AccountEvent) {
  return { account_id: accountId, chain_id: chainId, tx_hash: hexToBytes(txHash), event_index: eventIndex }
}

/** Transactions of one chain. */
export interface ChainTransactions {
  /** CAIP-2. */
  readonly chainId: string
  readonly txHashes: readonly Hex[]
}

/**
 * Reads what is stored of an account's events in some transactions.
 *
 * @param table - a table of events, or a subquery
 * @param columns - those of the fields of T
 * @returns by {@link eventKeyOf}
 */
export async function findByEvent<T>(
  knex: Knex,
  table: string,
  columns: string,
  { accountId, chainId, txHashes }: ChainTransactions & { readonly accountId: number },
): Promise<Map<string, T>> {
  if (txHashes.length === 0) return new Map()
  const rows = await queryRows<T & EventPlace>(
    knex,
    `select tx_hash, event_index, ${columns} from ${table}
     where account_id = ? and chain_id = ? and tx_hash = any(?) and event_index is not null`,
    [accountId, chainId, txHashes.map(hexToBytes)],
  )
  return new Map(rows.map((row) => [eventKeyOf(row), row]))
}

/** The first payment of each payer of one request; undefined stands for those whose payer is unknown. */
export type KnownPayers = ReadonlyMap<Address | undefined, FirstPayment>

/** Orders payments: by time, then by block, since an imported payment may name no block. */
export interface FirstPayment {
  readonly timestampSec: number
  /** 0 where it is unknown. */
  readonly blockNumber: number
}

interface FirstOfPayer {
  readonly requestId: string
  readonly payer?: Address
  readonly timestamp: Date
  readonly blockNumber: number
}

/**
 * Finds who paid requests of an account, and when first. `offset 0` has each request looked up: of thousands, the planner would rather read all payments.
 *
 * @param except - transactions whose detected payments are left out, because they are being read again
 * @returns by request id
 */
export async function findPayers(
  knex: Knex,
  accountId: number,
  requestIds: readonly string[],
  except?: ChainTransactions,
): Promise<Map<string, KnownPayers>> {
  const rows = await queryRows<FirstOfPayer>(
    knex,
    `select distinct on (request_id, payer) request_id, payer, timestamp, coalesce(block_number, 0) as block_number
     from unnest(?::bytea[]) as asked (id) cross join lateral
       (select request_id, payer, timestamp, block_number, detected, chain_id, tx_hash
        from payments where account_id = ? and request_id = asked.id and not superseded offset 0) p
     where (detected and chain_id = ? and tx_hash = any(?)) is not true
     order by request_id, payer, timestamp, coalesce(block_number, 0)`,
    [requestIds.map(hexToBytes), accountId, except?.chainId ?? '', (except?.txHashes ?? []).map(hexToBytes)],
  )
  const firstOf = ({ payer, timestamp, blockNumber }: FirstOfPayer) =>
    [payer, { timestampSec: timestamp.getTime() / 1_000, blockNumber }] as const
  const groups = Map.groupBy(rows, ({ requestId }) => requestId)
  return new Map([...groups].map(([requestId, list]) => [requestId, new Map(list.map(firstOf))]))
}

/**
 * Finds who paid the payments that were detected in these transactions for an account.
 *
 * @returns by {@link findByEvent}; undefined where the payer is unknown
 */
export async function findDetectedPayers(
  knex: Knex,
  accountId: number,
  transactions: ChainTransactions,
): Promise<Map<string, Address | undefined>> {
  const asked = { accountId, ...transactions }
  const table = '(select * from payments where detected) p'
  const found = await findByEvent<{ readonly payer?: Address }>(knex, table, 'payer', asked)
  return new Map([...found].map(([key, { payer }]) => [key, payer]))
}

/** When an address was a refund wallet of an account. */
export interface WalletTime {
  readonly registeredAt: Date
  /** Absent while it is one. */
  readonly removedAt?: Date | undefined
}

/** Finds when addresses were refund wallets of an account; those that never were are absent. */
export async function findWallets(
  knex: Knex,
  accountId: number,
  addresses: readonly Address[],
): Promise<Map<Address, WalletTime[]>> {
  const rows = await queryRows<WalletTime & { readonly address: Address }>(
    knex,
    'select address, registered_at, removed_at from refund_wallets where account_id = ? and address = any(?)',
    [accountId, addresses.map(addressToBytes)],
  )
  return Map.groupBy(rows, ({ address }) => address)
}

/** What an operator accepted an event as, and the event as it was then. */
export interface Acceptance {
  readonly as: AcceptedAs
  readonly topic: Hex
  /** The fields that the unmatched event had; amounts as digits in base units. */
  readonly event: Readonly<Record<string, string>>
}

/** Who accepted an event, when and why. */
interface AcceptanceTerms {
  readonly acceptedBy: string
  readonly acceptedAt: Date
  readonly note: string
}

/** Finds what an account's operators accepted of transactions. @returns by {@link findByEvent} */
export function findAccepted(
  knex: Knex,
  accountId: number,
  transactions: ChainTransactions,
): Promise<Map<string, Acceptance>> {
  return findByEvent(knex, 'accepted_events', 'accepted_as as "as", topic, event', { accountId, ...transactions })
}

/** Stores an acceptance; replaces an earlier one of the same event. */
export async function storeAcceptance(
  trx: Knex,
  of: AccountEvent,
  { as, topic, event, acceptedBy, acceptedAt, note }: Acceptance & AcceptanceTerms,
): Promise<void> {
  await trx('accepted_events')
    .insert({
      ...columnsOf(of),
      accepted_as: as,
      topic: hexToBytes(topic),
      event: JSON.stringify(event),
      accepted_by: acceptedBy,
      accepted_at: acceptedAt,
      note,
    })
    .onConflict(['account_id', 'chain_id', 'tx_hash', 'event_index'])
    .merge(['accepted_as', 'topic', 'event', 'accepted_by', 'accepted_at', 'note'])
}

export async function deleteAcceptance(trx: Knex, of: AccountEvent): Promise<void> {
  await trx('accepted_events').where(columnsOf(of)).delete()
}
