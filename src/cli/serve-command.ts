import { configHelp, readConfig } from '../config.ts'
import { createLogger } from '../observability/logger.ts'
import type { Command } from './command.ts'
import { readChains } from './read-chains.ts'
import { readTls } from './read-tls.ts'
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
    // Said at once, and not after the database has started.
    await readTls(config, new Date())
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
