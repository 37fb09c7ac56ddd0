import type { Knex } from 'knex'

/** Who reads blocks: following and back-fill go on by themselves. */
export type ReadingLane = 'FOLLOW' | 'FILL'

/** Blocks that a node gave, both ends included. */
export interface NodeReading {
  /** Host of its URL. */
  readonly node: string
  readonly lane: ReadingLane
  readonly from: number
  readonly to: number
}

/** Notes that a node gives blocks; a reading that begins at the same block becomes longer. */
export async function noteReading(knex: Knex, chainId: string, { node, lane, from, to }: NodeReading): Promise<void> {
  await knex.raw(
    `insert into node_readings as known (chain_id, node, lane, from_block, to_block) values (?, ?, ?, ?, ?)
     on conflict (chain_id, node, lane, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
    [chainId, node, lane, from, to],
  )
}

/** Forgets what a node gave in a lane from one block up to another: it passed a check. */
export async function forgetReadings(
  knex: Knex,
  chainId: string,
  of: Pick<NodeReading, 'node' | 'lane' | 'from'>,
  block: number,
): Promise<void> {
  await knex.raw(
    `with gone as (
       delete from node_readings where chain_id = :chainId and node = :node and lane = :lane
         and from_block between :from and :block
       returning to_block)
     insert into node_readings as known (chain_id, node, lane, from_block, to_block)
     select :chainId, :node, :lane, :block::bigint + 1, max(to_block) from gone where to_block > :block having count(*) > 0
     on conflict (chain_id, node, lane, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
    { chainId, ...of, block },
  )
}

/** Has the blocks that a node gave read again from other nodes. */
export async function queueReadings(knex: Knex, chainId: string, node: string): Promise<void> {
  await knex.transaction(async (trx) => {
    await trx.raw(
      `insert into pending_rereads as known (chain_id, node, from_block, to_block)
       select chain_id, node, from_block, max(to_block) from node_readings where chain_id = ? and node = ?
       group by chain_id, node, from_block
       on conflict (chain_id, node, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
      [chainId, node],
    )
    await trx('node_readings').where({ chain_id: chainId, node }).delete()
  })
}

/**
 * Has blocks that were followed before this process began read again from other nodes: what was compared of them is not known.
 *
 * @param own - readings of this process
 */
export async function queueLeftovers(
  knex: Knex,
  chainId: string,
  own: readonly Pick<NodeReading, 'node' | 'from'>[],
): Promise<void> {
  await knex.raw(
    `with gone as (
       delete from node_readings r where chain_id = ? and lane = 'FOLLOW' and not exists (
         select from unnest(?::text[], ?::bigint[]) as own (node, from_block)
         where own.node = r.node and own.from_block = r.from_block)
       returning node, from_block, to_block)
     insert into pending_rereads as known (chain_id, node, from_block, to_block) select ?, node, from_block, to_block from gone
     on conflict (chain_id, node, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
    [chainId, own.map(({ node }) => node), own.map(({ from }) => from), chainId],
  )
}

/** Blocks that are to be read again from another node than the one that gave them. */
export interface PendingReread {
  readonly node: string
  readonly from: number
  readonly to: number
}

/** The blocks of a chain that are to be read again, lowest first. */
export async function readPendingRereads(knex: Knex, chainId: string): Promise<PendingReread[]> {
  const rows = await knex('pending_rereads')
    .where({ chain_id: chainId })
    .orderBy(['from_block', 'node'])
    .select<{ node: string; from_block: bigint; to_block: bigint }[]>('node', 'from_block', 'to_block')
  return rows.map(({ node, from_block, to_block }) => ({ node, from: Number(from_block), to: Number(to_block) }))
}

/** Notes that blocks were read again up to a number. */
export async function noteReread(
  knex: Knex,
  chainId: string,
  { node, from, to }: PendingReread,
  block: number,
): Promise<void> {
  await knex.transaction(async (trx) => {
    await trx('pending_rereads').where({ chain_id: chainId, node, from_block: from }).delete()
    if (block >= to) return
    await trx.raw(
      `insert into pending_rereads as known (chain_id, node, from_block, to_block) values (?, ?, ?, ?)
       on conflict (chain_id, node, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
      [chainId, node, block + 1, to],
    )
  })
}
