import type { Knex } from 'knex'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { createLimitsKeeper } from '../detection/limits/keep-node-limits.ts'
import type { Logger } from '../domain/logger.ts'
import { inLane } from '../nodes/lanes.ts'
import { createNodeLimits, type NodeLimits } from '../nodes/node-limits.ts'

/**
 * Does the work of a command with the nodes' limits: those of the chains file, and what the service has learned. What the command asks counts in
 * the daily budgets, and leaves to the service what it needs for new blocks.
 */
export async function withNodeLimits<T>(
  { knex, chains, logger }: { readonly knex: Knex; readonly chains: ChainDirectory; readonly logger: Logger },
  work: (limits: NodeLimits) => Promise<T>,
): Promise<T> {
  const limits = createNodeLimits(chains.configured, { logger })
  const keeper = createLimitsKeeper({ knex, chains: chains.configured, limits, logger })
  await keeper.recall()
  const stop = keeper.start()
  try {
    return await inLane('BACKFILL', () => work(limits))
  } finally {
    await stop()
  }
}
