import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes } from '../../domain/address.ts'
import { symbolOfCurrency } from '../../domain/currency.ts'
import { formatDecimal, readStoredDecimal, sumDecimals } from '../../domain/decimal.ts'
import { type PaymentStatus, type PaymentType, statusOfRank, typeOfCode } from '../../domain/payment.ts'
import { requireMetadataKey } from '../../domain/require-input.ts'
import { readAllInOrder } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { MAX_GROUPS, requireFewGroups, SUMMARY_TIMEOUT_MS, withinTime } from '../../postgres/summary-limits.ts'
import type { SearchInput } from '../filter/payment-filter.ts'
import type { PaymentSearch } from '../page/payment-search.ts'
import {
  type GroupName,
  type Measure,
  type MeasuredRow,
  measures,
  readSummary,
  type SummaryKey,
  type SummaryRow,
  type SummaryRows,
} from '../sql/read-summary.ts'

/** A summary as it was sent: the filters of a search, and what to group by. */
export interface SummaryInput extends SearchInput {
  readonly groupBy: readonly GroupName[]
  /** The key of the grouping `metadata`, and of it alone. */
  readonly metadataKey?: string | undefined
  /** What to add up in its own currencies; none by default. */
  readonly sums?: readonly Measure[] | undefined
  readonly top?: number | undefined
}

/** Count and value of payments. */
export interface Sums {
  readonly count: number
  /** The exact sum of the known amounts, a canonical decimal string. FAILED payments are in it only where they alone are asked for. */
  readonly amountInUsd: string
  /** Of those that would be in the sum. */
  readonly countWithoutUsd: number
}

/** The sum of a measure in the currencies of one symbol. Amounts are canonical decimal strings. */
export interface OwnSum extends Sums {
  readonly measure: Measure
  readonly symbol: string
  readonly amount: string
  /** By currency id, or ISO 4217 code. */
  readonly parts: readonly { readonly currency: string; readonly amount: string; readonly count: number }[]
}

/** The payments of one value of each grouping. An absent value is unknown, or its grouping is in `rest`. */
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
  readonly type?: PaymentType
  readonly invoiceCurrency?: string
  /** The value of the key. */
  readonly metadata?: string
  readonly sums: readonly OwnSum[]
  /** The groupings (payer, payee) for which this group holds everybody outside the top ones. */
  readonly rest: readonly GroupName[]
}

export interface PaymentSummary extends Sums {
  readonly groups: readonly SummaryGroup[]
  readonly sums: readonly OwnSum[]
}

/**
 * Counts and sums the payments that match.
 *
 * @throws WaybillError of kind INVALID_INPUT for an invalid field; TOO_MANY_GROUPS, SUMMARY_TIMEOUT; the signal's reason when it fires
 */
export type SummarizePayments = (account: Account, input: SummaryInput, signal?: AbortSignal) => Promise<PaymentSummary>

export interface SummaryOptions {
  readonly knex: Knex
  readonly parseFilter: PaymentSearch['parseFilter']
  readonly timeoutMs?: number | undefined
}

const MAX_GROUPINGS = 2
const DEFAULT_TOP = 10
const MAX_TOP = 100

export function createSummarizePayments(options: SummaryOptions): SummarizePayments {
  const { knex, parseFilter, timeoutMs = SUMMARY_TIMEOUT_MS } = options

  return async (account, input, signal) => {
    const query = { ...(await readSummaryInput(parseFilter, account, input, signal)), rows: MAX_GROUPS + 1 }
    const rows = await withinTime(timeoutMs, signal, (bounded) => readSummary(knex, query, bounded))
    const bySum = [...Map.groupBy(rows.sums, ({ measure }) => measure).values()]
    for (const groups of [rows.groups, ...bySum]) requireFewGroups(groups)
    return assembleSummary(query.groupBy, rows)
  }
}

/** Reads what was sent. @throws WaybillError of kind INVALID_INPUT */
export function readSummaryInput(
  parseFilter: SummaryOptions['parseFilter'],
  account: Account,
  input: SummaryInput,
  signal: AbortSignal | undefined,
) {
  return readAllInOrder({
    groupBy: () => parseGroupBy(input.groupBy),
    metadataKey: () => parseMetadataKey(input),
    sums: () => refuseRepeats('sums', input.sums ?? []),
    top: () => parseTop(input.top),
    filter: () => parseFilter(account, input, signal),
  })
}

function parseGroupBy(names: readonly GroupName[]): readonly GroupName[] {
  const field = 'groupBy'
  if (names.length > MAX_GROUPINGS) {
    throw waybillError('TOO_MANY_VALUES', { field, detail: `${names.length}, at most ${MAX_GROUPINGS}` })
  }
  return refuseRepeats(field, names)
}

function parseMetadataKey({ groupBy, metadataKey }: SummaryInput): string | undefined {
  const field = 'metadataKey'
  const isGrouped = groupBy.includes('metadata')
  if (metadataKey !== undefined && isGrouped) return requireMetadataKey(field, metadataKey)
  if (isGrouped) throw waybillError('MISSING_FIELD', { field })
  if (metadataKey === undefined) return undefined
  throw waybillError('INVALID_FIELD', { field, detail: 'only the grouping METADATA has a key' })
}

