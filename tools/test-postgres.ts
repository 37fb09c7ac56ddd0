/**
 * Runs the tests that use a database on another PostgreSQL:
 *
 *   npm run test:postgres -- 15                        version 15, 16, 17 or 18, installed into a temporary folder
 *   npm run test:postgres -- 17 --pgbouncer            through PgBouncer in transaction mode, if it is installed
 *   npm run test:postgres -- --pgbouncer=PROGRAM       through a PgBouncer that you built
 *   npm run test:postgres -- --url postgres://…        on a server that runs already; its user creates and drops databases
 *   npm run test:postgres -- 16 test/search            the tests of a folder
 *   npm run test:postgres -- 16 --long                 the programs of minutes that use a database; --long goes with all others
 *   CITUS_URL=postgres://… npm run test:citus          on a Citus cluster: each test gets a database that is sharded over the workers. CITUS_URL is
 *                                                      the coordinator, in a database that knows the workers; its user creates databases on all
 *
 * Prints a plain word and ends with exit code 0 where the version, PgBouncer or CITUS_URL cannot be had.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { findPgBouncer } from '../test/support/data/pgbouncer.ts'
import { installPostgres, POSTGRES_VERSIONS } from './install/install-postgres.ts'

/** Tests with other databases than these. */
const OTHER_SERVERS = [
  'test/postgres/embedded.long.test.ts', // the embedded server itself, whose version is the project's
  'test/cli/demo.long.test.ts',
  'test/demo/**',
]

/** Tests of what a connection does without a pooler. */
const DIRECT_ONLY = [
  'test/postgres/as-found.test.ts', // makes settings that a pooler's server connections would refuse
  'test/postgres/migrate.test.ts', // builds indexes, which needs the server itself
  'test/postgres/prepared.test.ts', // reads the statements that its own server process has prepared
  'test/search/slow-statements.test.ts', // sets a statement timeout, which behind a pooler is the role's
]

/** Tests that say nothing of Citus: they look at the plans, replicas or connections of one server. */
const ONE_SERVER_ONLY = [
  ...DIRECT_ONLY,
  'test/requests/requests-explain.test.ts',
  'test/search/explain.test.ts',
  'test/search/classes.test.ts',
  'test/search/slow-statements.test.ts',
  'test/postgres/replicas.long.test.ts',
  'test/cli/replicas.long.test.ts',
  'test/search/replica-pages.test.ts',
  'test/postgres/bad-days.test.ts',
  'test/cli/bad-days.long.test.ts',
  'test/postgres/schema.test.ts',
  'test/postgres/pooler.test.ts', // starts a pooler of its own
]

/** On Citus a statement takes several times as long as on one server, and the property tests run thousands. */
const CITUS_TIMEOUT_MS = 180_000
/** As `npm run test:long` has it. */
const LONG_TIMEOUT_MS = 600_000

/** A test belongs to this run when it imports one of them. */
const DATABASES = ['test/support/data/database.ts', 'test/support/data/replica.ts']

const args = process.argv.slice(2).map((word) => (word === '--pgbouncer' ? '--pgbouncer=' : word))
const { values, positionals } = parseArgs({
  args,
  allowPositionals: true,
  options: {
    url: { type: 'string' },
    pgbouncer: { type: 'string' },
    citus: { type: 'boolean' },
    long: { type: 'boolean' },
  },
})
const version = positionals.find((word) => /^\d+$/.test(word))
const filters = positionals.filter((word) => word !== version)
if (version !== undefined && !POSTGRES_VERSIONS.includes(version)) {
  stop(2, `PostgreSQL ${version} is not supported: use ${POSTGRES_VERSIONS.join(', ')}`)
}

function stop(code: number, message: string): never {
  console.error(message)
  process.exit(code)
}

function chooseServer(): Record<string, string> {
  if (values.url !== undefined) return { TEST_POSTGRES_URL: values.url }
  if (version === undefined) return {}
  const native = installPostgres(version)
  return native === undefined
    ? stop(0, `skipped: npm could not install PostgreSQL ${version}`)
    : { TEST_POSTGRES_NATIVE: native }
}

function choosePooler(): Record<string, string> {
  if (values.pgbouncer === undefined) return {}
  const program = values.pgbouncer === '' ? findPgBouncer() : values.pgbouncer
  if (program === undefined) stop(0, 'skipped: PgBouncer is not installed (Debian has it as the package pgbouncer)')
  return { TEST_PGBOUNCER: program }
}

if (values.citus === true && process.env.CITUS_URL === undefined) {
  stop(0, 'skipped: CITUS_URL is not set; docs/guides/shard-by-account.md tells how to make a cluster')
}

const environment = { ...chooseServer(), ...choosePooler() }
const excluded = [
  ...OTHER_SERVERS,
  ...(values.pgbouncer === undefined ? [] : DIRECT_ONLY),
  ...(values.citus === true ? ONE_SERVER_ONLY : []),
]
const which = filters.length > 0 ? ['run', ...filters] : ['related', ...DATABASES, '--run']
const slower = values.citus === true ? [`--testTimeout=${CITUS_TIMEOUT_MS}`] : []
const long = values.long === true ? ['--mode=long', `--testTimeout=${LONG_TIMEOUT_MS}`] : []
const { status } = spawnSync('vitest', [...which, ...(long.length > 0 ? long : slower)], {
  stdio: 'inherit',
  env: { ...process.env, ...environment, TEST_LEFT_OUT: excluded.join(',') },
})
process.exitCode = status ?? 1
