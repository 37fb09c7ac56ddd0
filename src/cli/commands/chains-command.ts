import { checkChain } from '../../detection/check/check-chain.ts'
import type { CheckedFact } from '../../detection/check/checked-fact.ts'
import { findTakenBack } from '../../detection/repair/find-taken-back.ts'
import { ChainFollowedError } from '../../detection/run/chain-lease.ts'
import { findChain, type StoredChain } from '../../detection/sql/chain-state-repository.ts'
import { countAbove, type FoundAbove, type FoundTransaction } from '../../detection/sql/restart-repository.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { CHAIN_LEASE_MS } from '../../store/leases-repository.ts'
import { type Command, counted, EXIT_FAILED, EXIT_GOOD, parseBlock } from '../shared/command.ts'
import { chainNamed, findChains, readSetup, requireChains } from '../shared/read-chains.ts'
import { withDetection } from '../shared/with-detection.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'
import { chainsStatus } from './chains-status-command.ts'

/** `chains check`: one line a fact, columns separated by tabs. */
const chainsCheck: Command = {
  path: ['chains', 'check'],
  summary:
    'Compare the chains file with what its nodes answer, one line a fact: chain, node, check, subject, verdict (ok, note, unknown, wrong), ' +
    'details. Exit code 1 when something is wrong.',
  takes: { '[--chain NAME]': 'only this chain, by a name or id' },
  environment: ['CHAINS_FILE'],
  async run({ options }, context) {
    const chains = await findChains(await readSetup(context), context)
    const chosen = options.chain === undefined ? chains.configured : [chainNamed(chains, options.chain)]
    const terms = { clock: () => new Date(), signal: context.signal }
    const checked = await Promise.all(chosen.map(async (config) => ({ config, urls: await checkChain(config, terms) })))
    let isWrong = false
    for (const { config, urls } of checked) {
      for (const { node, facts } of urls) {
        for (const { check, subject, verdict, detail } of facts) {
          context.stdout.write(`${[config.name, node, check, subject, verdict, oneLine(detail)].join('\t')}\n`)
        }
        context.stderr.write(`${config.name} at ${node}: ${tally(facts)}\n`)
        isWrong ||= facts.some(({ verdict }) => verdict === 'wrong')
      }
    }
    return isWrong ? EXIT_FAILED : EXIT_GOOD
  },
}

/** Details contain text from nodes, which may hold line breaks and control characters. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, ' ').slice(0, 300)
}

function tally(facts: readonly CheckedFact[]): string {
  return (['ok', 'note', 'unknown', 'wrong'] as const)
    .map((verdict) => `${facts.filter((fact) => fact.verdict === verdict).length} ${verdict}`)
    .join(', ')
}

/** `chains restart NAME --from BLOCK`: reports on standard error. */
const chainsRestart: Command = {
  path: ['chains', 'restart'],
  summary:
    'Delete the payments and refunds that were found on a chain above a block, final or not, and read the chain again from there. ' +
    'Repairs a chain that stopped because a reorg removed a final block. Stop the service first.',
  takes: {
    NAME: 'the chain, by a name or id',
    '--from BLOCK': 'the last block to keep, one that both branches share; a lower one is safe but takes longer',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ positionals: [word = ''], options }, context) {
    const block = parseBlock('from', options.from)
    const setup = await readSetup(context)
    const { config } = setup
    const chains = requireChains(setup)
    const chain = chainNamed(chains, word)
    const { name, chainId } = chain
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const say = (text: string) => void context.stderr.write(`${text}\n`)
    await withStore(context, async (knex) => {
      const stored = await findChain(knex, caip2Of(chainId))
      if (stored === undefined)
        return say(`nothing of ${name} is stored yet; the service reads it from its first block`)
      const clock = () => new Date()
      let found: FoundAbove = { payments: 0, refunds: 0 }
      // Counted while this process holds the chain's lease, and reported after the deletion.
      const count = async () => {
        found = await countAbove(knex, stored.chainId, block)
      }
      await withDetection({ knex, chains, logger }, async (detection, limits) => {
        refuseTakenBack(name, await findTakenBack({ knex, config: chain, limits, clock }, block))
        await detection.restartFrom(name, block, count).catch(explainFollowed)
      })
      say(explainRestart(stored, block, found))
      say(`done: the service reads ${name} from block ${block + 1} when it starts`)
    })
    return EXIT_GOOD
  },
}

export const commands: readonly Command[] = [chainsStatus, chainsCheck, chainsRestart]

/** Kept blocks are never read again, so a payment in one that the chain has removed would stay for ever. */
function refuseTakenBack(name: string, found: FoundTransaction | undefined): void {
  if (found === undefined) return
  throw new Error(
    `${name} no longer has the transaction ${found.txHash} in block ${found.blockNumber}, where a payment or refund was found; ` +
      'nothing was changed. Choose a lower block, one that both branches share',
  )
}

function explainRestart({ network, scannedBlock, finalBlock, alarm }: StoredChain, block: number, found: FoundAbove) {
  const stopped = alarm === undefined ? '' : ` It was stopped: ${alarm}.`
  return (
    `${network} was read up to block ${scannedBlock}, of which final up to ${finalBlock}.${stopped}\n` +
    `Deleted what was found above block ${block}: ${counted(found.payments, 'payment')} and ` +
    `${counted(found.refunds, 'refund')}. Those that the chain still has return with the same ids when it is read again. ` +
    'Requests and imported payments stay.'
  )
}

function explainFollowed(error: unknown): never {
  if (!(error instanceof ChainFollowedError)) throw error
  throw new Error(
    `${error.message}; nothing was changed. Stop every process of the service on this database first; one that was killed ` +
      `keeps its chains for ${CHAIN_LEASE_MS / 1_000} seconds`,
  )
}
