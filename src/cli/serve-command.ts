import { readFile } from 'node:fs/promises'
import { type Config, ConfigError, configHelp, readConfig } from '../config.ts'
import type { ChainConfig } from '../domain/chains-file.ts'
import { parseChainsFile } from '../domain/parse-chains-file.ts'
import { createLogger } from '../observability/logger.ts'
import type { Command, CommandContext } from './command.ts'
import { EXIT_GOOD } from './run-command-line.ts'
import { serveChains } from './serve-chains.ts'
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
    try {
      if (chains === undefined) await serveDemo(config, context, logger)
      else await serveChains(chains, config, context, logger)
    } catch (error) {
      // Told to stop before it had started; whatever that broke off is no failure.
      if (!context.signal.aborted) throw error
    }
    return EXIT_GOOD
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
