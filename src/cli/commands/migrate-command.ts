import { findPending } from '../../postgres/migrations/applied-migrations.ts'
import { MIGRATIONS } from '../../postgres/migrations/list.ts'
import { migrate } from '../../postgres/migrations/migrate.ts'
import { requireMigratable } from '../../postgres/migrations/require-migratable.ts'
import { type Command, counted, EXIT_GOOD, UsageError } from '../shared/command.ts'
import { tellMigration } from '../shared/report-migration.ts'
import { STORE_VARIABLES, withDatabase } from '../shared/with-store.ts'
import { distribute, MAX_SHARDS } from './distribute-command.ts'

/** `migrate`: one line for each migration that ran. */
const migrateCommand: Command = {
  path: ['migrate'],
  summary:
    'Bring the database schema up to date, which serve does too, while older processes go on. Several processes may run it at once. ' +
    'What was interrupted is continued.',
  takes: {
    '[--contract]': 'also run the steps that remove what older releases use, once no process of theirs is left',
    '[--distribute]':
      'shard the tables of accounts over the workers of the Citus cluster whose coordinator DATABASE_URL is. Without --yes only show ' +
      'what it would do, one line a table: name, column, rows, bytes. Readers go on meanwhile, writers wait; a run that is stopped ' +
      'changes nothing',
    '[--shards N]': `with --distribute: shards of each table, 1 to ${MAX_SHARDS} (default: 32)`,
    '[--yes]': 'with --distribute: do it',
  },
  environment: STORE_VARIABLES,
  async run(input, context) {
    const { options } = input
    if (options['distribute'] !== undefined) return distribute(input, context)
    if (options.shards !== undefined || options.yes !== undefined) {
      throw new UsageError('--shards and --yes go with --distribute')
    }
    return withDatabase(context, async (knex) => {
      await requireMigratable(knex)
      const { signal, stdout, stderr } = context
      const report = tellMigration(stderr, () => performance.now())
      const migrated = await migrate(knex, { contract: options['contract'] !== undefined, report, signal })
      for (const name of migrated) stdout.write(`${name}\n`)
      const { contracting } = await findPending(knex, MIGRATIONS)
      const left =
        contracting.length === 0
          ? ''
          : `; ${counted(contracting.length, 'migration')} left for --contract, once no process of an older release runs`
      stderr.write(
        `${migrated.length === 0 ? 'the schema is up to date' : `ran ${counted(migrated.length, 'migration')}`}${left}\n`,
      )
      return EXIT_GOOD
    })
  },
}

export const commands: readonly Command[] = [migrateCommand]
