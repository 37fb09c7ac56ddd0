/**
 * A process that builds an index on a large table, for a test that kills it. Usage: node migrate-child.ts, with DATABASE_URL. It prints a
 * line of JSON for each failure, and at the end the names of the steps that it ran.
 */
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import type { WaitingStep } from '../../src/postgres/migrations/migration-report.ts'

const print = (what: unknown) => void process.stdout.write(`${JSON.stringify(what)}\n`)
const knex = createDatabase(process.env['DATABASE_URL'] ?? '')
const index = { build: 'large_hash', table: 'large', definition: '(hash, n)' }
const migrations = [{ name: '0001-index', indexes: [index] }]
const report = {
  waits: ({ step, error }: WaitingStep) => print({ failed: step, error: error.message }),
  builds: () => {},
}
print({ ran: await migrate(knex, { migrations, report, firstPauseMs: 100 }) })
await knex.destroy()
