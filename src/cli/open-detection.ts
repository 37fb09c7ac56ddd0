import type { Knex } from 'knex'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { createTokenDirectory } from '../chains/token-directory.ts'
import { createDetection, type Detection } from '../detection/detection.ts'
import type { Logger } from '../domain/logger.ts'
import type { NodeLimits } from '../nodes/node-limits.ts'

/** Detection for a command: it applies the rules of the service but follows no chain. */
export function openDetection({
  knex,
  chains,
  logger,
  limits,
}: {
  readonly knex: Knex
  readonly chains: ChainDirectory
  readonly logger: Logger
  readonly limits: NodeLimits
}): Detection {
  return createDetection({
    knex,
    chains,
    tokens: createTokenDirectory(chains.configured),
    logger,
    limits,
    clock: () => new Date(),
  })
}
