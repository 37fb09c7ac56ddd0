import type { BlockRun } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { forgetProven, readQueued } from './sql/unproven-blocks-repository.ts'
import type { TrustedNodes } from './trusted-nodes.ts'

/** Proves final blocks again and corrects what is stored of them. @returns whether all of them could be proven */
export type RepairBlocks = (blocks: BlockRun, signal: AbortSignal | undefined) => Promise<boolean>

/** Blocks after which progress is stored. */
const BLOCKS_AT_ONCE = 10_000

/**
 * Proves the blocks that nodes gave which answered wrongly, since until then searches do not say that they are read; then those that were never compared.
 *
 * @returns whether all that are final could be proven
 */
export async function proveQueued(
  {
    knex,
    chainId,
    network,
    logger,
    repair,
  }: Pick<TrustedNodes, 'knex' | 'chainId'> & {
    readonly network: string
    readonly logger: Logger
    readonly repair: RepairBlocks
  },
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  let areProven = true
  for (const { from: first, to: last } of await readQueued(knex, chainId, final.number)) {
    for (let from = first; from <= last; from += BLOCKS_AT_ONCE) {
      const span = { from, to: Math.min(last, from + BLOCKS_AT_ONCE - 1) }
      const isProven = await repair(span, signal).catch((error: unknown) => {
        signal?.throwIfAborted()
        logger.warn({ chain: network, ...span, err: error }, 'blocks that a node gave could not be read again')
        return false
      })
      if (isProven) {
        await forgetProven(knex, chainId, span)
        logger.info({ chain: network, ...span }, 'blocks that a node gave were proven')
      } else {
        areProven = false
      }
    }
  }
  return areProven
}
