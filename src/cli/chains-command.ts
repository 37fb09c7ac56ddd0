import { readConfig } from '../config.ts'
import { ChainFollowedError } from '../detection/chain-follower.ts'
import { createDetection } from '../detection/detection.ts'
import { createDetectionRepository, type StoredChain } from '../detection/detection-repository.ts'
import { countAbove, type FoundAbove } from '../detection/restart-repository.ts'
import { caip2Of } from '../domain/chain.ts'
import { createTokenDirectory } from '../domain/currency.ts'
import { createLogger } from '../observability/logger.ts'
import { type Command, UsageError } from './command.ts'
import { chainNamed, requireChains } from './read-chains.ts'
import { EXIT_GOOD } from './run-command-line.ts'
import { STORE_VARIABLES, withStore } from './with-store.ts'

/** `chains restart NAME --from BLOCK`: what it does on standard error. */
export const chainsRestart: Command = {
  path: ['chains', 'restart'],
  summary:
    'Forget what was found on a chain above a block, final or not, and have the chain read anew from there: the repair of one that ' +
    'stopped because a final block was taken back. The service must be stopped.',
  positionals: [{ name: 'NAME', help: 'the chain, by a name or id' }],
  options: [
    {
      name: 'from',
      value: 'BLOCK',
      help: 'the last block that is kept: one that both branches share, and lower is safe, only slower',
      required: true,
    },
  ],
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ positionals: [word = ''], options }, context) {
    const block = parseBlock(options.from)
    const config = readConfig(context.environment, context.workingFolder)
    const chains = await requireChains(config, context)
    const { name, chainId } = chainNamed(chains, word)
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const say = (text: string) => void context.stderr.write(`${text}\n`)
    await withStore(config, context, async (knex) => {
      const stored = await createDetectionRepository(knex).chain(caip2Of(chainId))
      if (stored === undefined) return say(`nothing of ${name} is stored yet; the service reads it from its beginning`)
      say(explainRestart(stored, block, await countAbove(knex, stored.chainId, block)))
      const tokens = createTokenDirectory(chains.configured)
      const detection = createDetection({ knex, chains, tokens, logger, clock: () => new Date() })
      await detection.restartFrom(name, block).catch(explainFollowed)
      say(`done: the service reads ${name} from block ${block + 1} on when it is started`)
    })
    return EXIT_GOOD
  },
}

function parseBlock(text = ''): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`--from is "${text}", which is no block: use a whole number`)
}

function explainRestart({ network, scannedBlock, finalBlock, alarm }: StoredChain, block: number, found: FoundAbove) {
  const stopped = alarm === undefined ? '' : ` It was stopped: ${alarm}.`
  return (
    `${network} was read up to block ${scannedBlock}, of which final up to ${finalBlock}.${stopped}\n` +
    `Forgetting what was found above block ${block}: ${counted(found.payments, 'payment')} and ` +
    `${counted(found.refunds, 'refund')}. What the chain still has comes back under the same ids when it is read anew. ` +
    'Requests stay, and what was imported.'
  )
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function explainFollowed(error: unknown): never {
  if (!(error instanceof ChainFollowedError)) throw error
  throw new Error(
    `${error.message}; nothing was changed. Stop every process of the service on this database first; one that was killed ` +
      'keeps its chains for 30 seconds',
  )
}
