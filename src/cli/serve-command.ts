import { readFile } from 'node:fs/promises'
import { composeService } from '../app.ts'
import { type Config, ConfigError, configHelp, readConfig } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import type { ChainConfig } from '../domain/chains-file.ts'
import type { Logger } from '../domain/logger.ts'
import { parseChainsFile } from '../domain/parse-chains-file.ts'
import { createLogger } from '../observability/logger.ts'
import type { Command, CommandContext } from './command.ts'
import { openStore } from './open-store.ts'
import { EXIT_FAILED, EXIT_GOOD } from './run-command-line.ts'
import { runUntilStopped } from './run-until-stopped.ts'
import { serveDemo } from './serve-demo.ts'

/** `serve`: runs until it is told to stop. */
export const serveCommand: Command = {
  path: ['serve'],
  summary: 'Serve gRPC, gRPC-Web, Connect and JSON on one port. Without DATABASE_URL and CHAINS_FILE it is a demo.',
  environment: configHelp.map(([name]) => name),
  async run(_, context) {
    const config = readConfig(context.environment, context.workingFolder)
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const chains = await readChains(config, context)
    const failed = await (chains === undefined ? serveDemo : serveChains(chains))(config, context, logger)
    return failed ? EXIT_FAILED : EXIT_GOOD
  },
}

/** Nothing for the demo, whose chains are made as it starts. */
async function readChains(
  config: Config,
  { environment }: CommandContext,
): Promise<readonly ChainConfig[] | undefined> {
  if (config.chains.kind === 'DEMO') return undefined
  if (config.chains.kind === 'NONE') return []
  const { path } = config.chains
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new ConfigError([`CHAINS_FILE cannot be read: ${error.message}`])
  })
  const parsed = parseChainsFile(text, environment)
  if (!parsed.ok) throw new ConfigError(parsed.faults.map((fault) => `CHAINS_FILE ${path}: ${fault}`))
  return parsed.chains
}

function serveChains(chains: readonly ChainConfig[]) {
  return async (config: Config, context: CommandContext, logger: Logger): Promise<boolean> => {
    await using stack = new AsyncDisposableStack()
    const store = await openStore(config, context, stack, logger)
    const { knex } = store
    await migrate(knex)
    const service = await composeService({ knex, chains, logger, now: () => new Date() })
    service.detection.start()
    stack.defer(() => service.detection.stop())
    const listener = await service.listen(config)
    context.stdout.write(`Waybill serves ${chains.length} chains on ${listener.url}\n`)
    return await runUntilStopped({ listener, signal: context.signal, logger, failures: [store.failed] })
  }
}
