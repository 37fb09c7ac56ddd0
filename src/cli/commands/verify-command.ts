import type { ChainConfig } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import { describeDuration } from '../../detection/backfill/backfill-progress.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { verifyChain } from '../../verify/verify-chain.ts'
import type { VerifyDifference, VerifyProgress, VerifyReport, VerifyTotal } from '../../verify/verify-report.ts'
import { parseAccountName } from '../account-option.ts'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { findAccount } from '../find-account.ts'
import { withNodeLimits } from '../keep-limits.ts'
import { chainNamed, findChains, readSetup } from '../read-chains.ts'
import { EXIT_FAILED, EXIT_GOOD, EXIT_STOPPED, EXIT_UNDECIDED } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** `verify`: one line a difference, columns separated by tabs; or one JSON object a line. */
export const verifyCommand: Command = {
  path: ['verify'],
  summary:
    'Prove that the payments, refunds, unmatched events and settled requests of a chain are what its blocks say. Reads the receipts of ' +
    'all blocks that may hold such events, checks them against the hashes of their blocks, and judges them by its own rules. One line a ' +
    'difference: kind, account, transaction or request, event index, field, stored value, value by the chain. Changes nothing; the ' +
    'service may run. Exit code 1 when there is a difference, 3 when there is none but something is not provable, 130 when it was ' +
    'stopped: standard output is then empty, and standard error says what was found and how to continue.',
  options: [
    { name: 'chain', value: 'NAME', help: 'the chain, by a name or id', required: true },
    { name: 'from', value: 'BLOCK', help: 'the first block (default: the first that is read for payments)' },
    { name: 'to', value: 'BLOCK', help: 'the last block (default: the last final one that was read)' },
    { name: 'account', value: 'A', help: 'only this account' },
    { name: 'json', help: 'one JSON object for each difference, then one with the totals' },
  ],
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const range = parseRange(options)
    const name = options.account === undefined ? undefined : parseAccountName(options.account)
    const setup = await readSetup(context)
    const { config } = setup
    const chains = await findChains(setup, context)
    const chain = chainNamed(chains, options.chain ?? '')
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const work = withStore(config, context, async (knex) => {
      const account = name === undefined ? undefined : await findAccount(knex, name, context)
      if (name !== undefined && account === undefined) return EXIT_FAILED
      const startedAt = new Date()
      const report = await withNodeLimits({ knex, chains, logger }, (limits) =>
        verifyChain({
          knex,
          chain,
          limits,
          tokens: createTokenDirectory(chains.configured),
          ...range,
          account,
          clock: () => new Date(),
          logger,
          signal: context.signal,
          onProgress: reporter(context, chain),
        }),
      )
      const form = options.json === undefined ? 'TEXT' : 'JSON'
      return writeReport({ report, account: name, to: range.to, startedAt, finishedAt: new Date() }, form, context)
    })
    return work.catch((error: unknown) => {
      if (!context.signal.aborted) throw error
      context.stderr.write(`${messageOfStop(context)} before the first block was read\n`)
      return EXIT_STOPPED
    })
  },
}

/** A report, and how it was asked for. */
interface Verified {
  readonly report: VerifyReport
  /** Name of the only account that was compared. */
  readonly account?: string | undefined
  /** The last block that was asked for. */
  readonly to?: number | undefined
  readonly startedAt: Date
  readonly finishedAt: Date
}

/** @returns the exit code */
async function writeReport(verified: Verified, form: 'TEXT' | 'JSON', context: CommandContext): Promise<number> {
  const { stdout, stderr } = context
  const { report } = verified
  // Standard output stays empty, so that nobody takes part of a report for the whole.
  if (report.stopped !== undefined) {
    await writeFully(stderr, describeStop(verified, context))
    return EXIT_STOPPED
  }
  for (const difference of report.differences) {
    await writeFully(stdout, `${form === 'JSON' ? JSON.stringify(difference) : lineOf(difference)}\n`)
  }
  if (form === 'JSON') await writeFully(stdout, `${JSON.stringify(summaryOf(verified))}\n`)
  await writeFully(stderr, describe(verified))
  if (report.differences.length > 0) return EXIT_FAILED
  return isDecided(report) ? EXIT_GOOD : EXIT_UNDECIDED
}

function messageOfStop({ signal }: Pick<CommandContext, 'signal'>): string {
  return signal.reason instanceof Error ? signal.reason.message : 'stopped'
}

function parseRange({ from, to }: Readonly<Record<string, string | undefined>>): { from?: number; to?: number } {
  const range = {
    ...(from === undefined ? {} : { from: parseBlock('from', from) }),
    ...(to === undefined ? {} : { to: parseBlock('to', to) }),
  }
  if (range.from === undefined || range.to === undefined || range.from <= range.to) return range
  throw new UsageError(`--from ${range.from} is above --to ${range.to}: give the lower block first`)
}

function parseBlock(option: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new UsageError(`--${option} is "${text}", which is not a block number: use a whole number`)
}

