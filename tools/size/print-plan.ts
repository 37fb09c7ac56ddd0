import { GIB, type PlanInput, type Range, type SizePlan } from './compute-plan.ts'
import { figures } from './measured-figures.ts'
import { optionRules } from './read-options.ts'

/** By how much a figure of disk grows or shrinks is not known better than to two digits. */
const DIGITS = 2

/** The plan as a table of two columns, with what was assumed below it. */
export function printPlan(input: PlanInput, plan: SizePlan): string {
  const { disk } = plan
  const rows: readonly (readonly [string, string])[] = [
    ['payments kept', formatCount(plan.payments)],
    ['payments a second', `${round(plan.perSecond.mean)}, ${round(plan.perSecond.peak)} in the busiest`],
    ['disk: rows of payments', formatBytes(disk.data)],
    ['disk: their indexes', formatBytes(disk.indexes)],
    ['disk: requests', formatBytes(disk.requests)],
    ['disk: log of changes, a week', formatBytes(disk.changeLog)],
    ['disk: statistics', formatBytes(disk.statistics)],
    ['disk: write-ahead log', formatBytes(disk.wal)],
    ['disk: all, and 40 % more', formatBytes(disk.total)],
    ['room for backups, elsewhere', formatBytes(disk.backups)],
    ['memory for the hot part', formatBytes(plan.memory)],
    ['pages read from disk a second', `up to ${round(plan.pagesPerSecond)} in the busiest`],
    ['cores of databases, busiest second', formatRange(plan.databaseCores)],
    ['cores of services, busiest second', formatRange(plan.serviceCores)],
    ['database servers (workers)', `${formatRange(plan.workers)}, by ${plan.decidedBy}`],
    ['one server is enough up to', `${formatRange(plan.oneServerUpTo, Math.floor)} payments`],
    ['shards', plan.shards === 0 ? 'none: one server' : String(plan.shards)],
    ['service processes', formatRange(plan.processes)],
    ['requests to chain nodes a day, at least', formatRange(plan.nodeCallsPerDay)],
    ['cost a month', formatRange(plan.costPerMonth)],
    ['cost a payment', formatRange(plan.costPerPayment)],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    ...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`),
    '',
    ...plan.warnings.map((warning) => `! ${warning}`),
    ...assumptionsOf(input),
    '',
  ].join('\n')
}

function assumptionsOf(input: PlanInput): string[] {
  const words = Object.entries(optionRules)
    .filter(([, { fallback }]) => fallback !== undefined)
    .map(([field, { option }]) => `${option} ${Number(input[field as keyof PlanInput].toPrecision(6))}`)
  return [
    `Assumed: ${words.join(', ')}.`,
    'Ranges are estimates; the figures behind them are from one machine of two cores.',
  ]
}

/** The options, and the measured figures with the commands that gave them. */
export function helpText(): string {
  const options = Object.values(optionRules).map(
    ({ option, help, fallback }) =>
      `  --${option.padEnd(24)} ${help}${fallback === undefined ? '' : `; ${fallback} unless said otherwise`}`,
  )
  const measured = Object.values(figures).map(
    ({ what, low, high, unit, command, date }) =>
      `  ${what}: ${low === high ? low : `${low} to ${high}`} ${unit} (${command}, ${date})`,
  )
  return [
    'npm run -s plan-size -- --accounts N --payments-per-day N --years N [options]',
    '',
    'Tells which machines and which disk so many payments need.',
    '',
    ...options,
    '  --json                     prints one JSON document: bytes, cores, and money in the currency of the prices',
    '',
    'Measured:',
    ...measured,
    '',
  ].join('\n')
}

/** Rounded up unless said otherwise, at the digits that a figure deserves. */
function round(value: number, whole: (value: number) => number = Math.ceil): string {
  if (value === 0) return '0'
  const step = 10 ** (Math.floor(Math.log10(value)) - DIGITS + 1)
  // A quotient such as 3.0000000000000004 is 3.
  const rounded = whole(Number((value / step).toPrecision(12))) * step
  return rounded >= 1 ? formatCount(rounded) : String(Number(rounded.toPrecision(DIGITS)))
}

function formatRange({ low, high }: Range, whole?: (value: number) => number): string {
  const [from, to] = [round(low, whole), round(high, whole)]
  return from === to ? from : `${from} to ${to}`
}

function formatCount(value: number): string {
  return Number(value.toPrecision(12)).toLocaleString('en-US')
}

const MIB = GIB / 1024
const UNITS = ['MiB', 'GiB', 'TiB', 'PiB']

function formatBytes({ low, high }: Range): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(high / MIB) / 10)))
  const divisor = MIB * 1024 ** power
  return `${formatRange({ low: low / divisor, high: high / divisor })} ${UNITS[power]}`
}
