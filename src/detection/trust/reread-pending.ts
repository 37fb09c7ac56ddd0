import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import type { ComparedNodes } from './compared-nodes.ts'
import { noteReread, type PendingReread, readPendingRereads } from './sql/node-readings-repository.ts'

/** Proves final blocks again and corrects what is stored of them. @returns whether all of them could be proven */
export type RepairBlocks = (
  blocks: { readonly from: number; readonly to: number },
  signal: AbortSignal | undefined,
) => Promise<boolean>

interface Rereading extends ComparedNodes {
  readonly knex: Knex
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  readonly logger: Logger
  readonly repair: RepairBlocks
}

/** Blocks after which progress is stored. */
const BLOCKS_AT_ONCE = 10_000

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
      await rereadOne(nodes, run, to, signal)
      logger.info(fields, 'blocks that a node gave were read again')
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

/** @throws RpcError where a block is not proven */
async function rereadOne(
  { knex, chainId, repair }: Rereading,
  run: RereadRun,
  to: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  let { pending } = run
  for (let from = run.from; from <= to; from += BLOCKS_AT_ONCE) {
    const last = Math.min(to, from + BLOCKS_AT_ONCE - 1)
    // What is read replaces what is stored, and any node may answer wrongly now: so it has to be proven.
    if (!(await repair({ from, to: last }, signal))) {
      throw new RpcError('INCONSISTENT', `blocks ${from} to ${last} are not all proven`)
    }
    pending = await noteReread(knex, chainId, pending, last)
  }
}