/** Whether nothing is left that is not provable. */
function isDecided({ unproven }: VerifyReport): boolean {
  return unproven.every(({ isInfo }) => isInfo)
}

function reporter({ stderr }: Pick<CommandContext, 'stderr'>, { name }: ChainConfig) {
  const startMs = performance.now()
  let reportedMs = startMs
  return ({ blocksDone, blocksTotal, events, differences }: VerifyProgress): void => {
    const nowMs = performance.now()
    if (nowMs - reportedMs < REPORT_INTERVAL_MS) return
    reportedMs = nowMs
    const perSecond = blocksDone / ((nowMs - startMs) / 1_000)
    const left = describeDuration((blocksTotal - blocksDone) / perSecond)
    const found = differences === 0 ? '' : `, ${number(differences)} differences so far`
    stderr.write(
      `${name}: ${number(blocksDone)} of ${number(blocksTotal)} blocks, ${number(Math.round(perSecond))} a second, ${left} left, ${number(events)} events${found}\n`,
    )
  }
}

function lineOf(difference: VerifyDifference): string {
  const { kind, account = '-', txHash, requestId, eventIndex = '-', field, stored = '-', chain = '-' } = difference
  return [kind, account, txHash ?? requestId ?? '-', eventIndex, field, stored, chain].join('\t')
}

function summaryOf({ report, account, startedAt, finishedAt }: Verified): object {
  const { network, block, from, to, notes, unproven, totals, counts, differences } = report
  return {
    network,
    account,
    block,
    from,
    to,
    startedAt,
    finishedAt,
    differences: differences.length,
    isEqual: differences.length === 0,
    unproven,
    notes,
    totals,
    counts,
    repair: repairOf(report),
  }
}

function describe({ report, account }: Verified): string {
  const { network, block, from, to, notes, unproven, totals, counts, differences } = report
  const of = account === undefined ? '' : ` of account ${account}`
  const compared = `${number(counts.payments)} payments, ${number(counts.refunds)} refunds, ${number(counts.unmatched)} unmatched events, ${number(counts.requests)} requests`
  const lines = [
    ...notes,
    ...unproven.map(({ where, why, isInfo }) => `${where}: ${isInfo ? '' : 'not provable: '}${why}`),
    `${network} blocks ${from} to ${to}, at block ${block.number} ${block.hash}: ${compared}${of}, receipts of ${number(counts.receiptsRead)} of ${number(counts.blocks)} blocks read`,
    ...totals.map(describeTotal),
    'not compared: amounts in US dollars, payer and source of what a bridge delivered, whether fees of swaps and batches are complete',
    numberOfDifferences(differences.length),
    ...repairOf(report).map((command) => `to repair: ${command}`),
  ]
  return `${lines.join('\n')}\n`
}

function describeTotal({ account, currency, payments, paid, refunds, refunded }: VerifyTotal): string {
  const returned = refunds === 0 ? '' : `, ${number(refunds)} refunds of ${refunded}`
  return `${account}: ${number(payments)} payments of ${paid} ${currency}${returned}`
}

/** How far it came, what it found, and how to continue. */
function describeStop({ report, account, to }: Verified, context: CommandContext): string {
  const { network, stopped, counts, differences } = report
  const compared = counts.blocks === 0 ? 'none compared yet' : `blocks ${report.from} to ${report.to} compared`
  const words = [
    `waybill verify --chain ${network} --from ${report.to + 1}`,
    ...(to === undefined ? [] : ['--to', to]),
    ...(account === undefined ? [] : ['--account', account]),
  ]
  const lines = [
    `${messageOfStop(context)}: ${number(stopped?.blocksRead ?? 0)} of ${number(stopped?.blocksTotal ?? 0)} blocks read, ${compared}`,
    ...(counts.blocks === 0 ? [] : [`so far ${numberOfDifferences(differences.length)}`]),
    ...differences.map(lineOf),
    `to continue: ${words.join(' ')}`,
  ]
  return `${lines.join('\n')}\n`
}

function numberOfDifferences(count: number): string {
  return count === 0 ? 'no difference' : `${number(count)} difference${count === 1 ? '' : 's'}`
}

/** The commands that repair: read the blocks again; where only sums differ, recompute them. */
function repairOf({ network, differences }: VerifyReport): string[] {
  const blocks = differences.flatMap(({ blockNumber }) => (blockNumber === undefined ? [] : [blockNumber]))
  const accounts = new Set(
    differences.filter(({ kind }) => kind === 'STATISTICS' || kind === 'REQUEST').map(({ account }) => account),
  )
  const reread = `waybill chains reread ${network} --from ${blocks.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER)} --to ${Math.max(...blocks)}`
  return [
    ...(blocks.length === 0 ? [] : [reread]),
    ...[...accounts].map((account) => `waybill check --account ${account} --repair`),
  ]
}

function number(value: number): string {
  return value.toLocaleString('en')
}
