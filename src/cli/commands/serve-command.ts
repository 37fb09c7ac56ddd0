import { configHelp } from '../../config.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { readTls } from '../serve/listen.ts'
import { type Command, EXIT_GOOD } from '../shared/command.ts'
import { readSetup } from '../shared/read-chains.ts'

/** `serve`: runs until it is stopped. */
const serveCommand: Command = {
  path: ['serve'],
  summary: 'Serve gRPC, gRPC-Web, Connect and JSON on one port. Without DATABASE_URL and CHAINS_FILE it is a demo.',
  environment: configHelp.map(([name]) => name),
  async run(_, context) {
    // The certificate is read here too, so that a fault is reported before the database starts.
    const { config, chains } = await readSetup(context, (configured) => readTls(configured, new Date()))
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    try {
      if (chains === undefined) {
        const { serveDemo } = await import('../serve/serve-demo.ts')
        await serveDemo(config, context, logger)
      } else {
        const { serveChains } = await import('../serve/serve-chains.ts')
        await serveChains(chains, config, context, logger)
      }
    } catch (error) {
      // Stopped during the start: an interrupted step is not a failure.
      if (!context.signal.aborted) throw error
    }
    return EXIT_GOOD
  },
}

export const commands: readonly Command[] = [serveCommand]
