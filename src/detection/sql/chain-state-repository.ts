import type { Knex } from 'knex'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { readRows } from './read-rows.ts'

/** A row of `chain_state`: how far a chain was read. */
export interface StoredChain {
  /** CAIP-2. */
  readonly chainId: string
  /** Canonical name. */
  readonly network: string
  readonly genesisHash: Hex
  readonly scannedBlock: number
  readonly scannedHash: Hex
  readonly scannedTime: Date
  readonly headBlock: number
  readonly finalBlock: number
  /** Whether a node of the chain has ever answered a `finalized` block. */
  readonly hasFinalizedTag: boolean
  /** Why the chain is stopped; absent while it is followed. */
  readonly alarm?: string | undefined
  /** The lowest block that is read or to be read; absent until it was found, and after a contract was added. */
  readonly startBlock?: number | undefined
  /** The time from which `startBlock` was found; absent where it was given as a number. */
  readonly startSince?: Date | undefined
  /** The time from which a stored request may have been paid, if that was earlier than `startSince` when the request was stored. */
  readonly wantedSince?: Date | undefined
  /** When the list of the chain's oracle last changed; absent where no change was read. */
  readonly listChangedAt?: Date | undefined
}

/** Identifies one block. */
export interface StoredBlock {
  readonly number: number
  readonly hash: Hex
}

/** @param chainId - CAIP-2 */
export async function findChain(knex: Knex, chainId: string): Promise<StoredChain | undefined> {
  const [stored] = readRows<StoredChain>(await knex('chain_state').where({ chain_id: chainId }))
  return stored
}

/** Reads the row and locks it until the transaction ends. Whoever writes rows of a chain takes this lock first. */
export async function lockChain(trx: Knex.Transaction, chainId: string): Promise<StoredChain | undefined> {
  const [stored] = readRows<StoredChain>(await trx('chain_state').where({ chain_id: chainId }).forUpdate())
  return stored
}

/** Inserts the row of a chain unless it exists. @returns whether it was inserted */
export async function insertChain(
  trx: Knex.Transaction,
  chain: Pick<StoredChain, 'chainId' | 'network' | 'genesisHash' | 'headBlock'> & {
    readonly checkpoint: BlockHeader
    readonly now: Date
  },
): Promise<boolean> {
  const inserted = await trx('chain_state')
    .insert({
      chain_id: chain.chainId,
      network: chain.network,
      genesis_hash: hexToBytes(chain.genesisHash),
      ...columnsOfCheckpoint(chain.checkpoint),
      head_block: chain.headBlock,
      final_block: 0,
      alarm: null,
      updated_at: chain.now,
    })
    .onConflict('chain_id')
    .ignore()
    .returning('chain_id')
  return inserted.length > 0
}

/** What changes in the row of a chain; what is undefined stays as it is. */
interface ChainUpdate extends Partial<Pick<StoredChain, 'headBlock' | 'finalBlock' | 'hasFinalizedTag'>> {
  /** The block that is now the last one read. */
  readonly checkpoint?: Omit<BlockHeader, 'parentHash'> | undefined
  /** null ends an alarm. */
  readonly alarm?: string | null
  readonly startBlock?: number
  readonly startSince?: Date | null
  readonly now: Date
}

export async function updateChain(knex: Knex, chainId: string, update: ChainUpdate): Promise<void> {
  const { checkpoint, headBlock, finalBlock, hasFinalizedTag, alarm, startBlock, startSince, now } = update
  await knex('chain_state')
    .where({ chain_id: chainId })
    // Knex leaves out columns whose value is undefined.
    .update({
      ...(checkpoint && columnsOfCheckpoint(checkpoint)),
      head_block: headBlock,
      final_block: finalBlock,
      has_finalized_tag: hasFinalizedTag,
      alarm,
      start_block: startBlock,
      start_since: startSince,
      updated_at: now,
    })
}

/** Notes when the list of the chain's oracle changed. A reorg that removes the change leaves its time, a few blocks too late. */
export async function noteListChange(trx: Knex.Transaction, chainId: string, timestampSec: number): Promise<void> {
  const at = new Date(timestampSec * 1_000)
  const latest = trx.raw('greatest(list_changed_at, ?::timestamptz)', [at])
  await trx('chain_state').where({ chain_id: chainId }).update({ list_changed_at: latest })
}

