import type { Knex } from 'knex'

/** Who reads blocks: following or back-fill. */
export type ReadingLane = 'FOLLOW' | 'FILL'

/** Blocks that a node gave, both ends included. */
export interface NodeReading {
  /** Host of its URL. */
  readonly node: string
  readonly lane: ReadingLane
  readonly from: number
  readonly to: number
}

/** Notes that a node gave blocks. A reading that begins at the same block is made longer. */
export async function noteReading(knex: Knex, chainId: string, { node, lane, from, to }: NodeReading): Promise<void> {
  await knex.raw(
    `insert into node_readings as known (chain_id, node, lane, from_block, to_block) values (?, ?, ?, ?, ?)
     on conflict (chain_id, node, lane, from_block) do update set to_block = greatest(known.to_block, excluded.to_block)`,
    [chainId, node, lane, from, to],
  )
}

/** Forgets that a node gave blocks `from` to `block` in a lane, since it passed a comparison. */
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

/** Where a range that begins at the same block is queued already: the longer one stays. */
const LONGER = `on conflict (chain_id, node, from_block) do update
  set to_block = greatest(known.to_block, excluded.to_block), is_wrong = known.is_wrong or excluded.is_wrong`

/**
 * Queues the blocks that a node gave to be read again, since it answered wrongly. Blocks that following noted in advance and has not read are left out.
 *
 * @param highest - the last block that it gave to this process, which may not be stored yet
 */
export async function queueReadings(
  knex: Knex,
  chainId: string,
  { node, highest }: { readonly node: string; readonly highest: number },
): Promise<void> {
  await knex.transaction(async (trx) => {
    await trx.raw(
      `with gone as (delete from node_readings where chain_id = :chainId and node = :node returning from_block, to_block),
         given as (select greatest(max(scanned_block), :highest::bigint) as block from chain_state where chain_id = :chainId)
       insert into pending_rereads as known (chain_id, node, from_block, to_block, is_wrong)
       select :chainId, :node, from_block, least(max(to_block), greatest(max(given.block), from_block)), true
       from gone, given group by from_block ${LONGER}`,
      { chainId, node, highest },
    )
    await trx('pending_rereads').where({ chain_id: chainId, node }).update({ is_wrong: true })
  })
}

/** Queues blocks to be read again that a node gave and that could not be compared. */
export async function queueDoubted(
  knex: Knex,
  chainId: string,
  { node, from, to }: Pick<NodeReading, 'node' | 'from' | 'to'>,
): Promise<void> {
  await knex.raw(
    `insert into pending_rereads as known (chain_id, node, from_block, to_block, is_wrong) values (?, ?, ?, ?, false) ${LONGER}`,
    [chainId, node, from, to],
  )
}

/**
 * Queues the blocks that earlier processes followed to be read again, since it is unknown whether they were compared.
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
     insert into pending_rereads as known (chain_id, node, from_block, to_block, is_wrong)
     select ?, node, from_block, to_block, false from gone ${LONGER}`,
    [chainId, own.map(({ node }) => node), own.map(({ from }) => from), chainId],
  )
}

/** Blocks that are to be read again, both ends included. */
export interface PendingReread {
  /** Host of the node that gave them. */
  readonly node: string
  readonly from: number
  readonly to: number
  /** Whether that node answered wrongly; otherwise its blocks were never compared. */
  readonly isWrong: boolean
}

/** The blocks of a chain that are to be read again, lowest first. */
export async function readPendingRereads(knex: Knex, chainId: string): Promise<PendingReread[]> {
  const rows = await knex('pending_rereads')
    .where({ chain_id: chainId })
    .orderBy(['from_block', 'node'])
    .select<PendingRow[]>('node', 'from_block', 'to_block', 'is_wrong')
  return rows.map(({ node, from_block, to_block, is_wrong }) => ({
    node,
    from: Number(from_block),
    to: Number(to_block),
    isWrong: is_wrong,
  }))
}

interface PendingRow {
  readonly node: string
  readonly from_block: bigint
  readonly to_block: bigint
  readonly is_wrong: boolean
}

/**
 * Notes that blocks were read again up to a number.
 *
 * @param pending - as read from the table; ranges that became longer since stay queued
 * @returns what is left of them
 */
export async function noteReread(
  knex: Knex,
  chainId: string,
  pending: readonly PendingReread[],
  block: number,
): Promise<PendingReread[]> {
  const begun = pending.filter(({ from }) => from <= block)
  const left = begun.filter(({ to }) => to > block).map((each) => ({ ...each, from: block + 1 }))
  await knex.transaction(async (trx) => {
    for (const { node, from, to } of begun) {
      await trx('pending_rereads')
        .where({ chain_id: chainId, node, from_block: from })
        .where('to_block', '<=', to)
        .delete()
    }
    for (const { node, from, to, isWrong } of left) {
      await trx.raw(
        `insert into pending_rereads as known (chain_id, node, from_block, to_block, is_wrong) values (?, ?, ?, ?, ?) ${LONGER}`,
        [chainId, node, from, to, isWrong],
      )
    }
  })
  return [...left, ...pending.filter(({ from }) => from > block)]
}
