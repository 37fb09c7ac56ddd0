import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'

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
}

/** Identifies one block. */
export interface StoredBlock {
  readonly number: number
  readonly hash: Hex
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
  readonly start_block: bigint | null
  readonly start_since: Date | null
  readonly wanted_since: Date | null
}

/** @param chainId - CAIP-2 */
export async function findChain(knex: Knex, chainId: string): Promise<StoredChain | undefined> {
  const row = await knex('chain_state').where({ chain_id: chainId }).first<ChainRow | undefined>()
  return row && toStoredChain(row)
}

/** Reads the row and locks it until the transaction ends. Whoever writes rows of a chain takes this lock first. */
export async function lockChain(trx: Knex.Transaction, chainId: string): Promise<StoredChain | undefined> {
  const row = await trx('chain_state').where({ chain_id: chainId }).forUpdate().first<ChainRow | undefined>()
  return row && toStoredChain(row)
}

/** Inserts the row of a chain unless it exists. @returns whether it was inserted */
export async function insertChain(
  trx: Knex.Transaction,
  chain: {
    readonly chainId: string
    readonly network: string
    readonly genesisHash: Hex
    readonly checkpoint: BlockHeader
    readonly headBlock: number
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
interface ChainUpdate {
  /** The block that is now the last one read. */
  readonly checkpoint?: Omit<BlockHeader, 'parentHash'> | undefined
  readonly headBlock?: number
  readonly finalBlock?: number
  readonly hasFinalizedTag?: boolean
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

function toStoredChain(row: ChainRow): StoredChain {
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
    alarm: row.alarm ?? undefined,
    startBlock: row.start_block === null ? undefined : Number(row.start_block),
    startSince: row.start_since ?? undefined,
    wantedSince: row.wanted_since ?? undefined,
  }
}
