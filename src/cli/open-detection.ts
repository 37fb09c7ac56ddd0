import type { Knex } from 'knex'
import { createDetection, type Detection } from '../detection/detection.ts'
import type { ChainDirectory } from '../domain/chain-directory.ts'
import type { Logger } from '../domain/logger.ts'
import { createTokenDirectory } from '../domain/token-directory.ts'

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
