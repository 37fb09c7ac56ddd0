import { readStoreConfig } from '../../config.ts'
import type { Command } from '../command.ts'
import { EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'

/** `migrate`: one line for each migration that ran. */
export const migrateCommand: Command = {
  path: ['migrate'],
  summary: 'Bring the database schema up to date, which serve does too. Several processes may run it at once.',
  environment: STORE_VARIABLES,
  async run(_, context) {
    const config = readStoreConfig(context.environment, context.workingFolder)
    const migrated = await withStore(config, context, (_knex, names) => Promise.resolve(names))
    for (const name of migrated) context.stdout.write(`${name}\n`)
    context.stderr.write(
      migrated.length === 0
        ? 'the schema is up to date\n'
        : `ran ${migrated.length} ${migrated.length === 1 ? 'migration' : 'migrations'}\n`,
    )
    return EXIT_GOOD
  },
}
