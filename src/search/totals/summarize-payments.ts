import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes } from '../../domain/address.ts'
import { addDecimals, type Decimal, formatDecimal } from '../../domain/decimal.ts'
import { suggestName } from '../../domain/nearest.ts'
import { type PaymentStatus, statusOfRank } from '../../domain/payment.ts'
import { parseTimeZone, timeZoneNames } from '../../domain/time-zone.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { SearchInput } from '../filter/search-input.ts'
import { type GroupName, readSummary, type SummaryKey, type SummaryRow } from '../sql/summary-repository.ts'

/** A summary as it was asked for: the filters of a search, and what to group by. */
export interface SummaryInput extends SearchInput {
  readonly groupBy: readonly GroupName[]
  readonly timeZone?: string | undefined
  readonly top?: number | undefined
}

/** How many payments match and what they are worth. */
export interface Sums {
  readonly count: number
  /** The exact sum of what is known, a canonical decimal string. */
  readonly amountInUsd: string
  readonly countWithoutUsd: number
}

/** The payments of one value of each grouping. What is absent is unknown, or the rest. */
export interface SummaryGroup extends Sums {
  /** `2026-03-29` */
  readonly day?: string
  /** `2026-W13` */
  readonly week?: string
  /** `2026-03` */
  readonly month?: string
  readonly status?: PaymentStatus
  readonly network?: string
  readonly currency?: string
  readonly payer?: Address
  readonly payee?: Address
  /** The groupings of whose values these are all that have no group of their own. */
  readonly rest: readonly GroupName[]
}

export interface PaymentSummary extends Sums {
  readonly groups: readonly SummaryGroup[]
}

/**
 * Counts and sums the payments that match.
 *
 * @throws WaybillError of kind INVALID_INPUT for what cannot be read; TOO_MANY_GROUPS, SUMMARY_TIMEOUT; the signal's reason when it
 * fires
 */
export type SummarizePayments = (account: Account, input: SummaryInput, signal?: AbortSignal) => Promise<PaymentSummary>

export interface SummaryOptions {
  readonly knex: Knex
  readonly parseFilter: (account: Account, input: SearchInput, signal?: AbortSignal) => Promise<PaymentFilter>
  /** What a summary may take. */
  readonly timeoutMs?: number
}

const MOST_GROUPINGS = 2
const MOST_GROUPS = 10_000
const DEFAULT_TOP = 10
const LARGEST_TOP = 100

/** Half of what a call may take, which may wait for its turn in the other half: some twenty million payments of one account. */
const TIMEOUT_MS = 15_000

export function createSummarizePayments(options: SummaryOptions): SummarizePayments {
  const { knex, parseFilter, timeoutMs = TIMEOUT_MS } = options

  return async (account, input, signal) => {
    const groupBy = parseGroupBy(input.groupBy)
    const timeZone = readTimeZone(input.timeZone ?? 'UTC')
    const top = parseTop(input.top)
    const filter = await parseFilter(account, input, signal)
    const query = { filter, groupBy, timeZone, top, rows: MOST_GROUPS + 1 }
    const rows = await withinTime(timeoutMs, signal, (bounded) => readSummary(knex, query, bounded))
    if (rows.length > MOST_GROUPS) throw waybillError('TOO_MANY_GROUPS', { limit: MOST_GROUPS })
    return assembleSummary(groupBy, rows)
  }
}

function parseGroupBy(names: readonly GroupName[]): readonly GroupName[] {
  const field = 'groupBy'
  if (names.length > MOST_GROUPINGS) {
    throw waybillError('TOO_MANY_VALUES', { field, detail: `${names.length}, at most ${MOST_GROUPINGS}` })
  }
  const twice = names.find((name, at) => names.indexOf(name) < at)
  if (twice !== undefined) {
    throw waybillError('INVALID_FIELD', { field, detail: `it names ${twice.toUpperCase()} twice` })
  }
  return names
}

function readTimeZone(value: string): string {
  const timeZone = parseTimeZone(value)
  if (timeZone !== undefined) return timeZone
  const suggestion = suggestName(value, timeZoneNames(), ZONE_NAMES)
  throw waybillError('UNKNOWN_TIME_ZONE', { field: 'timeZone', value, suggestion })
}

/** There are more than four hundred. */
const ZONE_NAMES = 'use a name of the IANA database, such as Europe/Zurich; Etc/GMT-1 is one hour ahead of UTC'

