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

/** Blocks to read again in one go: queued ranges that overlap or adjoin. */
interface RereadRun {
  readonly from: number
  readonly to: number
  readonly pending: readonly PendingReread[]
}

/**
 * Reads blocks again: first those of nodes that answered wrongly, since until then searches do not say that they are read; then those that were never compared.
 *
 * @returns whether all could be read
 */
export async function rereadPending(nodes: Rereading, final: StoredBlock, signal?: AbortSignal): Promise<boolean> {
  const { knex, network, chainId, logger } = nodes
  let isDone = true
  for (const run of rereadRuns(await readPendingRereads(knex, chainId))) {
    const to = Math.min(run.to, final.number)
    if (to < run.from) continue
    const fields = { chain: network, nodes: hostsOf(run), from: run.from, to }
    try {
      if (await rereadOne(nodes, run, to, signal)) logger.info(fields, 'blocks that a node gave were read again')
    } catch (error) {
      signal?.throwIfAborted()
      isDone = false
      logger.warn({ ...fields, err: error }, 'blocks that a node gave could not be read again; it is tried again')
    }
  }
  return isDone
}

/** @param pending - lowest first */
export function rereadRuns(pending: readonly PendingReread[]): RereadRun[] {
  return [true, false].flatMap((isWrong) => {
    const runs: RereadRun[] = []
    for (const each of pending.filter((other) => other.isWrong === isWrong)) {
      const last = runs.at(-1)
      if (last === undefined || each.from > last.to + 1) runs.push({ from: each.from, to: each.to, pending: [each] })
      else runs.splice(-1, 1, { from: last.from, to: Math.max(last.to, each.to), pending: [...last.pending, each] })
    }
    return runs
  })
}

const hostsOf = ({ pending }: RereadRun) => [...new Set(pending.map(({ node }) => node))]

/** @returns whether a node could be asked */
async function rereadOne(
  { knex, chainId, peers, suspected, reread, addresses }: Rereading,
  run: RereadRun,
  to: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const usable = peers.filter((_peer, index) => !suspected.has(index))
  const others = usable.filter(({ host }) => !hostsOf(run).includes(host))
  // Where all are suspected, any may be asked, since nothing is believed without proof.
  const asked = [others, usable, peers].find(({ length }) => length > 0)
  const [only] = peers
  if (only === undefined || asked === undefined) return false
  // What is read replaces what is stored, and any node may answer wrongly now: so it has to be proven.
  const wrap = (reader: ChainReader) =>
    peers.length === 1
      ? readsByReceipts(reader, only.client, addresses)
      : readsProven({ reader, peers, followed: addresses })
  const urls = asked.map(({ url }) => url)
  let { pending } = run
  for await (const { block } of reread({ from: run.from, to }, urls, wrap, signal)) {
    pending = await noteReread(knex, chainId, pending, block)
  }
  return true
}
