import type { Knex } from 'knex'

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
