import type { Knex } from 'knex'
import type { Config } from '../../config.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Telemetry } from '../../domain/telemetry/telemetry.ts'
import { checkDatabase, placeOf } from '../../postgres/check-database.ts'
import { startEmbeddedServer } from '../../postgres/embedded/embedded-server.ts'
import { createDatabase, type DatabaseConnection, type DatabaseOptions } from '../../postgres/knex.ts'
import { watchLocks } from '../../postgres/lock-watch.ts'
import { requireMigratable } from '../../postgres/migrations/applied-migrations.ts'
import { migrate } from '../../postgres/migrations/migrate.ts'
import type { MigrationReport } from '../../postgres/migrations/migration-report.ts'
import { createReadPools, type ReadPools } from '../../postgres/replicas/read-pools.ts'
import { type WorkerWatch, watchWorkers } from '../../postgres/sharding/lost-workers.ts'
import { tellCluster } from '../../postgres/sharding/read-cluster.ts'
import { watchStatements } from '../../postgres/watch-statements.ts'
import { dropLeases } from '../../store/leases-repository.ts'
import type { CommandContext } from '../shared/command.ts'

/** The database of a service. */
interface OpenStore {
  readonly knex: Knex
  /** Present when the configuration names replicas. */
  readonly readPools?: ReadPools
  /** Present on a cluster that is spread over several servers. */
  readonly lostServers?: WorkerWatch | undefined
  /** Resolves when an embedded database server has ended and will not restart; never for another database. */
  readonly failed: Promise<Error>
}

/** Longer than the longest deadline of a call: a last resort against abandoned statements. */
const STATEMENT_TIMEOUT_MS = 60_000

/** What a store is opened with. */
interface StoreOptions {
  /** Closes what was opened. */
  readonly stack: AsyncDisposableStack
  readonly logger: Logger
  readonly telemetry: Telemetry
  /** Called when an embedded server's process runs; never for another database. */
  readonly onLaunched?: () => void
}

/** Opens the service's pool on the configured or the embedded database server, and migrates. */
export async function openStore(
  config: Config,
  { signal }: CommandContext,
  { stack, logger, telemetry, onLaunched }: StoreOptions,
): Promise<OpenStore> {
  const watch = watchStatements(telemetry)
  const options = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, poolMax: config.databaseConnections, logger, watch }
  const report: MigrationReport = {
    waits: (waiting) => logger.warn(waiting, 'a step of the schema waits and is tried again'),
    builds: (building) => logger.info(building, 'an index is built'),
  }
  if (config.database.kind === 'URL') {
    const { url, replicaUrls, maxPrepared } = config.database
    const ofUrl = { ...options, maxPrepared }
    const knex = stack.adopt(createDatabase(url, ofUrl), (pool) => pool.destroy())
    await checkDatabase(knex, url, logger)
    await requireMigratable(knex)
    await migrate(knex, { report, signal })
    openLockWatch(knex, url, ofUrl, stack)
    const lostServers = (await tellCluster(knex, logger)) ? openWorkerWatch(url, ofUrl, stack) : undefined
    const failed = new Promise<Error>(() => {})
    if (replicaUrls.length === 0) return { knex, lostServers, failed }
    const readPools = stack.adopt(openReadPools(knex, replicaUrls, ofUrl), (pools) => pools.stop())
    return { knex, readPools, lostServers, failed }
  }
  const server = await startEmbeddedServer({ dataDir: config.dataDir, logger, signal, onLaunched })
  stack.defer(() => server.stop())
  const knex = stack.adopt(createDatabase(server.connection(), options), (pool) => pool.destroy())
  await migrate(knex, { report, signal })
  openLockWatch(knex, server.connection(), options, stack)
  // Only this process uses the folder, so the holder of any stored lease is dead.
  await dropLeases(knex)
  let isUp = 1
  void server.exited.then(() => {
    isUp = 0
  })
  telemetry.meter?.observe([EMBEDDED_UP], () => [[EMBEDDED_UP.name, isUp]])
  return {
    knex,
    failed: server.exited.then((exit) => new Error(`the embedded PostgreSQL has ended (${exit.signal ?? exit.code})`)),
  }
}

const EMBEDDED_UP = { name: 'waybill_embedded_database_up', help: '1 while the embedded PostgreSQL runs.' }

/** Enough for a look at each of some workers, and for those that hang and are being cancelled. */
const WATCH_CONNECTIONS = 4

function openWorkerWatch(
  url: string,
  options: DatabaseOptions & { readonly logger: Logger },
  stack: AsyncDisposableStack,
): WorkerWatch {
  const knex = createDatabase(url, { ...options, poolMax: WATCH_CONNECTIONS, applicationName: 'waybill worker watch' })
  const watch = watchWorkers(knex, options.logger)
  stack.defer(() => watch.stop())
  watch.start()
  return watch
}

function openLockWatch(
  knex: Knex,
  connection: DatabaseConnection,
  options: DatabaseOptions & { readonly logger: Logger },
  stack: AsyncDisposableStack,
): void {
  const ownKnex = createDatabase(connection, { ...options, poolMax: 1, applicationName: 'waybill lock watch' })
  const watch = watchLocks({ knex, ownKnex, logger: options.logger })
  stack.defer(() => watch.stop())
}

/** Short: when a replica is busy, the call goes to the primary instead of waiting. */
const REPLICA_ACQUIRE_TIMEOUT_MS = 1_000

/** The start does not wait for replicas; they are used once they are reachable. */
function openReadPools(
  primary: Knex,
  urls: readonly string[],
  options: DatabaseOptions & { readonly logger: Logger },
): ReadPools {
  const pools = createReadPools({
    primary,
    replicas: urls.map((url) => ({ name: placeOf(url), connection: url })),
    database: { ...options, acquireTimeoutMs: REPLICA_ACQUIRE_TIMEOUT_MS },
    logger: options.logger,
    monotonicMs: () => performance.now(),
  })
  void pools.start()
  return pools
}
