import { create, toJson } from '@bufbuild/protobuf'
import { ChainSchema } from '../../../gen/payments/v1/chain_pb.js'
import { chainToProto } from '../../api/services/operations-handler.ts'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import { checkChain } from '../../detection/check/check-chain.ts'
import type { CheckedFact } from '../../detection/check/checked-node.ts'
import { findTakenBack } from '../../detection/repair/find-taken-back.ts'
import { type ChainState, type ListedChain, listChains } from '../../detection/report/list-chains.ts'
import { ChainFollowedError } from '../../detection/run/followed-chain.ts'
import { countAbove, type FoundAbove, type FoundTransaction } from '../../detection/sql/account-rows-repository.ts'
import { findChain, type StoredChain } from '../../detection/sql/chain-state-repository.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { createDatabaseClock } from '../../postgres/database-clock.ts'
import { CHAIN_LEASE_MS } from '../../store/leases-repository.ts'
import {
  type Command,
  type CommandContext,
  counted,
  EXIT_FAILED,
  EXIT_FAILING,
  EXIT_GOOD,
  EXIT_NOT_FOLLOWED,
  EXIT_UNDECIDED,
  isTerminal,
  parseWhole,
} from '../shared/command.ts'
import { chainNamed, chainsOrDemo, findChains, readSetup, requireChains } from '../shared/read-chains.ts'
import { withDetection } from '../shared/with-detection.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'
import { drawChains } from './chains-table.ts'

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
    const block = parseWhole('from', options.from)
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

/** `chains status`: in a terminal a table; otherwise one JSON document. */
const chainsStatus: Command = {
  path: ['chains', 'status'],
  summary:
    'Show how each chain is followed: lag, heights, reorgs, back-fill, nodes, what is wrong. In a terminal a table, otherwise one ' +
    'JSON document, as GET /v1/chains gives it. Exit code 1 when a chain is stopped by an alarm, else 4 when ' +
    'no process follows one, else 5 when one is failing; 3 when the database cannot be read.',
  exitWhenThrown: EXIT_UNDECIDED,
  takes: {
    '[--chain NAME]': 'only this chain, by a name or id',
    '[--json]': 'one JSON document, also in a terminal',
    '[--table]': 'the table, also outside a terminal: `watch npm run -s waybill -- chains status --table`',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const known = await chainsOrDemo(await readSetup(context))
    const chosen = options.chain === undefined ? known : [chainNamed(createChainDirectory(known), options.chain)]
    const isTable = options['table'] !== undefined || (options['json'] === undefined && isTerminal(context.stdout))
    return withStore(context, async (knex) => {
      const clock = createDatabaseClock(knex)
      await clock.measure()
      const shown = await listChains(knex, chosen, { now: clock.now() })
      if (isTable) showTable(shown, context)
      else showJson(shown, context)
      return exitCodeOf(shown)
    })
  },
}

function showTable(shown: readonly ListedChain[], { stdout }: CommandContext): void {
  for (const line of drawChains(shown, new Date(), stdout)) stdout.write(`${line}\n`)
}

function showJson(shown: readonly ListedChain[], { stdout }: CommandContext): void {
  const now = new Date()
  const chains = shown.map((chain) =>
    toJson(ChainSchema, create(ChainSchema, chainToProto(chain, true, now)), { alwaysEmitImplicit: true }),
  )
  stdout.write(`${JSON.stringify({ chains }, undefined, 2)}\n`)
}

/** The states for which somebody has to act, the worst first. */
const exitCodes: readonly (readonly [ChainState, number])[] = [
  ['STOPPED', EXIT_FAILED],
  ['NOT_FOLLOWED', EXIT_NOT_FOLLOWED],
  ['FAILING', EXIT_FAILING],
]

function exitCodeOf(shown: readonly ListedChain[]): number {
  const worst = exitCodes.find(([bad]) => shown.some(({ state }) => state === bad))
  return worst?.[1] ?? EXIT_GOOD
}

export const commands: readonly Command[] = [chainsStatus, chainsCheck, chainsRestart]
