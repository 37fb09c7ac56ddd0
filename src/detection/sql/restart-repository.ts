import type { Knex } from 'knex'
import { bytesToHex, type Hex } from '../../domain/hex.ts'

/** What stands above a block, and so is forgotten when the chain is looked at anew from there. */
export interface FoundAbove {
  readonly payments: number
  readonly refunds: number
}

/** Counts what was detected on a chain above a block; what was imported alone stays and is not counted. */
export async function countAbove(knex: Knex, chainId: string, block: number): Promise<FoundAbove> {
  const count = async (table: string, which: object): Promise<number> => {
    const rows = await knex(table)
      .where({ chain_id: chainId, ...which })
      .where('block_number', '>', block)
      .count<{ count: bigint | string }[]>({ count: '*' })
    return Number(rows[0]?.count ?? 0)
  }
  return { payments: await count('payments', { detected: true }), refunds: await count('refunds', {}) }
}

/** A transaction in which something was found, and the block in which it was then. */
export interface FoundTransaction {
  readonly txHash: Hex
  readonly blockNumber: number
}

/** The highest transactions up to a block in which something was found. */
export async function findLatest(
  knex: Knex,
  chainId: string,
  block: number,
  limit: number,
): Promise<FoundTransaction[]> {
  const { rows } = await knex.raw<{ rows: { tx_hash: Buffer; block_number: bigint }[] }>(
    `select tx_hash, block_number from payments where chain_id = ? and detected and block_number <= ?
     union select tx_hash, block_number from refunds where chain_id = ? and block_number <= ?
     order by block_number desc, tx_hash limit ?`,
    [chainId, block, chainId, block, limit],
  )
  return rows.map(({ tx_hash, block_number }) => ({ txHash: bytesToHex(tx_hash), blockNumber: Number(block_number) }))
}