/** Notes that payments since a time are wanted on a chain. Does nothing where they are read or noted already. */
export async function wantSince(knex: Knex, network: string, since: Date): Promise<void> {
  await knex('chain_state')
    .where({ network })
    .whereRaw('(start_since is null or start_since > ?) and (wanted_since is null or wanted_since > ?)', [since, since])
    .update({ wanted_since: since })
}

function columnsOfCheckpoint({ number, hash, timestampSec }: Omit<BlockHeader, 'parentHash'>) {
  return { scanned_block: number, scanned_hash: hexToBytes(hash), scanned_time: new Date(timestampSec * 1_000) }
}

/** The stored blocks of a chain, lowest first: the last final one and all above it that were read. */
export async function readBlocks(knex: Knex, chainId: string): Promise<StoredBlock[]> {
  const rows = await knex('chain_blocks').select('number', 'hash').where({ chain_id: chainId }).orderBy('number')
  return readRows<StoredBlock>(rows)
}

/** Accounts that have payments or refunds in blocks up to a number, or above it. */
export async function accountsInBlocks(
  trx: Knex,
  chainId: string,
  operator: '<=' | '>',
  number: number,
): Promise<number[]> {
  const lists = await trx('chain_blocks')
    .where({ chain_id: chainId })
    .where('number', operator, number)
    .whereRaw(`account_ids <> '{}'`)
    .pluck<number[][]>('account_ids')
  return lists.flat()
}

/**
 * @param accountsByBlock - by block number, the accounts that have payments or refunds in it
 */
export async function insertBlocks(
  trx: Knex,
  chainId: string,
  blocks: readonly BlockHeader[],
  accountsByBlock: ReadonlyMap<number, readonly number[]>,
): Promise<void> {
  if (blocks.length === 0) return
  await trx('chain_blocks').insert(
    blocks.map(({ number, hash, timestampSec }) => ({
      chain_id: chainId,
      number,
      hash: hexToBytes(hash),
      timestamp: new Date(timestampSec * 1_000),
      account_ids: accountsByBlock.get(number) ?? [],
    })),
  )
}

/**
 * Deletes the blocks below the last final one, which stays as the parent of those above it. Its payments are final, so nothing more happens to
 * them and its list of accounts is emptied.
 */
export async function deleteFinalBlocks(trx: Knex, chainId: string, finalBlock: number): Promise<void> {
  await trx('chain_blocks').where({ chain_id: chainId }).where('number', '<', finalBlock).delete()
  await trx('chain_blocks')
    .where({ chain_id: chainId, number: finalBlock })
    .whereRaw(`account_ids <> '{}'`)
    .update({ account_ids: [] })
}

/** Deletes the blocks above a number, and what belongs to them but for payments and refunds. */
export async function deleteBlocksAbove(trx: Knex, chainId: string, number: number): Promise<void> {
  for (const table of ['unmatched_events', 'single_request_proxies', 'pending_enrichments']) {
    await trx(table).where({ chain_id: chainId }).where('block_number', '>', number).delete()
  }
  await trx('chain_blocks').where({ chain_id: chainId }).where('number', '>', number).delete()
}

/** @returns seconds */
export async function timeOfBlock(trx: Knex, chainId: string, number: number): Promise<number> {
  const { timestamp } = await trx('chain_blocks')
    .where({ chain_id: chainId, number })
    .first<{ timestamp: Date }>('timestamp')
  return timestamp.getTime() / 1_000
}

/** Adds an account to the accounts of blocks, so that their finality or removal reaches its payments. */
export async function addAccountToBlocks(
  trx: Knex,
  chainId: string,
  accountId: number,
  numbers: readonly number[],
): Promise<void> {
  await trx('chain_blocks')
    .where({ chain_id: chainId })
    .whereIn('number', [...new Set(numbers)])
    .whereRaw('not (? = any(account_ids))', [accountId])
    .update({ account_ids: trx.raw('account_ids || ?::integer', [accountId]) })
}
