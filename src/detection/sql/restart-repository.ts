import type { Knex } from 'knex'
import { bytesToHex, type Hex } from '../../domain/hex.ts'

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
  const { rows } = await trx.raw<{ rows: { account_id: number }[] }>(
    `select account_id from payments where chain_id = ? and block_number > ?
     union select account_id from refunds where chain_id = ? and block_number > ? order by account_id`,
    [chainId, block, chainId, block],
  )
  return rows.map(({ account_id }) => account_id)
}

/** A transaction with a detected payment or refund, and the block in which it was read. */
export interface FoundTransaction {
  readonly txHash: Hex
  readonly blockNumber: number
}

/** Transactions with detected payments or refunds up to a block, highest block first. */
export async function findLatest(
  knex: Knex,
  chainId: string,
  block: number,
  limit: number,
): Promise<FoundTransaction[]> {
  const { rows } = await knex.raw<{ rows: { tx_hash: Buffer; block_number: bigint }[] }>(
    `(select distinct tx_hash, block_number from payments where chain_id = ? and detected and block_number <= ?
      order by block_number desc, tx_hash limit ?)
     union
     (select distinct tx_hash, block_number from refunds where chain_id = ? and block_number <= ?
      order by block_number desc, tx_hash limit ?)
     order by block_number desc, tx_hash limit ?`,
    [chainId, block, limit, chainId, block, limit, limit],
  )
  return rows.map(({ tx_hash, block_number }) => ({ txHash: bytesToHex(tx_hash), blockNumber: Number(block_number) }))
}
