import type { Knex } from 'knex'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import { createDetection, type Detection } from '../../detection/detection.ts'
import { createBudgetKeeper } from '../../detection/limits/keep-budgets.ts'
import type { Logger } from '../../domain/logger.ts'
import { createNodeLimits, type NodeLimits } from '../../nodes/node-limits.ts'
import { inLane } from '../../nodes/node-policy.ts'

interface Terms {
  readonly knex: Knex
  readonly chains: ChainDirectory
  readonly logger: Logger
}

/**
 * Does the work of a command with the nodes' limits of the chains file. What the command asks counts in the daily budgets, and leaves to the service
 * what it needs for new blocks.
 */
export async function withNodeLimits<T>(
  { knex, chains, logger }: Terms,
  work: (limits: NodeLimits) => Promise<T>,
): Promise<T> {
  const limits = createNodeLimits(chains.configured, { logger })
  const keeper = createBudgetKeeper({ knex, chains: chains.configured, limits, logger })
  await keeper.store()
  const ending = new AbortController()
  const keeping = keeper.run(ending.signal)
  try {
    return await inLane('BACKFILL', () => work(limits))
  } finally {
    ending.abort()
    await keeping
  }
}

/** As {@link withNodeLimits}, with detection, which applies the rules of the service but follows no chain. */
export function withDetection<T>(
  { knex, chains, logger }: Terms,
  work: (detection: Detection, limits: NodeLimits) => Promise<T>,
): Promise<T> {
  const tokens = createTokenDirectory(chains.configured)
  return withNodeLimits({ knex, chains, logger }, (limits) =>
    work(createDetection({ knex, chains, tokens, logger, limits, clock: () => new Date() }), limits),
  )
}
