import type { Knex } from 'knex'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { createTokenDirectory } from '../chains/token-directory.ts'
import { createDetection, type Detection } from '../detection/detection.ts'
import type { Logger } from '../domain/logger.ts'

/** What finds payments, for a command: it follows no chain by itself, and judges as the service does. */
export function openDetection(knex: Knex, chains: ChainDirectory, logger: Logger): Detection {
  return createDetection({
    knex,
    chains,
    tokens: createTokenDirectory(chains.configured),
    logger,
    clock: () => new Date(),
  })
}
