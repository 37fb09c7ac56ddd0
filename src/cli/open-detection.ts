import type { Knex } from 'knex'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { createTokenDirectory } from '../chains/token-directory.ts'
import { createDetection, type Detection } from '../detection/detection.ts'
import type { Logger } from '../domain/logger.ts'

/** Detection for a command: it applies the rules of the service but follows no chain. */
export function openDetection(knex: Knex, chains: ChainDirectory, logger: Logger): Detection {
  return createDetection({
    knex,
    chains,
    tokens: createTokenDirectory(chains.configured),
    logger,
    clock: () => new Date(),
  })
}