/** 0 is what clients without presence send. */
function parseTop(top: number | undefined): number {
  if (top === undefined || top === 0) return DEFAULT_TOP
  if (Number.isInteger(top) && top > 0 && top <= LARGEST_TOP) return top
  throw waybillError('INVALID_FIELD', { field: 'top', detail: `${top} is not from 0 to ${LARGEST_TOP}` })
}

async function withinTime<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (bounded: AbortSignal) => Promise<T>,
): Promise<T> {
  const tooLong = AbortSignal.timeout(timeoutMs)
  const bounded = signal === undefined ? tooLong : AbortSignal.any([signal, tooLong])
  try {
    return await work(bounded)
  } catch (error) {
    if (bounded.aborted && bounded.reason === tooLong.reason) throw waybillError('SUMMARY_TIMEOUT', { timeoutMs })
    throw error
  }
}

/** Puts the rows in order and gives them their names. */
function assembleSummary(groupBy: readonly GroupName[], rows: readonly SummaryRow[]): PaymentSummary {
  const sums = sumsOf(rows)
  if (groupBy.length === 0) return { groups: [], ...sums }
  const ordered = rows.toSorted((a, b) => {
    const differing = a.keys.findIndex((key, at) => compareKeys(key, b.keys[at] as SummaryKey) !== 0)
    return differing < 0 ? 0 : compareKeys(a.keys[differing] as SummaryKey, b.keys[differing] as SummaryKey)
  })
  return { groups: ordered.map((row) => groupOf(groupBy, row)), ...sums }
}

function groupOf(groupBy: readonly GroupName[], row: SummaryRow): SummaryGroup {
  const values = groupBy.flatMap((name, at) => {
    const value = row.keys[at]?.value ?? null
    return value === null ? [] : [[name, valueOf(name, value)] as const]
  })
  const rest = groupBy.filter((_, at) => row.keys[at]?.isRest)
  return { ...(Object.fromEntries(values) as Partial<SummaryGroup>), rest, ...sumsOf([row]) }
}

function valueOf(name: GroupName, value: string | number | Buffer): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') return addressFromBytes(value)
  if (name === 'status') return statusOfRank(value)
  const day = isoDayOf(value)
  if (name === 'month') return day.slice(0, -'-DD'.length)
  return name === 'week' ? isoWeekOf(day) : day
}

/** A day in ISO 8601, by its number from 1970 on; of years beyond four digits, where a zone lies so, in the expanded form. */
function isoDayOf(days: number): string {
  return new Date(days * DAY_MS).toISOString().slice(0, -'T00:00:00.000Z'.length)
}

/**
 * The ISO 8601 week that begins on a Monday: it belongs to the year that its Thursday is in.
 *
 * @param monday - `2026-03-23`
 */
export function isoWeekOf(monday: string): string {
  const thursday = Date.parse(`${monday}T00:00:00Z`) + 3 * DAY_MS
  const year = isoDayOf(thursday / DAY_MS).slice(0, -'-MM-DD'.length)
  const week = Math.floor((thursday - Date.parse(`${year}-01-01`)) / (7 * DAY_MS)) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}

const DAY_MS = 86_400_000

/** Places before what has none; then values; the unknown ones behind them, and the rest at the end. */
function compareKeys(a: SummaryKey, b: SummaryKey): number {
  if (a.isRest !== b.isRest) return a.isRest ? 1 : -1
  if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null)
  if (a.place !== null && b.place !== null) return a.place - b.place
  return a.value < b.value ? -1 : Number(a.value > b.value)
}

function sumsOf(rows: readonly SummaryRow[]): Sums {
  const count = rows.reduce((sum, row) => sum + Number(row.count), 0)
  const priced = rows.reduce((sum, row) => sum + Number(row.priced), 0)
  const usd = rows.reduce((sum, row) => addDecimals(sum, decimalOf(row.usd)), ZERO)
  return { count, amountInUsd: formatDecimal(usd), countWithoutUsd: count - priced }
}

const ZERO: Decimal = { units: 0n, places: 0 }

/** A sum may have more digits than a decimal that comes in. */
function decimalOf(sum: string): Decimal {
  const [whole = '', fraction = ''] = sum.split('.')
  return { units: BigInt(whole + fraction), places: fraction.length }
}
