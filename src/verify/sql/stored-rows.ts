import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'

/** A row of `unmatched_events`. */
export interface UnmatchedRow {
  readonly tx_hash: Buffer
  readonly event_index: number
  /** 0: of no account. */
  readonly account_id: number
  readonly reason: string
  readonly topic: Buffer
  readonly block_number: bigint
  readonly timestamp: Date
  readonly event: Readonly<Record<string, string>>
}

/** Blocks of a chain, and their times. */
export interface BlockSpan {
  /** CAIP-2. */
  readonly chainId: string
  readonly from: number
  readonly to: number
  readonly fromTime: Date
  readonly toTime: Date
}

/** A request that some stored row belongs to. */
export interface TouchedRequest {
  readonly accountId: number
  /** Hexadecimal digits. */
  readonly requestId: string
}

/** The requests of accounts that have payments or refunds in some blocks. By time too, since that is what payments are indexed by. */
export async function touchedBetween(
  knex: Knex,
  accountIds: readonly number[],
  { chainId, from, to, fromTime, toTime }: BlockSpan,
): Promise<TouchedRequest[]> {
  const bindings = { accounts: [...accountIds], chainId, from, to, fromTime, toTime }
  const { rows: paid } = await knex.raw<{ rows: TouchedRow[] }>(
    `select distinct account_id, request_id from payments
     where account_id = any(:accounts) and timestamp between :fromTime and :toTime and chain_id = :chainId
       and block_number between :from and :to and detected and request_id is not null`,
    bindings,
  )
  const { rows: returned } = await knex.raw<{ rows: TouchedRow[] }>(
    `select distinct account_id, request_id from refunds
     where account_id = any(:accounts) and chain_id = :chainId and block_number between :from and :to`,
    bindings,
  )
  return [...paid, ...returned].map(({ account_id, request_id }) => ({
    accountId: account_id,
    requestId: request_id.toString('hex'),
  }))
}

interface TouchedRow {
  readonly account_id: number
  readonly request_id: Buffer
}

/** What is stored of some requests of an account, and of some transactions. */
export interface StoredRows {
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
}

export async function rowsOf(
  knex: Knex,
  accountId: number,
  { requestIds, txHashes }: { readonly requestIds: readonly string[]; readonly txHashes: readonly Hex[] },
): Promise<StoredRows> {
  const ids = requestIds.map(hexToBytes)
  const hashes = txHashes.map(hexToBytes)
  const bindings = { accountId, ids, hashes }
  const { rows: payments } = await knex.raw<{ rows: PaymentRow[] }>(
    `select * from payments where account_id = :accountId and request_id = any(:ids)
     union all
     select * from payments where account_id = :accountId and tx_hash = any(:hashes) and (request_id = any(:ids)) is not true`,
    bindings,
  )
  const { rows: refunds } = await knex.raw<{ rows: RefundRow[] }>(
    `select * from refunds where account_id = :accountId and (request_id = any(:ids) or tx_hash = any(:hashes))`,
    bindings,
  )
  return { payments, refunds }
}

/** The blocks that hold what is stored of some requests of an account: their whole history on the chain. */
export async function historyBlocks(
  knex: Knex,
  accountId: number,
  which: { readonly chainId: string; readonly requestIds: readonly string[]; readonly topics: readonly Hex[] },
): Promise<number[]> {
  const { chainId } = which
  const ids = which.requestIds.map(hexToBytes)
  const { rows: paid } = await knex.raw<{ rows: { block_number: bigint }[] }>(
    `select distinct block_number from payments
     where account_id = ? and request_id = any(?) and chain_id = ? and detected and block_number is not null`,
    [accountId, ids, chainId],
  )
  const { rows: returned } = await knex.raw<{ rows: { block_number: bigint }[] }>(
    'select distinct block_number from refunds where account_id = ? and request_id = any(?) and chain_id = ?',
    [accountId, ids, chainId],
  )
  const { rows: unmatched } = await knex.raw<{ rows: { block_number: bigint }[] }>(
    'select distinct block_number from unmatched_events where chain_id = ? and topic = any(?) and account_id = ?',
    [chainId, which.topics.map(hexToBytes), accountId],
  )
  return [...paid, ...returned, ...unmatched].map(({ block_number }) => Number(block_number))
}

const UNMATCHED_A_PAGE = 5_000

/** Unmatched events in some blocks, in pages. */
export async function* unmatchedBetween(
  knex: Knex,
  { chainId, from, to }: Pick<BlockSpan, 'chainId' | 'from' | 'to'>,
): AsyncGenerator<UnmatchedRow[]> {
  let after = { block: BigInt(from - 1), hash: Buffer.alloc(0) as Buffer, index: -1, account: -1 }
  for (;;) {
    const { rows } = await knex.raw<{ rows: UnmatchedRow[] }>(
      `select * from unmatched_events
       where chain_id = :chainId and block_number between :from and :to
         and (block_number, tx_hash, event_index, account_id) > (:block::bigint, :hash::bytea, :index::integer, :account::integer)
       order by block_number, tx_hash, event_index, account_id limit :limit`,
      { chainId, from, to, ...after, block: after.block.toString(), limit: UNMATCHED_A_PAGE },
    )
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = { block: last.block_number, hash: last.tx_hash, index: last.event_index, account: last.account_id }
  }
}

/** How many unmatched events a chain has, of no account and of accounts. Old ones are deleted beyond a number. */
export async function countUnmatched(knex: Knex, chainId: string): Promise<{ unknown: number; known: number }> {
  const { rows } = await knex.raw<{ rows: [{ unknown: bigint; known: bigint }] }>(
    `select count(*) filter (where account_id = 0) as unknown, count(*) filter (where account_id <> 0) as known
     from unmatched_events where chain_id = ?`,
    [chainId],
  )
  return { unknown: Number(rows[0].unknown), known: Number(rows[0].known) }
}

/** What is still looked up of transactions of an account, such as GAS or TRACE, by transaction hash. */
export async function openLookups(
  knex: Knex,
  accountId: number,
  { chainId, txHashes }: { readonly chainId: string; readonly txHashes: readonly Hex[] },
): Promise<Map<string, readonly string[]>> {
  const rows = await knex('pending_enrichments')
    .where({ chain_id: chainId, account_id: accountId })
    .whereIn('tx_hash', txHashes.map(hexToBytes))
    .whereNotNull('due_at')
    .select<{ tx_hash: Buffer; lacks: readonly string[] }[]>('tx_hash', 'lacks')
  return new Map(rows.map(({ tx_hash, lacks }) => [bytesToHex(tx_hash), lacks]))
}

/** Topics of requests that were stored a moment ago, whose earlier events may not be attached yet. */
export async function pendingTopics(knex: Knex): Promise<Buffer[]> {
  return knex('pending_replays').distinct().pluck<Buffer[]>('topic')
}