function refuseRepeats<T extends string>(field: string, names: readonly T[]): readonly T[] {
  const twice = names.find((name, at) => names.indexOf(name) < at)
  if (twice === undefined) return names
  const detail = `it names ${twice.replace(/[A-Z]/g, twice === twice.toUpperCase() ? '$&' : '_$&').toUpperCase()} twice`
  throw waybillError('INVALID_FIELD', { field, detail })
}

/** Clients whose protocol has no presence send 0. */
function parseTop(top: number | undefined): number {
  if (top === undefined || top === 0) return DEFAULT_TOP
  if (Number.isInteger(top) && top > 0 && top <= MAX_TOP) return top
  throw waybillError('INVALID_FIELD', { field: 'top', detail: `${top} is not from 0 to ${MAX_TOP}` })
}

/** Sorts the groups and names their values. */
function assembleSummary(groupBy: readonly GroupName[], { groups, sums }: SummaryRows): PaymentSummary {
  const whole = { ...sumsOf(groups), sums: ownSumsOf(sums) }
  if (groupBy.length === 0) return { groups: [], ...whole }
  const ordered = groups.toSorted((a, b) => {
    const differing = a.keys.findIndex((key, at) => compareKeys(key, b.keys[at] as SummaryKey) !== 0)
    return differing < 0 ? 0 : compareKeys(a.keys[differing] as SummaryKey, b.keys[differing] as SummaryKey)
  })
  const sumsByGroup = Map.groupBy(sums, nameOfGroup)
  return { groups: ordered.map((row) => groupOf(groupBy, row, sumsByGroup.get(nameOfGroup(row)) ?? [])), ...whole }
}

/** The same for the group and the sums of the same keys. */
function nameOfGroup({ keys }: SummaryRow): string {
  return JSON.stringify(
    keys.map(({ value, isRest }) => [Buffer.isBuffer(value) ? value.toString('hex') : value, isRest]),
  )
}

/** The sums by measure, then by symbol. */
function ownSumsOf(rows: readonly MeasuredRow[]): readonly OwnSum[] {
  const byName = Map.groupBy(
    rows,
    ({ measure, currency }) => `${measures.indexOf(measure)} ${symbolOfCurrency(currency)}`,
  )
  return [...byName.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, ofSymbol]) => ownSumOf(ofSymbol))
}

/** @param rows - at least one; all of one measure and symbol */
function ownSumOf(rows: readonly MeasuredRow[]): OwnSum {
  const { measure, currency } = rows[0] as MeasuredRow
  const parts = [...Map.groupBy(rows, (row) => row.currency)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, ofId]) => ({ currency: id, amount: amountOf(ofId), count: sumsOf(ofId).count }))
  return { measure, symbol: symbolOfCurrency(currency), amount: amountOf(rows), parts, ...sumsOf(rows) }
}

function amountOf(rows: readonly MeasuredRow[]): string {
  return formatDecimal(sumDecimals(rows.map(({ amount }) => readStoredDecimal(amount))))
}

function groupOf(groupBy: readonly GroupName[], row: SummaryRow, sums: readonly MeasuredRow[]): SummaryGroup {
  const values = groupBy.flatMap((name, at) => {
    const value = row.keys[at]?.value ?? null
    return value === null ? [] : [[name, valueOf(name, value)] as const]
  })
  const rest = groupBy.filter((_, at) => row.keys[at]?.isRest)
  return { ...(Object.fromEntries(values) as Partial<SummaryGroup>), rest, ...sumsOf([row]), sums: ownSumsOf(sums) }
}

function valueOf(name: GroupName, value: string | number | Buffer): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') return addressFromBytes(value)
  if (name === 'status') return statusOfRank(value)
  if (name === 'type') return typeOfCode(value)
  const day = isoDayOf(value)
  if (name === 'month') return day.slice(0, -'-DD'.length)
  return name === 'week' ? isoWeekOf(day) : day
}

/** The ISO 8601 date of a day, by its midnight in UTC; in the expanded form where the year has more than four digits. */
function isoDayOf(midnightMs: number): string {
  return new Date(midnightMs).toISOString().slice(0, -'T00:00:00.000Z'.length)
}

/**
 * The ISO 8601 week that begins on a Monday. It belongs to the year of its Thursday.
 *
 * @param monday - `2026-03-23`
 */
export function isoWeekOf(monday: string): string {
  const thursday = Date.parse(`${monday}T00:00:00Z`) + 3 * DAY_MS
  const year = isoDayOf(thursday).slice(0, -'-MM-DD'.length)
  const week = Math.floor((thursday - Date.parse(`${year}-01-01`)) / (7 * DAY_MS)) + 1
  return `${year}-W${String(week).padStart(2, '0')}`
}

const DAY_MS = 86_400_000

/** The top ones by their place, other groups by value, then the unknown value, and the rest last. */
function compareKeys(a: SummaryKey, b: SummaryKey): number {
  if (a.isRest !== b.isRest) return a.isRest ? 1 : -1
  if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null)
  if (a.place !== null && b.place !== null) return a.place - b.place
  return a.value < b.value ? -1 : Number(a.value > b.value)
}

function sumsOf(rows: readonly SummaryRow[]): Sums {
  const total = (valueOf: (row: SummaryRow) => string) => rows.reduce((sum, row) => sum + Number(valueOf(row)), 0)
  const usd = sumDecimals(rows.map((row) => readStoredDecimal(row.usd)))
  const countWithoutUsd = total(({ summed }) => summed) - total(({ priced }) => priced)
  return { count: total(({ count }) => count), amountInUsd: formatDecimal(usd), countWithoutUsd }
}
