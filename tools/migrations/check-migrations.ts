import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Knex } from 'knex'
import { startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createRecords, recordStep } from '../../src/postgres/migrations/applied-migrations.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import {
  buildsIndexes,
  type IndexMigration,
  type Migration,
  type TransactionMigration,
} from '../../src/postgres/migrations/migration.ts'
import type { CheckResult } from '../run-command.ts'
import { fillTables } from './fill-tables.ts'
import { judgeStep } from './judge-step.ts'
import { observeStep, type TableState } from './observe-step.ts'

/** Holds the steps of the schema to the rules of docs/internals/migrations.md, on a server of its own. */
export async function checkMigrations(): Promise<CheckResult> {
  const dataDir = await mkdtemp(join(tmpdir(), 'waybill-migrations-'))
  const server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' } })
  const knex = createDatabase(server.connection())
  try {
    const faults = await judgeMigrations(knex, MIGRATIONS)
    return { outcome: faults.length === 0 ? 'ok' : 'failed', output: faults.join('\n') }
  } finally {
    await knex.destroy()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/**
 * Runs every step on an empty database, with a row in each table, and says what is against the rules.
 *
 * @returns a line for each fault; the steps after one that fails are not run
 */
export async function judgeMigrations(knex: Knex, migrations: readonly Migration[]): Promise<string[]> {
  const faults: string[] = []
  await knex.transaction(createRecords)
  for (const [at, step] of migrations.entries()) {
    const earlier = migrations.slice(0, at)
    const since = step.contract?.unusedSince
    const found =
      since === undefined || earlier.some(({ name }) => name === since) ? [] : [`${since} is no earlier step`]
    try {
      found.push(
        ...(buildsIndexes(step) ? await judgeIndexes(knex, step, earlier) : await judgeTransaction(knex, step)),
      )
      await fillTables(knex)
    } catch (error) {
      return [...faults, ...found.map((fault) => `${step.name}: ${fault}`), `${step.name}: ${(error as Error).message}`]
    }
    faults.push(...found.map((fault) => `${step.name}: ${fault}`))
  }
  return faults.length > 0 ? faults : compareOrders(knex, migrations)
}

function judgeTransaction(knex: Knex, step: TransactionMigration): Promise<string[]> {
  return knex.transaction(async (trx) => {
    const seen = await observeStep(trx, (inner) => step.up(inner))
    await recordStep(trx, step)
    return judgeStep(step, seen)
  })
}

async function judgeIndexes(knex: Knex, step: IndexMigration, earlier: readonly Migration[]): Promise<string[]> {
  const before = await tablesOf(knex)
  await migrate(knex, { migrations: [...earlier, step], contract: true })
  const after = await tablesOf(knex)
  return step.indexes.flatMap((change) => {
    const [was, now] = [before.get(change.table), after.get(change.table)]
    if (was === undefined || now === undefined) return [`there is no table ${change.table}`]
    if ('drop' in change) {
      const isKnown = change.drop in was.indexes
      return [
        ...(isKnown ? [] : [`${change.table} has no index ${change.drop}`]),
        ...(step.contract === undefined ? [`${change.drop} is dropped: older releases may use it; see contract`] : []),
      ]
    }
    const built = now.indexes[change.build]
    if (built === undefined) return [`${change.build} is no index of ${change.table}`]
    const lacksAccount = built.isUnique && now.key.includes('account_id') && !built.columns.includes('account_id')
    return lacksAccount ? [`${change.build} is unique without account_id, which a sharded table refuses`] : []
  })
}

async function tablesOf(knex: Knex): Promise<ReadonlyMap<string, TableState>> {
  return (await knex.transaction((trx) => observeStep(trx, async () => {}))).before
}

/** Contract steps run when an operator says so, so the steps after them must not rely on them. */
async function compareOrders(knex: Knex, migrations: readonly Migration[]): Promise<string[]> {
  if (migrations.every(({ contract }) => contract === undefined)) return []
  const inPlace = await describeTables(knex)
  await knex.raw('drop schema public cascade')
  await knex.raw('create schema public')
  await migrate(knex, { migrations: migrations.slice(0, 1) })
  await migrate(knex, { migrations })
  await migrate(knex, { migrations, contract: true })
  const atEnd = await describeTables(knex)
  return isDeepStrictEqual(inPlace, atEnd) ? [] : ['with the contract steps at the end the list makes another schema']
}

/** The tables by name, without what differs from database to database. A column's number depends on the order of the steps. */
async function describeTables(knex: Knex) {
  const tables = [...(await tablesOf(knex)).values()].map(({ name, columns, indexes, constraints, key }) => ({
    name,
    columns: Object.values(columns).toSorted((a, b) => a.name.localeCompare(b.name)),
    indexes,
    constraints,
    key: key.toSorted(),
  }))
  return tables.toSorted((a, b) => a.name.localeCompare(b.name))
}
