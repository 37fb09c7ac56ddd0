import type { Knex } from 'knex'
import type { StoreConfig } from '../config.ts'
import { checkDatabase } from '../postgres/check-database.ts'
import { openEmbeddedServer } from '../postgres/embedded/embedded-server.ts'
import { createDatabase } from '../postgres/knex.ts'
import { migrate } from '../postgres/migrations/migrate.ts'
import { requireMigratable } from '../postgres/migrations/require-migratable.ts'
import type { CommandContext } from './command.ts'
import { tellMigration } from './report-migration.ts'

/** The environment variables that configure a command's database. */
export const STORE_VARIABLES = ['DATABASE_URL', 'DATABASE_PREPARED_STATEMENTS', 'DATA_DIR', 'LOG_LEVEL']

/**
 * Runs work on the configured database, after migrating it. A running embedded server is shared; otherwise one is started and
 * stopped again.
 */
export function withStore<T>(
  config: StoreConfig,
  context: Pick<CommandContext, 'signal' | 'stderr'>,
  work: (knex: Knex) => Promise<T>,
): Promise<T> {
  return withDatabase(config, context, async (knex) => {
    await requireMigratable(knex)
    await migrate(knex, { report: tellMigration(context.stderr, () => performance.now()), signal: context.signal })
    return await work(knex)
  })
}

/** As {@link withStore}, without migrating. */
export async function withDatabase<T>(
  config: StoreConfig,
  { signal }: Pick<CommandContext, 'signal'>,
  work: (knex: Knex) => Promise<T>,
): Promise<T> {
  await using stack = new AsyncDisposableStack()
  return await work(await openPool(config, signal, stack))
}

async function openPool(config: StoreConfig, signal: AbortSignal, stack: AsyncDisposableStack): Promise<Knex> {
  const options = { poolMax: 2, applicationName: 'waybill command' }
  if (config.database.kind === 'URL') {
    const { url, maxPrepared } = config.database
    const knex = stack.adopt(createDatabase(url, { ...options, maxPrepared }), (pool) => pool.destroy())
    await checkDatabase(knex, url)
    return knex
  }
  const opened = await openEmbeddedServer({ dataDir: config.dataDir, signal })
  stack.defer(() => opened.release())
  return stack.adopt(createDatabase(opened.connection(), options), (pool) => pool.destroy())
}
