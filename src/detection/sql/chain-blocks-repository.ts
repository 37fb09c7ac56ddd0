import type { Knex } from 'knex'
import { bytesToHex, hexToBytes } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import type { StoredBlock } from './chain-state-repository.ts'

/** The stored blocks of a chain, lowest first: the last final one and all above it that were read. */
export async function readBlocks(knex: Knex, chainId: string): Promise<StoredBlock[]> {
  const rows = await knex('chain_blocks')
    .select<{ number: bigint; hash: Buffer }[]>('number', 'hash')
    .where({ chain_id: chainId })
    .orderBy('number')
  return rows.map(({ number, hash }) => ({ number: Number(number), hash: bytesToHex(hash) }))
}

/** Accounts that have payments or refunds in blocks up to a number, or above it. */
export async function accountsInBlocks(
  trx: Knex,
  chainId: string,
  operator: '<=' | '>',
  number: number,
): Promise<number[]> {
  const rows = await trx('chain_blocks')
    .select<{ account_ids: number[] }[]>('account_ids')
    .where({ chain_id: chainId })
    .where('number', operator, number)
    .whereRaw(`account_ids <> '{}'`)
  return rows.flatMap(({ account_ids }) => account_ids)
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
