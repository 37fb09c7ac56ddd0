import { readStoreConfig } from '../../config.ts'
import { given } from '../../domain/collections.ts'
import { findPending, requireMigratable } from '../../postgres/migrations/applied-migrations.ts'
import { MIGRATIONS } from '../../postgres/migrations/list.ts'
import {
  type DistributionPlan,
  distributeTables,
  type PlannedTable,
  planDistribution,
  requireWorkers,
} from '../../postgres/sharding/distribute.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  counted,
  EXIT_GOOD,
  parseWhole,
  UsageError,
} from '../shared/command.ts'
import { migrateFor, STORE_VARIABLES, withDatabase, withStore } from '../shared/with-store.ts'

/** More than a cluster needs, and few enough that metadata stays small. */
const MAX_SHARDS = 1_024

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
      const { stdout, stderr } = context
      const migrated = await migrateFor(context, knex, options['contract'] !== undefined)
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

/** Bytes of a table with its indexes that are copied in a second: a fifth of what bench/README.md tells, since other work and slower disks take their share. */
const BYTES_A_SECOND = 8 * 1024 * 1024

/**
 * `migrate --distribute`: one line a table, columns separated by tabs.
 *
 * @returns the exit code
 */
async function distribute({ options }: CommandInput, context: CommandContext): Promise<number> {
  const shards = given(options.shards, (text) => parseWhole('shards', text, 1, MAX_SHARDS))
  const config = readStoreConfig(context.environment, context.workingFolder)
  if (config.database.kind !== 'URL') {
    throw new UsageError('DATABASE_URL is not set: it has to lead to the coordinator of a Citus cluster')
  }
  const tell = (text: string) => context.stderr.write(`${text}\n`)
  return withStore(context, async (knex) => {
    const plan = await planDistribution(knex, shards)
    await requireWorkers(knex, plan.cluster)
    for (const table of plan.tables) context.stdout.write(`${lineOf(table)}\n`)
    for (const line of describePlan(plan)) tell(line)
    if (plan.tables.length + plan.leftovers.length === 0) return EXIT_GOOD
    if (options.yes === undefined) {
      tell('nothing was changed; with --yes it is done')
      return EXIT_GOOD
    }
    const startedMs = performance.now()
    let isWaiting = false
    const onWaiting = () => {
      if (!isWaiting) tell('waiting for transactions of the service')
      isWaiting = true
    }
    const onTable = ({ name }: PlannedTable) => tell(`${name}: being sharded`)
    await distributeTables(knex, plan, { onWaiting, onTable }, context.signal)
    tell(`done after ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`)
    return EXIT_GOOD
  })
}

function lineOf({ name, column, rows, bytes }: PlannedTable): string {
  return [name, column, Math.round(rows), bytes].join('\t')
}

function describePlan({ cluster, tables, leftovers, shards }: DistributionPlan): string[] {
  const { version, shardNodes } = cluster
  const on = `Citus ${version}, ${shardNodes.length} ${shardNodes.length === 1 ? 'node takes' : 'nodes take'} shards`
  if (tables.length + leftovers.length === 0) return [`${on}; all tables are sharded`]
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0)
  const seconds = Math.ceil(bytes / BYTES_A_SECOND)
  const work =
    tables.length === 0
      ? []
      : [
          `${tables.length} tables of ${(bytes / 1024 ** 2).toFixed(1)} MiB get ${shards} shards each; writers wait for about ${seconds} s, readers do not`,
        ]
  const rest = tables.length + leftovers.length
  return [on, ...work, `${rest} ${rest === 1 ? 'copy' : 'copies'} on the coordinator will be emptied afterwards`]
}
