import { parseArgs } from 'node:util'
import type { PlanInput } from './compute-plan.ts'

/** What the command line asks for. */
export type PlanCommand =
  | { readonly help: true }
  | { readonly help: false; readonly json: boolean; readonly input: PlanInput }

/** A word on the command line that no plan can be made of. */
export class PlanOptionError extends Error {}

interface OptionRule {
  readonly option: string
  readonly least: number
  readonly most: number
  /** Absent where the caller must say. */
  readonly fallback?: number
  readonly whole?: true
  readonly help: string
}

/** Each option of the plan. Those without a default describe the company; the others are assumptions. */
export const optionRules: Readonly<Record<keyof PlanInput, OptionRule>> = {
  accounts: { option: 'accounts', least: 1, most: 1e8, whole: true, help: 'accounts' },
  paymentsPerDay: {
    option: 'payments-per-day',
    least: 1,
    most: 1e9,
    help: 'new payments of all accounts a day, as a mean',
  },
  years: { option: 'years', least: 0.01, most: 100, help: 'years that payments are kept' },
  largestAccountPercent: {
    option: 'largest-account-percent',
    least: 0,
    most: 100,
    fallback: 10,
    help: 'share of all payments that the largest account has; 100 with one account',
  },
  peak: { option: 'peak', least: 1, most: 1_000, fallback: 5, help: 'the busiest second against the mean' },
  searchesPerPayment: {
    option: 'searches-per-payment',
    least: 0,
    most: 1e4,
    fallback: 10,
    help: 'searches for each payment',
  },
  routesPerPayment: {
    option: 'routes-per-payment',
    least: 0,
    most: 1e4,
    fallback: 3,
    help: 'lists of routes for each payment',
  },
  requestsPerPayment: {
    option: 'requests-per-payment',
    least: 0,
    most: 100,
    fallback: 1,
    help: 'stored requests for each payment',
  },
  changesPerPayment: {
    option: 'changes-per-payment',
    least: 0,
    most: 100,
    fallback: 1,
    help: 'later changes of a payment, such as its confirmation',
  },
  combinations: {
    option: 'combinations',
    least: 1,
    most: 1e6,
    whole: true,
    fallback: 100,
    help: 'combinations of network, currency, type and status in an account',
  },
  hotDays: {
    option: 'hot-days',
    least: 1,
    most: 36_500,
    fallback: 90,
    help: 'payments of so many days are searched often',
  },
  chains: { option: 'chains', least: 0, most: 10_000, whole: true, fallback: 5, help: 'chains that are followed' },
  blockSeconds: { option: 'block-seconds', least: 0.01, most: 86_400, fallback: 2, help: 'seconds between blocks' },
  serverCores: {
    option: 'server-cores',
    least: 1,
    most: 1_024,
    whole: true,
    fallback: 16,
    help: 'cores of a database server',
  },
  serverMemoryGib: { option: 'server-memory-gib', least: 1, most: 65_536, fallback: 128, help: 'its memory' },
  serverDiskGib: { option: 'server-disk-gib', least: 20, most: 1e6, fallback: 8_192, help: 'its disk' },
  standbys: {
    option: 'standbys',
    least: 0,
    most: 10,
    whole: true,
    fallback: 1,
    help: 'standbys of each database server',
  },
  priceCoreHour: {
    option: 'price-core-hour',
    least: 0,
    most: 1e6,
    fallback: 0.05,
    help: 'price of a core with its memory for an hour, in any currency',
  },
  priceGibMonth: {
    option: 'price-gib-month',
    least: 0,
    most: 1e6,
    fallback: 0.1,
    help: 'price of a GiB of disk or backup for a month',
  },
}

/** Of all years. Beyond, no figure of the bench says anything. */
const MOST_PAYMENTS = 1e11

/** @throws PlanOptionError that names the option and its value */
export function readOptions(args: readonly string[]): PlanCommand {
  const values = parseWords(args)
  if (values.help === true) return { help: true }
  const input = Object.fromEntries(
    Object.entries(optionRules).map(([field, rule]) => [field, readNumber(rule, values[rule.option])]),
  ) as unknown as PlanInput
  const payments = input.paymentsPerDay * input.years * 365
  if (payments > MOST_PAYMENTS) {
    throw new PlanOptionError(
      `--payments-per-day ${input.paymentsPerDay} for --years ${input.years} is more than 100 billion payments, for which nothing was measured: plan each region or each group of accounts alone`,
    )
  }
  const largestAccountPercent = largestAccount(input, values[optionRules.largestAccountPercent.option])
  return { help: false, json: values.json === true, input: { ...input, largestAccountPercent } }
}

function parseWords(args: readonly string[]): Record<string, string | boolean | undefined> {
  const named = Object.values(optionRules).map(({ option }) => [option, { type: 'string' }] as const)
  const options = { ...Object.fromEntries(named), json: { type: 'boolean' }, help: { type: 'boolean' } } as const
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    throw new PlanOptionError(`${(error as Error).message} (--help lists the options)`)
  }
}

/** A decimal number: neither 1e6 nor 0x10, and no separators. */
const DECIMAL = /^\d{1,15}(?:\.\d{1,6})?$/

function readNumber({ option, least, most, fallback, whole }: OptionRule, text: string | boolean | undefined): number {
  if (text === undefined && fallback !== undefined) return fallback
  if (typeof text !== 'string')
    throw new PlanOptionError(`--${option} is missing: give a number from ${least} to ${most}`)
  const value = Number(text)
  const kind = whole ? 'a whole number' : 'a number'
  if (!DECIMAL.test(text) || value < least || value > most || (whole && !Number.isInteger(value))) {
    throw new PlanOptionError(`--${option} is '${text}': give ${kind} from ${least} to ${most}, without separators`)
  }
  return value
}

/** No account's share is below the mean. */
function largestAccount({ accounts, largestAccountPercent }: PlanInput, said: string | boolean | undefined): number {
  const mean = 100 / accounts
  if (largestAccountPercent >= mean) return largestAccountPercent
  if (said === undefined) return mean
  throw new PlanOptionError(
    `--largest-account-percent is '${String(said)}', but of ${accounts} accounts the largest has at least ${mean.toFixed(2)} %: give more`,
  )
}
