import type { Knex } from 'knex'
import { createApiKeyRepository } from '../../auth/sql/api-key-repository.ts'
import { readStoreConfig, type StoreConfig } from '../../config.ts'
import type { Account } from '../../domain/account.ts'
import { kindOf, WaybillError } from '../../errors/waybill-error.ts'
import { checkDatabase } from '../../postgres/check-database.ts'
import { openEmbeddedServer } from '../../postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../postgres/knex.ts'
import { requireMigratable } from '../../postgres/migrations/applied-migrations.ts'
import { migrate } from '../../postgres/migrations/migrate.ts'
import { describeBuild, describeWait, type MigrationReport } from '../../postgres/migrations/migration-report.ts'
import { type CommandContext, EXIT_FAILED, parseAccountName, UsageError } from './command.ts'

/** The environment variables that configure a command's database. */
export const STORE_VARIABLES = ['DATABASE_URL', 'DATABASE_PREPARED_STATEMENTS', 'DATA_DIR', 'LOG_LEVEL']

/**
 * Runs work on the configured database, after migrating it. A running embedded server is shared; otherwise one is started and
 * stopped again.
 */
export function withStore<T>(context: CommandContext, work: (knex: Knex) => Promise<T>): Promise<T> {
  return withDatabase(context, async (knex) => {
    await requireMigratable(knex)
    await migrateFor(context, knex)
    return await work(knex)
  })
}

/** Migrates, and tells a person what it waits for and how far an index is. @returns the steps that ran */
export function migrateFor({ stderr, signal }: CommandContext, knex: Knex, contract = false): Promise<string[]> {
  const write = (line: string) => stderr.write(`${line}\n`)
  const report: MigrationReport = {
    waits: (waiting) => write(describeWait(waiting)),
    builds: (building) => write(describeBuild(building)),
  }
  return migrate(knex, { contract, report, signal })
}

/**
 * As {@link withStore}, with the account that an option names. Where there is no such account, says so on standard error, and fails.
 *
 * @throws UsageError for what is no name
 */
export function withAccount(
  context: CommandContext,
  option: string | undefined,
  work: (knex: Knex, account: Account) => Promise<number>,
): Promise<number> {
  const name = parseAccountName(option)
  return withStore(context, async (knex) => {
    const account = await createApiKeyRepository(knex).findAccount(name)
    if (account !== undefined) return work(knex, account)
    context.stderr.write(`there is no account "${name}"\n`)
    return EXIT_FAILED
  })
}

/** As {@link withAccount}, without an account where the option is absent. */
export function withSomeAccount(
  context: CommandContext,
  option: string | undefined,
  work: (knex: Knex, account?: Account) => Promise<number>,
): Promise<number> {
  return option === undefined ? withStore(context, work) : withAccount(context, option, work)
}

/** As {@link withStore}, without migrating. */
export async function withDatabase<T>(
  { environment, workingFolder, signal }: CommandContext,
  work: (knex: Knex) => Promise<T>,
): Promise<T> {
  const config = readStoreConfig(environment, workingFolder)
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

/** Turns an error about invalid input into a UsageError. */
export async function asUsage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof WaybillError) || kindOf(error.reason) !== 'INVALID_INPUT') throw error
    throw new UsageError(error.message)
  }
}
