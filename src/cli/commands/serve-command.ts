import { type Config, configHelp } from '../../config.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { announceStart, openTelemetry } from '../serve/announce.ts'
import { readTls } from '../serve/listen.ts'
import { type Command, type CommandContext, EXIT_GOOD, isTerminal } from '../shared/command.ts'
import { readSetup } from '../shared/read-chains.ts'

/** `serve`: runs until it is stopped. */
const serveCommand: Command = {
  path: ['serve'],
  summary: 'Serve gRPC, gRPC-Web, Connect and JSON on one port. Without DATABASE_URL and CHAINS_FILE it is a demo.',
  takes: { '[--quiet]': 'of a demo, write its URL alone to standard output' },
  environment: configHelp.map(([name]) => name),
  isService: true,
  async run({ options }, context) {
    // The certificate is read here too, so that a fault is reported before the database starts.
    const { config, chains } = await readSetup(context, (configured) => readTls(configured, new Date()))
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    announceStart(config, logger)
    const { telemetry, stop } = await openTelemetry(config, logger)
    try {
      if (chains === undefined) {
        const { serveDemo } = await import('../serve/serve-demo.ts')
        const isQuiet = options.quiet !== undefined
        await serveDemo(showFewCalls(config, context), context, { logger, telemetry, isQuiet })
      } else {
        const { serveChains } = await import('../serve/serve-chains.ts')
        await serveChains(chains, config, context, { logger, telemetry })
      }
    } catch (error) {
      // Stopped during the start: an interrupted step is not a failure.
      if (!context.signal.aborted) throw error
    } finally {
      await stop()
    }
    logger.info({}, 'stopped')
    return EXIT_GOOD
  },
}

/** In a terminal, a line for each call would push away the links that the demo prints. */
function showFewCalls(config: Config, { stderr }: CommandContext): Config {
  return isTerminal(stderr) ? { ...config, loggedCalls: config.loggedCalls ?? 'FAILED' } : config
}

export const commands: readonly Command[] = [serveCommand]
