import type { Knex } from 'knex'
import { chunksOf } from '../../domain/collections.ts'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import {
  changePayments,
  deletePayments,
  type LockedAccount,
  readPayments,
  readPaymentsById,
} from '../../store/payment-changes.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import { loadPayments, loadPaymentsOfTransactions } from '../../store/request-ledger.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { RemovedEvent } from '../../store/supersede-imports.ts'
import { queryRows } from './read-rows.ts'

/** Keeps a statement under 65,535 parameters. */
const ROWS_A_STATEMENT = 500

/** Removes an account's detected payments and refunds of blocks above a number. */
export interface Removal {
  readonly above: number
  /** Whether final ones are removed too. */
  readonly alsoFinal: boolean
}

/** The account's payments that have one of these ids, or a transaction of these hashes, on either chain. By id. */
export async function loadPaymentsByEvents(
  trx: Knex,
  accountId: number,
  { txHashes, ids }: { readonly txHashes: ReadonlySet<Hex>; readonly ids: string[] },
): Promise<Map<string, PaymentRow>> {
  if (txHashes.size === 0) return new Map()
  const ofTransactions = await loadPaymentsOfTransactions(
    trx,
    accountId,
    [...txHashes].map((hash) => hash.slice(2)),
  )
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    `select p.* from unnest(?::uuid[]) as asked (id) cross join lateral
       (select * from payments where account_id = ? and id = asked.id offset 0) p`,
    [ids, accountId],
  )
  return new Map([...ofTransactions, ...rows].map((row) => [row.id, row]))
}

/** The refunds of an account in some transactions. */
export async function loadRefundsByTransactions(
  trx: Knex,
  accountId: number,
  txHashes: ReadonlySet<Hex>,
): Promise<RefundRow[]> {
  if (txHashes.size === 0) return []
  const hashes = [...txHashes].map(hexToBytes)
  return trx('refunds').where({ account_id: accountId }).whereIn('tx_hash', hashes).select<RefundRow[]>('*')
}

