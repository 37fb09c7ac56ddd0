import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import type { ComparedNodes } from './compared-nodes.ts'
import { readsByReceipts } from './logs-by-receipts.ts'
import { readsProven } from './proven-reads.ts'
import { noteReread, type PendingReread, readPendingRereads } from './sql/node-readings-repository.ts'

/** Reads final blocks again and corrects what is stored of them; gives the last block of each step. */
export type RereadBlocks = (
  blocks: { readonly from: number; readonly to: number },
  urls: readonly string[],
  wrap: (reader: ChainReader) => ChainReader,
  signal: AbortSignal | undefined,
) => AsyncIterable<{ readonly block: number }>

interface Rereading extends ComparedNodes {
  readonly knex: Knex
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  readonly logger: Logger
  readonly reread: RereadBlocks
}

/** Reads the blocks again that a node gave which was found out. @returns whether none of them failed */
export async function rereadPending(nodes: Rereading, final: StoredBlock, signal?: AbortSignal): Promise<boolean> {
  const { knex, network, chainId, logger } = nodes
  let isDone = true
  for (const pending of await readPendingRereads(knex, chainId)) {
    const to = Math.min(pending.to, final.number)
    if (to < pending.from) continue
    const fields = { network, node: pending.node, from: pending.from, to }
    try {
      if (await rereadOne(nodes, pending, to, signal)) logger.info(fields, 'blocks that a node gave were read again')
    } catch (error) {
      signal?.throwIfAborted()
      isDone = false
      logger.warn({ ...fields, err: error }, 'blocks that a node gave could not be read again; it is tried again')
    }
  }
  return isDone
}

/** @returns whether a node could be asked */
async function rereadOne(
  { knex, chainId, peers, suspected, reread, addresses }: Rereading,
  pending: PendingReread,
  to: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const others = peers.filter(({ host }, index) => host !== pending.node && !suspected.has(index))
  const asked = peers.length === 1 ? peers : others
  const [only] = peers
  if (only === undefined || asked.length === 0) return false
  // Any of the nodes may answer wrongly just now, and what is read again replaces what is stored.
  const wrap = (reader: ChainReader) =>
    peers.length === 1
      ? readsByReceipts(reader, only.client, addresses)
      : readsProven({ reader, peers, followed: addresses })
  const urls = asked.map(({ url }) => url)
  let { from } = pending
  for await (const { block } of reread({ from, to }, urls, wrap, signal)) {
    await noteReread(knex, chainId, { ...pending, from }, block)
    from = block + 1
  }
  return true
}
