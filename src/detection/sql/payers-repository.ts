import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { type ChainTransactions, findByEvent } from './account-event.ts'

/** The payers of one request. */
export interface KnownPayers {
  /** The first payment of each payer. */
  readonly firstOf: ReadonlyMap<Address, FirstPayment>
  /** The first payment whose payer is unknown. */
  readonly unknown?: FirstPayment | undefined
}

/** Orders payments: by time, then by block, since an imported payment may name no block. */
export interface FirstPayment {
  readonly timestampSec: number
  /** 0 where it is unknown. */
  readonly blockNumber: number
}

/** When an address was a refund wallet of an account. */
export interface WalletTime {
  readonly registeredAt: Date
  /** Absent while it is one. */
  readonly removedAt?: Date | undefined
}

interface PayerRow {
  readonly request_id: Buffer
  readonly payer: Buffer | null
  readonly timestamp: Date
  readonly block_number: bigint
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
  const { rows } = await knex.raw<{ rows: PayerRow[] }>(
    `select distinct on (request_id, payer) request_id, payer, timestamp, coalesce(block_number, 0) as block_number
     from unnest(?::bytea[]) as asked (id) cross join lateral
       (select request_id, payer, timestamp, block_number, detected, chain_id, tx_hash
        from payments where account_id = ? and request_id = asked.id and not superseded offset 0) p
     where (detected and chain_id = ? and tx_hash = any(?)) is not true
     order by request_id, payer, timestamp, coalesce(block_number, 0)`,
    [requestIds.map(hexToBytes), accountId, except?.chainId ?? '', (except?.txHashes ?? []).map(hexToBytes)],
  )
  const groups = Map.groupBy(rows, ({ request_id }) => request_id.toString('hex'))
  return new Map([...groups].map(([requestId, list]) => [requestId, toKnownPayers(list)]))
}

function toKnownPayers(rows: readonly PayerRow[]): KnownPayers {
  const placed = rows.map(({ payer, timestamp, block_number }) => ({
    payer,
    first: { timestampSec: timestamp.getTime() / 1_000, blockNumber: Number(block_number) },
  }))
  const firstOf = new Map(
    placed.flatMap(({ payer, first }) => (payer === null ? [] : [[addressFromBytes(payer), first]])),
  )
  return { firstOf, unknown: placed.find(({ payer }) => payer === null)?.first }
}

/**
 * Finds who paid the payments that were detected in these transactions for an account.
 *
 * @returns by {@link findByEvent}; undefined where the payer is unknown
 */
export function findDetectedPayers(
  knex: Knex,
  accountId: number,
  transactions: ChainTransactions,
): Promise<Map<string, Address | undefined>> {
  const read = ({ payer }: { readonly payer: Buffer | null }) => (payer === null ? undefined : addressFromBytes(payer))
  return findByEvent(knex, '(select * from payments where detected) p', ['payer'], { accountId, ...transactions }, read)
}

interface WalletRow {
  readonly address: Buffer
  readonly registered_at: Date
  readonly removed_at: Date | null
}

/** Finds when addresses were refund wallets of an account; those that never were are absent. */
export async function findWallets(
  knex: Knex,
  accountId: number,
  addresses: readonly Address[],
): Promise<Map<Address, WalletTime[]>> {
  const { rows } = await knex.raw<{ rows: WalletRow[] }>(
    'select address, registered_at, removed_at from refund_wallets where account_id = ? and address = any(?)',
    [accountId, addresses.map(addressToBytes)],
  )
  const times = Map.groupBy(rows, ({ address }) => addressFromBytes(address))
  const toTime = ({ registered_at, removed_at }: WalletRow) => ({
    registeredAt: registered_at,
    removedAt: removed_at ?? undefined,
  })
  return new Map([...times].map(([address, list]) => [address, list.map(toTime)]))
}
