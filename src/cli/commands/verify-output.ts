import type { ChainConfig } from '../../chains/chains-file.ts'
import { describeDuration } from '../../detection/backfill/backfill-progress.ts'
import type {
  VerifyDifference,
  VerifyProgress,
  VerifyReport,
  VerifyTotal,
} from '../../detection/verify/verify-report.ts'
import {
  type CommandContext,
  counted,
  EXIT_FAILED,
  EXIT_GOOD,
  EXIT_STOPPED,
  EXIT_UNDECIDED,
  everyMs,
  writeFully,
} from '../shared/command.ts'

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** The report of a chain, and how it was asked for. */
export interface Verified {
  readonly report: VerifyReport
  /** Name of the only account that was compared. */
  readonly account?: string | undefined
  /** The last block that was asked for. */
  readonly to?: number | undefined
  readonly startedAt: Date
  readonly finishedAt: Date
}

/** What was compared of the rows that are derived from payments. */
export interface DerivedReport {
  readonly accounts: readonly {
    readonly account: string
    readonly payments: number
    readonly changes: number
    readonly requests: number
  }[]
  readonly differences: readonly VerifyDifference[]
  /** Those that a repair left. */
  readonly left: readonly VerifyDifference[]
}

interface Reports {
  readonly verified: readonly Verified[]
  /** Absent where only blocks were compared. */
  readonly derived: DerivedReport | undefined
  readonly account: string | undefined
  readonly isRepaired: boolean
}

/** @returns the exit code */
export async function writeReports(reports: Reports, form: 'TEXT' | 'JSON', context: CommandContext): Promise<number> {
  const { stdout, stderr } = context
  const { verified, derived, isRepaired } = reports
  const stopped = verified.find(({ report }) => report.stopped !== undefined)
  // Standard output stays empty, so that nobody takes part of a report for the whole.
  if (stopped !== undefined) {
    await writeFully(stderr, describeStop(stopped, context))
    return EXIT_STOPPED
  }
  const lineIn = (value: VerifyDifference) => (form === 'JSON' ? JSON.stringify(value) : lineOf(value))
  for (const each of verified) {
    for (const difference of each.report.differences) await writeFully(stdout, `${lineIn(difference)}\n`)
    if (form === 'JSON') await writeFully(stdout, `${JSON.stringify(summaryOf(each))}\n`)
    await writeFully(stderr, describe(each))
  }
  if (derived !== undefined) {
    for (const difference of derived.differences) await writeFully(stdout, `${lineIn(difference)}\n`)
    if (form === 'JSON') await writeFully(stdout, `${JSON.stringify(summaryOfDerived(derived))}\n`)
    await writeFully(stderr, describeDerived(derived))
  }
  const differences = [...verified.flatMap(({ report }) => report.differences), ...(derived?.differences ?? [])]
  await writeFully(stderr, `${describeEnd(differences, reports)}\n`)
  if (isRepaired ? (derived?.left.length ?? 0) > 0 : differences.length > 0) return EXIT_FAILED
  return verified.every(({ report }) => isDecided(report)) ? EXIT_GOOD : EXIT_UNDECIDED
}

export function messageOfStop({ signal }: Pick<CommandContext, 'signal'>): string {
  return signal.reason instanceof Error ? signal.reason.message : 'stopped'
}

/** Whether nothing is left that is not provable. */
function isDecided({ unproven }: VerifyReport): boolean {
  return unproven.every(({ isInfo }) => isInfo)
}

/** Makes a function that tells the progress of a chain now and then. */
export function blockReporter({ stderr }: Pick<CommandContext, 'stderr'>, { name }: ChainConfig) {
  const startMs = performance.now()
  const isDue = everyMs(REPORT_INTERVAL_MS)
  return ({ blocksDone, blocksTotal, events, differences }: VerifyProgress): void => {
    if (!isDue()) return
    const perSecond = blocksDone / ((performance.now() - startMs) / 1_000)
    const left = describeDuration((blocksTotal - blocksDone) / perSecond)
    const found = differences === 0 ? '' : `, ${number(differences)} differences so far`
    stderr.write(
      `${name}: ${number(blocksDone)} of ${number(blocksTotal)} blocks, ${number(Math.round(perSecond))} a second, ${left} left, ${number(events)} events${found}\n`,
    )
  }
}

function lineOf({ kind, account, txHash, requestId, paymentId, eventIndex, ...values }: VerifyDifference): string {
  const { field, stored, chain } = values
  const columns = [kind, account, txHash ?? requestId ?? paymentId, eventIndex, field, stored, chain]
  return columns.map((column) => column ?? '-').join('\t')
}

function summaryOf({ report, account, startedAt, finishedAt }: Verified): object {
  const differences = report.differences.length
  return { ...report, account, startedAt, finishedAt, differences, isEqual: differences === 0 }
}

function summaryOfDerived({ accounts, differences, left }: DerivedReport): object {
  return { accounts, differences: differences.length, isEqual: differences.length === 0, left: left.length }
}

function describe({ report, account }: Verified): string {
  const { network, block, from, to, notes, unproven, totals, counts } = report
  const of = account === undefined ? '' : ` of account ${account}`
  const compared = `${number(counts.payments)} payments, ${number(counts.refunds)} refunds, ${number(counts.unmatched)} unmatched events, ${number(counts.requests)} requests`
  const lines = [
    ...notes,
    ...unproven.map(({ where, why, isInfo }) => `${where}: ${isInfo ? '' : 'not provable: '}${why}`),
    `${network} blocks ${from} to ${to}, at block ${block.number} ${block.hash}: ${compared}${of}, receipts of ${number(counts.receiptsRead)} of ${number(counts.blocks)} blocks read`,
    ...totals.map(describeTotal),
    'not compared: amounts in US dollars, payer and source of what a bridge delivered',
  ]
  return `${lines.join('\n')}\n`
}

function describeTotal({ account, currency, payments, paid, refunds, refunded }: VerifyTotal): string {
  const returned = refunds === 0 ? '' : `, ${number(refunds)} refunds of ${refunded}`
  return `${account}: ${number(payments)} payments of ${paid} ${currency}${returned}`
}

function describeDerived({ accounts, left }: DerivedReport): string {
  const lines = [
    ...accounts.map(
      ({ account, payments, changes, requests }) =>
        `${account}: ${number(payments)} stored payments, ${number(changes)} changes, ${number(requests)} requests`,
    ),
    ...left.map((difference) => `could not be repaired: ${lineOf(difference)}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function describeEnd(
  differences: readonly VerifyDifference[],
  { verified, derived, account, isRepaired }: Reports,
): string {
  const count = numberOfDifferences(differences.length)
  if (differences.length === 0) return count
  if (isRepaired) return `${count} repaired, ${number(derived?.left.length ?? 0)} left`
  const [only, ...others] = verified
  const numbers = differences.flatMap(({ blockNumber }) => blockNumber ?? [])
  const isInBlocks = only !== undefined && others.length === 0 && numbers.length === differences.length
  const words = [
    'waybill verify',
    ...(only !== undefined && others.length === 0 ? ['--chain', only.report.network] : []),
    ...(isInBlocks
      ? ['--from', numbers.reduce((a, b) => Math.min(a, b)), '--to', numbers.reduce((a, b) => Math.max(a, b))]
      : []),
    ...(account === undefined ? [] : ['--account', account]),
    '--repair',
  ]
  return `${count}\nto repair: ${words.join(' ')}`
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
  return count === 0 ? 'no difference' : counted(count, 'difference')
}

function number(value: number): string {
  return value.toLocaleString('en')
}
