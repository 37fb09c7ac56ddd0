import type { Knex } from 'knex'
import { followedContracts } from '../../chains/chains-file.ts'
import type { RecheckChange } from '../../detection/repair/describe-changes.ts'
import type { RecheckStep } from '../../detection/repair/recheck.ts'
import { findRulesStart } from '../../detection/sql/recheck-repository.ts'
import { parseDateBound } from '../../domain/date-bound.ts'
import { parseRequestId } from '../../domain/payment-reference.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { listStoredAccounts } from '../../store/proof/check-account.ts'
import { parseAccountName } from '../account-option.ts'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { findAccount } from '../find-account.ts'
import { withNodeLimits } from '../keep-limits.ts'
import { openDetection } from '../open-detection.ts'
import { chainNamed, findChains, readSetup } from '../read-chains.ts'
import { EXIT_FAILED, EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** `chains recheck`: one line a change, columns separated by tabs. */
export const chainsRecheck: Command = {
  path: ['chains', 'recheck'],
  summary:
    'Apply the present rules to payments, refunds and unmatched events that older rules have judged, and correct who paid and what is ' +
    'a refund. Reads their transactions, not whole chains. One line a change: account, chain, request, kind, id, change. The service ' +
    'may run. Exit code 1 when a transaction could not be read.',
  options: [
    { name: 'chain', value: 'NAME', help: 'only this chain, by a name or id' },
    { name: 'account', value: 'A', help: 'only this account' },
    {
      name: 'before',
      value: 'TIME',
      help: 'only payments and refunds in blocks before this time (default: when the rules changed)',
    },
    {
      name: 'after',
      value: 'REQUEST',
      help: 'continue after this request id, where an earlier run stopped; needs --account and --chain',
    },
    { name: 'dry-run', help: 'change nothing, only show what would change' },
  ],
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const given = options.before === undefined ? undefined : parseBefore(options.before)
    const after = options.after === undefined ? '' : parseAfter(options)
    const setup = await readSetup(context)
    const { config } = setup
    const chains = await findChains(setup, context)
    const chosen = options.chain === undefined ? chains.configured : [chainNamed(chains, options.chain)]
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const isTrial = options['dry-run'] !== undefined
    const recheck = async (knex: Knex, limits: NodeLimits): Promise<number> => {
      const accounts = name === undefined ? await listStoredAccounts(knex) : [await findAccount(knex, name, context)]
      const before = given ?? (await findRulesStart(knex))
      const detection = openDetection({ knex, chains, logger, limits })
      let isAllRead = true
      for (const account of accounts) {
        if (account === undefined) return EXIT_FAILED
        for (const { name: network } of chosen.filter((chain) => followedContracts(chain).length > 0)) {
          const terms = { accountId: account.id, before, after, isTrial, signal: context.signal }
          const output = { ...context, title: `${account.name} on ${network}` }
          const lineOf = ({ requestId, what, id, change }: RecheckChange) =>
            [account.name, network, requestId, what, id, change].join('\t')
          isAllRead = (await reportRecheck(detection.recheck(network, terms), lineOf, output)) && isAllRead
        }
      }
      if (isTrial) context.stderr.write('nothing was changed\n')
      return isAllRead ? EXIT_GOOD : EXIT_FAILED
    }
    return withStore(config, context, (knex) =>
      withNodeLimits({ knex, chains, logger }, (limits) => recheck(knex, limits)),
    )
  },
}

/** @returns whether every transaction could be read */
async function reportRecheck(
  steps: AsyncIterable<RecheckStep>,
  lineOf: (change: RecheckChange) => string,
  { stdout, stderr, title }: Pick<CommandContext, 'stdout' | 'stderr'> & { readonly title: string },
): Promise<boolean> {
  const sum = { requests: 0, transactions: 0, unread: 0, changes: 0 }
  let last = ''
  let reportedMs = performance.now()
  const totals = () =>
    `${title}: ${count(sum.requests, 'request')}, ${count(sum.transactions, 'transaction')} read, ${count(sum.changes, 'change')}`
  try {
    for await (const step of steps) {
      last = step.requestId
      sum.requests += step.requests
      sum.transactions += step.transactions
      sum.unread += step.unread.length
      sum.changes += step.changes.length
      for (const change of step.changes) await writeFully(stdout, `${lineOf(change)}\n`)
      for (const txHash of step.unread)
        stderr.write(`${title}: transaction ${txHash} is no longer on the chain or could not be read\n`)
      if (performance.now() - reportedMs < REPORT_INTERVAL_MS) continue
      reportedMs = performance.now()
      stderr.write(`${totals()}, up to request ${last}\n`)
    }
  } catch (error) {
    const remedy = last === '' ? 'run it again' : `continue with --after ${last}`
    throw new Error(`${totals()}; it stopped early: ${remedy}`, { cause: error })
  }
  stderr.write(`${totals()}\n`)
  return sum.unread === 0
}

function parseBefore(text: string): Date {
  const parsed = parseDateBound(text)
  if (parsed.ok) return new Date(parsed.atMs)
  throw new UsageError(`--before is "${text}", which is not a time: ${parsed.detail}`)
}

/** Requests are read in order within one account on one chain, so a place in that order needs both. */
function parseAfter({ after = '', account, chain }: Readonly<Record<string, string | undefined>>): string {
  const requestId = parseRequestId(after)
  if (requestId === undefined) throw new UsageError(`--after is "${after}", which is not a request id`)
  if (account !== undefined && chain !== undefined) return requestId
  throw new UsageError('--after continues in one account on one chain: give --account and --chain as well')
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}
