import type { Knex } from 'knex'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import { type Config, readConfig } from '../../config.ts'
import { findChain } from '../../detection/sql/chain-state-repository.ts'
import { verifyChain } from '../../detection/verify/verify-chain.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { listStoredAccounts } from '../../store/proof/check-account.ts'
import {
  type Command,
  type CommandContext,
  EXIT_STOPPED,
  parseAccountName,
  parseBlock,
  UsageError,
} from '../shared/command.ts'
import { chainNamed, findChains, readSetup } from '../shared/read-chains.ts'
import { withNodeLimits } from '../shared/with-detection.ts'
import { STORE_VARIABLES, withAccount } from '../shared/with-store.ts'
import { type DerivedReport, verifyDerived } from '../verify/verify-derived.ts'
import { blockReporter, messageOfStop, type Verified, writeReports } from '../verify/verify-output.ts'

/** `verify`: one line a difference, columns separated by tabs; or one JSON object a line. */
const verifyCommand: Command = {
  path: ['verify'],
  summary:
    'Prove that what is stored is what the chains say. Reads the receipts of all blocks that may hold payments, checks them against the ' +
    'hashes of their blocks, judges their events again, and compares payments, refunds, unmatched events and requests; then what is ' +
    'derived from payments: statistics, the log of changes, the standing of requests. One line a difference: kind, account, transaction ' +
    'or request, event index, field, stored value, value by the chain. The service may run. Exit code 1 when there is a difference, 3 ' +
    'when there is none but something is not provable, 130 when it was stopped: standard output is then empty, and standard error says ' +
    'what was found and how to continue.',
  takes: {
    '[--chain NAME]': 'only this chain, by a name or id (default: all)',
    '[--from BLOCK]': 'the first block (default: the first that is read for payments); needs --chain',
    '[--to BLOCK]': 'the last block (default: the last final one that was read); needs --chain',
    '[--account A]': 'only this account',
    '[--repair]':
      'write what is proven and differs, and recompute what is derived; exit code 0 when all of it could be repaired',
    '[--json]': 'one JSON object for each difference, then one with the totals of each chain',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const range = parseRange(options)
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const chosen = await chooseChains(options.chain, context)
    const isWhole = range.from === undefined && range.to === undefined
    const repairer = options.repair === undefined ? undefined : context.actor
    const work = withAccount(context, name, async (knex, account) => {
      const verified: Verified[] = []
      for (const chain of chosen.verified) {
        const isNew = (await findChain(knex, caip2Of(chain.chainId))) === undefined
        if (isNew && options.chain === undefined) continue
        const startedAt = new Date()
        const report = await verifyOne(knex, chain, { ...chosen, terms: { ...range, account, repairer } }, context)
        verified.push({ report, account: name, to: range.to, startedAt, finishedAt: new Date() })
        if (report.stopped !== undefined) break
      }
      const isStopped = verified.some(({ report }) => report.stopped !== undefined)
      const accounts = account === undefined ? await listStoredAccounts(knex) : [account]
      const differing = new Set(
        verified.flatMap(({ report }) => report.differences.flatMap((each) => each.account ?? [])),
      )
      const derived: DerivedReport | undefined =
        isStopped || !isWhole
          ? undefined
          : await verifyDerived(knex, accounts, { ...context, isRepaired: repairer !== undefined, differing })
      const form = options.json === undefined ? 'TEXT' : 'JSON'
      return writeReports({ verified, derived, account: name, isRepaired: repairer !== undefined }, form, context)
    })
    return work.catch((error: unknown) => {
      if (!context.signal.aborted) throw error
      context.stderr.write(`${messageOfStop(context)} before the first block was read\n`)
      return EXIT_STOPPED
    })
  },
}

export const commands: readonly Command[] = [verifyCommand]

interface Chosen {
  readonly logLevel: Config['logLevel']
  /** Undefined where only what is derived can be compared. */
  readonly chains: ChainDirectory | undefined
  readonly verified: readonly ChainConfig[]
}

/** The chains to verify. Where none are configured, and no demo runs, there is still what is derived. */
async function chooseChains(word: string | undefined, context: CommandContext): Promise<Chosen> {
  const { config } = readConfig(context.environment, context.workingFolder)
  const hasNone = config.chains.kind === 'NONE' || (config.chains.kind === 'DEMO' && config.database.kind === 'URL')
  if (word === undefined && hasNone) {
    context.stderr.write('no chains are configured: only what is derived from payments is compared\n')
    return { logLevel: config.logLevel, chains: undefined, verified: [] }
  }
  const setup = await readSetup(context)
  const chains = await findChains(setup, context)
  const all = chains.configured.filter((chain) => followedContracts(chain).length > 0)
  return { logLevel: setup.config.logLevel, chains, verified: word === undefined ? all : [chainNamed(chains, word)] }
}

type Terms = Pick<Parameters<typeof verifyChain>[0], 'from' | 'to' | 'account' | 'repairer'>

async function verifyOne(
  knex: Knex,
  chain: ChainConfig,
  { logLevel, chains, terms }: Chosen & { terms: Terms },
  context: CommandContext,
) {
  if (chains === undefined) throw new Error('a chain is verified without a chains file')
  const { signal } = context
  const logger = createLogger({ level: logLevel, stream: context.stderr })
  const tokens = createTokenDirectory(chains.configured)
  const onProgress = blockReporter(context, chain)
  return withNodeLimits({ knex, chains, logger }, (limits) =>
    verifyChain({ knex, chain, limits, tokens, ...terms, clock: () => new Date(), logger, signal, onProgress }),
  )
}

function parseRange({ from, to, chain }: Readonly<Record<string, string | undefined>>): { from?: number; to?: number } {
  const range = {
    ...(from === undefined ? {} : { from: parseBlock('from', from) }),
    ...(to === undefined ? {} : { to: parseBlock('to', to) }),
  }
  if (chain === undefined && (from !== undefined || to !== undefined)) {
    throw new UsageError('--from and --to are blocks of one chain: name it with --chain')
  }
  if (range.from === undefined || range.to === undefined || range.from <= range.to) return range
  throw new UsageError(`--from ${range.from} is above --to ${range.to}: give the lower block first`)
}
