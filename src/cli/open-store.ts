import type { Knex } from 'knex'
import type { Config } from '../config.ts'
import { checkDatabase } from '../db/check-database.ts'
import { startEmbeddedServer } from '../db/embedded-server.ts'
import { createDatabase } from '../db/knex.ts'
import { dropLeases } from '../db/leases-repository.ts'
import { migrate } from '../db/migrate.ts'
import type { Logger } from '../domain/logger.ts'
import type { CommandContext } from './command.ts'

/** The database of a service. */
export interface OpenStore {
  readonly knex: Knex
  /** Resolves when the database has ended for good, which only an embedded one tells. */
  readonly failed: Promise<Error>
}

/** Beyond the longest deadline of a call: a last resort against statements that nobody waits for. */
const STATEMENT_TIMEOUT_MS = 60_000

/**
 * Opens the pool of the service, on the database server of the configuration or on the embedded one, and migrates.
 *
 * @param stack - closes what was opened
 */
export async function openStore(
  config: Config,
  { signal }: CommandContext,
  stack: AsyncDisposableStack,
  logger: Logger,
): Promise<OpenStore> {
  const options = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, logger }
  if (config.database.kind === 'URL') {
    const knex = stack.adopt(createDatabase(config.database.url, options), (pool) => pool.destroy())
    await checkDatabase(knex, config.database.url)
    await migrate(knex)
    return { knex, failed: new Promise<Error>(() => {}) }
  }
  const server = await startEmbeddedServer({ dataDir: config.dataDir, logger, signal })
  stack.defer(() => server.stop())
  const knex = stack.adopt(createDatabase(server.connection(), options), (pool) => pool.destroy())
  await migrate(knex)
  // The folder is this process's alone, so whoever held a lease is dead.
  await dropLeases(knex)
  return {
    knex,
    failed: server.exited.then((exit) => new Error(`the embedded PostgreSQL has ended (${exit.signal ?? exit.code})`)),
  }
}