/** The payments of an account's requests. By id. */
export async function loadPaymentsByRequests(
  trx: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<Map<string, PaymentRow>> {
  const asked = requestIds.map((id) => ({ request_id: hexToBytes(id) }))
  return new Map((await loadPayments(trx, accountId, asked)).map((row) => [row.id, row]))
}

/** Ids of the requests with payments or refunds on a chain that are to become final or to be removed. */
export async function findDueRequests(
  trx: Knex,
  of: { readonly accountId: number; readonly chainId: string },
  due: { readonly finalBlock: number; readonly removal?: Removal | undefined },
): Promise<string[]> {
  const found: string[] = []
  for (const table of ['payments', 'refunds'] as const) {
    const rows = await trx(table)
      .distinct<{ request_id: Buffer }[]>('request_id')
      .where({ account_id: of.accountId, chain_id: of.chainId })
      .whereNotNull('request_id')
      .where((either) => {
        const open = table === 'payments' ? { final: false, superseded: false } : { final: false }
        void either.where((final) => void final.where(open).where('block_number', '<=', due.finalBlock))
        const { removal } = due
        if (removal !== undefined) void either.orWhere((removed) => void whereRemoved(removed, removal))
      })
    found.push(...rows.map(({ request_id }) => request_id.toString('hex')))
  }
  return found
}

/** The requests on a chain that have imported payments without a transaction which still count, by account. */
export async function findUnproven(trx: Knex, network: string): Promise<Map<number, Buffer[]>> {
  const { rows } = await trx.raw<{ rows: { account_id: number; request_id: Buffer }[] }>(
    `select distinct r.account_id, r.request_id from requests r
     join payments p on p.account_id = r.account_id and p.request_id = r.request_id
     where r.network = ? and p.imported and p.tx_hash is null and not p.superseded`,
    [network],
  )
  const groups = Map.groupBy(rows, ({ account_id }) => account_id)
  return new Map([...groups].map(([accountId, of]) => [accountId, of.map(({ request_id }) => request_id)]))
}

function whereRemoved(query: Knex.QueryBuilder, { above, alsoFinal }: Removal): Knex.QueryBuilder {
  const higher = query.where('block_number', '>', above)
  return alsoFinal ? higher : higher.where({ final: false })
}

/**
 * Removes what was detected above a block. An imported payment keeps its row and id and is no longer `detected`: it is superseded, and so counts nothing,
 * until its event is read again.
 */
export async function removeDetected(account: LockedAccount, chainId: string, removal: Removal): Promise<void> {
  const { trx, accountId, at } = account
  const ofChain = { account_id: accountId, chain_id: chainId }
  const counted: RemovedEvent[] = await whereRemoved(trx('payments').where({ ...ofChain, detected: true }), removal)
    .whereNotNull('request_id')
    .distinct('network', 'tx_hash', 'request_id')
  for (const some of chunksOf(counted, ROWS_A_STATEMENT)) {
    const rows = some.map((row) => ({ account_id: accountId, ...row }))
    await trx('removed_events').insert(rows).onConflict().ignore()
  }
  const removed = whereRemoved(trx('payments').where({ ...ofChain, imported: false }), removal)
  await deletePayments(account, await readPayments(account, removed))
  const imported = whereRemoved(trx('payments').where({ ...ofChain, imported: true, detected: true }), removal)
  const unplaced = { block_number: null, log_index: null, confirmations: null }
  const undetected = { detected: false, superseded: true, final: false, ...unplaced, updated_at: at }
  await changePayments(account, await readPayments(account, imported.clone()), imported.update(undetected).toSQL())
  await whereRemoved(trx('refunds').where(ofChain), removal).delete()
}

/** Forgets that a reorg removed events of transactions: they are read again. */
export async function forgetRemoved(
  { trx, accountId }: LockedAccount,
  network: string,
  txHashes: ReadonlySet<Hex>,
): Promise<void> {
  if (txHashes.size === 0) return
  const hashes = [...txHashes].map(hexToBytes)
  const asked = [accountId, network, hashes]
  await trx.raw('delete from removed_events where account_id = ? and network = ? and tx_hash = any(?)', asked)
}

export async function deletePaymentRows(account: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  await deletePayments(account, await readPaymentsById(account, ids))
}

export async function deleteRefundRows(trx: Knex, accountId: number, rows: readonly RefundRow[]): Promise<void> {
  for (const { tx_hash, event_index, network } of rows) {
    await trx('refunds').where({ account_id: accountId, tx_hash, event_index, network }).delete()
  }
}

/** Inserts refunds; one of an event that is stored already is replaced. */
export async function saveRefunds(trx: Knex, rows: readonly RefundRow[]): Promise<void> {
  for (const some of chunksOf(rows, ROWS_A_STATEMENT)) {
    await trx('refunds')
      .insert(some)
      .onConflict(['account_id', 'tx_hash', 'event_index', 'network'])
      .merge(['request_id', 'block_number', 'log_index', 'timestamp', 'final', 'amount', 'currency', 'recipient'])
  }
}

/** How much was detected on a chain above a block. */
export interface FoundAbove {
  readonly payments: number
  readonly refunds: number
}

/** Counts what a restart from a block would delete. Payments that were only imported stay and are not counted. */
export async function countAbove(knex: Knex, chainId: string, block: number): Promise<FoundAbove> {
  const count = async (table: string, filter: object): Promise<number> => {
    const rows = await knex(table)
      .where({ chain_id: chainId, ...filter })
      .where('block_number', '>', block)
      .count<{ count: bigint | string }[]>({ count: '*' })
    return Number(rows[0]?.count ?? 0)
  }
  return { payments: await count('payments', { detected: true }), refunds: await count('refunds', {}) }
}

/** Accounts with payments or refunds on a chain above a block, ascending. */
export async function accountsAbove(trx: Knex, chainId: string, block: number): Promise<number[]> {
  const rows = await queryRows<{ readonly accountId: number }>(
    trx,
    `select account_id from payments where chain_id = ? and block_number > ?
     union select account_id from refunds where chain_id = ? and block_number > ? order by account_id`,
    [chainId, block, chainId, block],
  )
  return rows.map(({ accountId }) => accountId)
}

/** A transaction with a detected payment or refund, and the block in which it was read. */
export interface FoundTransaction {
  readonly txHash: Hex
  readonly blockNumber: number
}

/** Transactions with detected payments or refunds up to a block, highest block first. */
export function findLatest(knex: Knex, chainId: string, block: number, limit: number): Promise<FoundTransaction[]> {
  return queryRows(
    knex,
    `(select distinct tx_hash, block_number from payments where chain_id = ? and detected and block_number <= ?
      order by block_number desc, tx_hash limit ?)
     union
     (select distinct tx_hash, block_number from refunds where chain_id = ? and block_number <= ?
      order by block_number desc, tx_hash limit ?)
     order by block_number desc, tx_hash limit ?`,
    [chainId, block, limit, chainId, block, limit, limit],
  )
}
