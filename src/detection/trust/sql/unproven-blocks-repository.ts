import type { Knex } from 'knex'
import type { BlockRun } from '../../../domain/chain.ts'

/**
 * Why blocks that a node gave are kept in mind:
 *
 * - `FOLLOWED`, `FILLED`: by following or back-fill, since the node's logs were last compared with another's. Without an end while the node goes on
 * - `UNCOMPARED`: they could not be compared, so they are proven when that is possible
 * - `WRONG`: the node was found to answer wrongly. They count as not read until they are proven
 */
export type UnprovenState = 'FOLLOWED' | 'FILLED' | 'UNCOMPARED' | 'WRONG'

/** @param node - host of its URL @param to - absent: all that follow as well */
interface NodeBlocks {
  readonly node: string
  readonly state: UnprovenState
  readonly from: number
  readonly to?: number | undefined
}

const ADD = `insert into unproven_blocks as known (chain_id, node, state, blocks)`
const JOIN = `on conflict (chain_id, node, state) do update set blocks = known.blocks + excluded.blocks`

/** Keeps blocks of a node in mind. */
export async function addUnproven(knex: Knex, chainId: string, { node, state, from, to }: NodeBlocks): Promise<void> {
  await knex.raw(`${ADD} values (?, ?, ?, int8multirange(int8range(?, ?, '[]'))) ${JOIN}`, [
    chainId,
    node,
    state,
    from,
    to ?? null,
  ])
}

/** Forgets blocks of a node in a state, up to the last of them that was compared. */
export async function passUnproven(
  knex: Knex,
  chainId: string,
  { node, state, to }: Pick<NodeBlocks, 'node' | 'state'> & { readonly to: number },
): Promise<void> {
  await subtract(knex, knex('unproven_blocks').where({ chain_id: chainId, node, state }), { from: 0, to })
}

/** Forgets blocks that were proven, whoever gave them. */
export async function forgetProven(knex: Knex, chainId: string, proven: BlockRun): Promise<void> {
  const queued = knex('unproven_blocks').where({ chain_id: chainId }).whereIn('state', ['UNCOMPARED', 'WRONG'])
  await subtract(knex, queued, proven)
}

async function subtract(knex: Knex, rows: Knex.QueryBuilder, { from, to }: BlockRun): Promise<void> {
  await rows.clone().update({ blocks: knex.raw(`blocks - int8multirange(int8range(?, ?, '[]'))`, [from, to]) })
  await rows.clone().whereRaw('isempty(blocks)').delete()
}

/**
 * Gives blocks another state, as far as they are read.
 *
 * @param node - absent: those of all nodes
 * @param highest - the last block that this process read, which may not be stored yet
 */
export async function changeState(
  knex: Knex,
  chainId: string,
  change: {
    readonly node?: string | undefined
    readonly from: readonly UnprovenState[]
    readonly to: UnprovenState
    readonly highest?: number | undefined
  },
): Promise<void> {
  const { node = null, from, to, highest = null } = change
  await knex.raw(
    `with gone as (
       delete from unproven_blocks
       where chain_id = :chainId and state = any(:from) and node = coalesce(:node, node) returning node, blocks),
     scanned as (select max(scanned_block) as block from chain_state where chain_id = :chainId),
     given as (
       select node, range_agg(blocks) * int8multirange(int8range(null,
         (select greatest(block, :highest::bigint) from scanned), '[]')) as blocks
       from gone group by node)
     ${ADD} select :chainId, node, :to, blocks from given where not isempty(blocks) ${JOIN}`,
    { chainId, node, from, to, highest },
  )
}

/** The final blocks that are to be proven, those that count as wrong before the others, lowest first. */
export async function readQueued(knex: Knex, chainId: string, final: number): Promise<BlockRun[]> {
  const { rows } = await knex.raw<{ rows: { from: bigint; to: bigint }[] }>(
    `select lower(span) as from, upper(span) - 1 as to from (
       select state, unnest(range_agg(blocks) * int8multirange(int8range(null, ?, '[]'))) as span from unproven_blocks
       where chain_id = ? and state in ('UNCOMPARED', 'WRONG') group by state) spans
     order by state desc, 1`,
    [final, chainId],
  )
  return rows.map(({ from, to }) => ({ from: Number(from), to: Number(to) }))
}
