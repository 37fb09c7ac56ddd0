import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Config } from '../../config.ts'
import { createDatabaseClock } from '../../postgres/database-clock.ts'
import type { CommandContext } from '../shared/command.ts'
import { stampDataFolder } from '../shared/stamp-data-folder.ts'
import type { ServeTools } from './announce.ts'
import { listen, runUntilStopped } from './listen.ts'
import { openStore } from './open-store.ts'

/** Serves the chains of a chains file; with none, only search. */
export async function serveChains(
  chains: readonly ChainConfig[],
  config: Config,
  context: CommandContext,
  { logger, telemetry }: ServeTools,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  if (config.database.kind === 'EMBEDDED') await stampDataFolder(config.dataDir, 'service')
  // While modules load, nothing else is looked at, so a connection that is being opened times out on a slow machine. An embedded database has
  // to start first.
  const loaded = config.database.kind === 'URL' ? await loadApp() : undefined
  const [{ knex, readPools, lostServers, failed }, { composeService }] = await Promise.all([
    openStore(config, context, { stack, logger, telemetry }),
    loaded ?? loadApp(),
  ])
  const { lifi, webhooksAllowPrivate } = config
  const databaseClock = createDatabaseClock(knex, logger)
  await databaseClock.measure()
  const { now } = databaseClock
  const service = await composeService({
    knex,
    readPools,
    lostServers,
    lifi,
    chains,
    logger,
    now,
    databaseClock,
    telemetry,
    webhooksAllowPrivate,
  })
  service.detection.start()
  stack.defer(() => service.detection.stop())
  // Nobody is sent to a mistyped address; a node that does not answer now is compared once it does.
  await service.compareChains(AbortSignal.any([context.signal, AbortSignal.timeout(COMPARED_WITHIN_MS)]))
  service.background.start()
  stack.defer(() => service.background.stop())
  const listener = await listen(service, config, { logger, meter: telemetry.meter })
  void service.learnNodes(context.signal)
  const names = chains.length === 0 ? 'no chains, search only' : chains.map(({ name }) => name).join(', ')
  context.stdout.write(`Waybill on ${listener.url}: ${names}\n`)
  await runUntilStopped({ listener, context, delayMs: config.shutdownDelayMs, logger, failures: [failed] })
}

/** How long the first answer waits for slow nodes. */
const COMPARED_WITHIN_MS = 3_000

const loadApp = () => import('../../app.ts')
