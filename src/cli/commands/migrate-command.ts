import { readStoreConfig } from '../../config.ts'
import { findPending } from '../../postgres/migrations/applied-migrations.ts'
import { MIGRATIONS } from '../../postgres/migrations/list.ts'
import { migrate } from '../../postgres/migrations/migrate.ts'
import { requireMigratable } from '../../postgres/migrations/require-migratable.ts'
import type { Command } from '../command.ts'
import { tellMigration } from '../report-migration.ts'
import { EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withDatabase } from '../with-store.ts'

/** `migrate`: one line for each migration that ran. */
export const migrateCommand: Command = {
  path: ['migrate'],
  summary:
    'Bring the database schema up to date, which serve does too, while older processes go on. Several processes may run it at once. ' +
    'What was interrupted is continued.',
  options: [
    {
      name: 'contract',
      help: 'also run the steps that remove what older releases use, once no process of theirs is left',
    },
  ],
  environment: STORE_VARIABLES,
  async run({ options }, context) {
    const config = readStoreConfig(context.environment, context.workingFolder)
    return withDatabase(config, context, async (knex) => {
      await requireMigratable(knex)
      const { signal, stdout, stderr } = context
      const report = tellMigration(stderr, () => performance.now())
      const migrated = await migrate(knex, { contract: options['contract'] !== undefined, report, signal })
      for (const name of migrated) stdout.write(`${name}\n`)
      const { contracting } = await findPending(knex, MIGRATIONS)
      const left =
        contracting.length === 0
          ? ''
          : `; ${countOf(contracting.length)} left for --contract, once no process of an older release runs`
      stderr.write(`${migrated.length === 0 ? 'the schema is up to date' : `ran ${countOf(migrated.length)}`}${left}\n`)
      return EXIT_GOOD
    })
  },
}

const countOf = (n: number) => (n === 1 ? '1 migration' : `${n} migrations`)
