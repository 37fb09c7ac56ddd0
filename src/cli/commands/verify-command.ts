import type { Knex } from 'knex'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import { type Config, readConfig } from '../../config.ts'
import { findChain } from '../../detection/sql/chain-state-repository.ts'
import { verifyChain } from '../../detection/verify/verify-chain.ts'
import type { VerifyDifference } from '../../detection/verify/verify-report.ts'
import type { Account } from '../../domain/account.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { checkAccount, type Difference, listStoredAccounts } from '../../store/proof/check-account.ts'
import { repairAccount } from '../../store/proof/repair-account.ts'
import { type Command, type CommandContext, EXIT_STOPPED, everyMs, parseWhole, UsageError } from '../shared/command.ts'
import { chainNamed, findChains, readSetup } from '../shared/read-chains.ts'
import { withNodeLimits } from '../shared/with-detection.ts'
import { STORE_VARIABLES, withSomeAccount } from '../shared/with-store.ts'
import { blockReporter, type DerivedReport, messageOfStop, type Verified, writeReports } from './verify-output.ts'

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
    const name = options.account
    const chosen = await chooseChains(options.chain, context)
    const isWhole = range.from === undefined && range.to === undefined
    const repairer = options.repair === undefined ? undefined : context.actor
    const work = withSomeAccount(context, name, async (knex, account) => {
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
    ...(from === undefined ? {} : { from: parseWhole('from', from) }),
    ...(to === undefined ? {} : { to: parseWhole('to', to) }),
  }
  if (chain === undefined && (from !== undefined || to !== undefined)) {
    throw new UsageError('--from and --to are blocks of one chain: name it with --chain')
  }
  if (range.from === undefined || range.to === undefined || range.from <= range.to) return range
  throw new UsageError(`--from ${range.from} is above --to ${range.to}: give the lower block first`)
}

interface DerivedTerms extends Pick<CommandContext, 'stderr' | 'signal'> {
  readonly isRepaired: boolean
  /** Names of accounts of which blocks differ. */
  readonly differing: ReadonlySet<string>
}

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** Compares, and repairs, what is derived from the payments of accounts: statistics, the log of changes, the standing of requests. */
async function verifyDerived(
  knex: Knex,
  accounts: readonly Account[],
  { stderr, signal, isRepaired, differing }: DerivedTerms,
): Promise<DerivedReport> {
  // What requests come to follows from payments and refunds: while these are wrong, it is not worth a line of its own.
  const isReported = ({ name }: Account, { check }: Difference) =>
    isRepaired || !differing.has(name) || check === 'statistics' || check === 'changes'
  const isDue = everyMs(REPORT_INTERVAL_MS)
  async function check({ id, name }: Account) {
    const found: Difference[] = []
    const counts = await checkAccount(knex, id, {
      signal,
      onProgress(what) {
        if (isDue()) stderr.write(`${name}: ${what}\n`)
      },
      onDifference: (difference) => void found.push(difference),
    })
    return { found, counts }
  }
  const report = {
    accounts: [] as DerivedReport['accounts'][number][],
    differences: [] as VerifyDifference[],
    left: [] as VerifyDifference[],
  }
  for (const account of accounts) {
    const { found, counts } = await check(account)
    const { payments, changes, requests } = counts
    report.accounts.push({ account: account.name, payments: Number(payments), changes: Number(changes), requests })
    report.differences.push(
      ...found.filter((each) => isReported(account, each)).map((each) => toDifference(account, each)),
    )
    if (found.length === 0 || !isRepaired) continue
    await repairAccount(knex, account.id, {
      signal,
      now: new Date(),
      isLogWrong: found.some((each) => each.check === 'changes'),
    })
    const again = await check(account)
    report.left.push(...again.found.map((each) => toDifference(account, each)))
  }
  return report
}

function toDifference({ name }: Account, { check, where, stored, expected }: Difference): VerifyDifference {
  const of = { account: name, stored, chain: expected }
  switch (check) {
    case 'statistics':
      return { kind: 'STATISTICS', field: where, ...of }
    case 'changes':
      return { kind: 'CHANGES', field: where, ...of }
    case 'payment':
      return { kind: 'PAYMENT', paymentId: where, field: 'settled', ...of }
    case 'request':
      return { kind: 'REQUEST', requestId: where, field: 'settled', ...of }
  }
}
