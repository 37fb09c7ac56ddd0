import type { Knex } from 'knex'
import { chunksOf } from '../../domain/collections.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { Lack, LackingTransaction } from '../match/detected.ts'
import { readRows } from './read-rows.ts'

/** A transaction of which a figure is to be looked up again. */
export interface PendingEnrichment extends LackingTransaction {
  /** Lookups after which something was still lacking. */
  readonly attempts: number
  readonly queuedAt: Date
}

const ROWS_A_STATEMENT = 1_000

/** A figure that could not be read is first looked up again after this time. */
const FIRST_LOOKUP_MS = 5_000

/** Queues transactions that lack something; those that are queued already stay as they are. */
export async function queueEnrichments(
  trx: Knex,
  chainId: string,
  lacking: readonly LackingTransaction[],
  now: Date,
): Promise<void> {
  const dueAt = new Date(now.getTime() + FIRST_LOOKUP_MS)
  for (const some of chunksOf(lacking, ROWS_A_STATEMENT)) {
    const rows = some.map(({ accountId, txHash, blockNumber, lacks }) => ({
      chain_id: chainId,
      account_id: accountId,
      tx_hash: hexToBytes(txHash),
      block_number: blockNumber,
      lacks: [...lacks].toSorted(),
      queued_at: now,
      due_at: dueAt,
    }))
    await trx('pending_enrichments').insert(rows).onConflict(['chain_id', 'account_id', 'tx_hash']).ignore()
  }
}

/** Reads the entries of a chain that are due, longest due first. */
export async function findDueEnrichments(
  knex: Knex,
  chainId: string,
  now: Date,
  limit: number,
): Promise<PendingEnrichment[]> {
  const rows = await knex('pending_enrichments')
    .where('chain_id', chainId)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(limit)
  const entries = readRows<PendingEnrichment & { readonly lacks: Lack[] }>(rows)
  return entries.map((entry) => ({ ...entry, lacks: new Set(entry.lacks) }))
}

/** @param dueAt - undefined: not to be looked up any more */
export async function postponeEnrichment(
  knex: Knex,
  chainId: string,
  { accountId, txHash, lacks, attempts }: Pick<PendingEnrichment, 'accountId' | 'txHash' | 'lacks' | 'attempts'>,
  dueAt: Date | undefined,
): Promise<void> {
  await knex('pending_enrichments')
    .where({ chain_id: chainId, account_id: accountId, tx_hash: hexToBytes(txHash) })
    .update({ lacks: [...lacks].toSorted(), attempts, due_at: dueAt ?? null })
}

export async function deleteEnrichments(
  knex: Knex,
  chainId: string,
  accountId: number,
  txHashes: readonly Hex[],
): Promise<void> {
  if (txHashes.length === 0) return
  await knex('pending_enrichments')
    .where({ chain_id: chainId, account_id: accountId })
    .whereIn('tx_hash', txHashes.map(hexToBytes))
    .delete()
}

/** How many transactions of a chain lack a figure. */
export interface LackCount {
  /** CAIP-2. */
  readonly chainId: string
  /** `PRICE`: those of unpriced payments. */
  readonly lack: Lack
  /** Those that will be looked up again. */
  readonly pending: number
  /** Those that were given up after days. */
  readonly givenUp: number
}

/** Counts the transactions whose figures are unknown, by chain and figure; a transaction of two accounts counts twice. */
export async function countLacking(knex: Knex): Promise<LackCount[]> {
  const { rows } = await knex.raw<{ rows: LackCount[] }>(
    `select chain_id as "chainId", lack, (count(*) filter (where due_at is not null))::integer as pending,
            (count(*) filter (where due_at is null))::integer as "givenUp"
       from pending_enrichments cross join unnest(lacks) as lack group by 1, 2 order by 1, 2`,
  )
  return rows
}

/** The transactions among these of which an account's figures are still looked up. */
export async function openLookups(
  knex: Knex,
  accountId: number,
  { chainId, txHashes }: { readonly chainId: string; readonly txHashes: readonly Hex[] },
): Promise<Set<string>> {
  const hashes = await knex('pending_enrichments')
    .where({ chain_id: chainId, account_id: accountId })
    .whereIn('tx_hash', txHashes.map(hexToBytes))
    .whereNotNull('due_at')
    .pluck<Buffer[]>('tx_hash')
  return new Set(hashes.map(bytesToHex))
}
