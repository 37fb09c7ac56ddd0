import type { NameSources } from '../../chains/resolve-names.ts'
import { fewestDecimals, type TokenDirectory } from '../../chains/token-directory.ts'
import { canonicalList } from '../../domain/collections.ts'
import { FIAT_DECIMALS } from '../../domain/currency.ts'
import { compareDecimals, type Decimal, formatDecimal } from '../../domain/decimal.ts'
import {
  requireAmount,
  requireDate,
  requireFewValues,
  requireMetadataPair,
  requireReferencePrefix,
  requireShortTexts,
  requireTimeZone,
} from '../../domain/require-input.ts'
import { DEFAULT_TIME_ZONE, daysOfZone, type ZoneDays } from '../../domain/time-zone.ts'
import { readAllInOrder, readEach, readEachInOrder } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { amountBasis, currencyMatchesOf } from './payment-filter.ts'
import { readFreeText } from './read-free-text.ts'
import {
  type FilterField,
  type FilterInput,
  type FilterName,
  type FilterValues,
  filterFields,
  turnedField,
} from './search-fields.ts'

/** When a kind of filter is read: dates depend on the time zone, amounts on the currencies. */
const steps: Readonly<Record<FilterField['kind'], number>> = {
  currency: 1,
  list: 1,
  exclusion: 1,
  pairs: 2,
  prefix: 2,
  text: 2,
  zone: 3,
  date: 4,
  amount: 5,
}
const fieldsInOrder = filterFields.toSorted((one, other) => steps[one.kind] - steps[other.kind])

/** What has been read so far. */
interface Reading {
  readonly input: FilterInput
  readonly sources: NameSources
  readonly values: FilterValues
  /** Bounds of ranges, for their order. Times are milliseconds since 1970. */
  readonly bounds: Map<FilterName, Decimal>
  /** The days of the zone of bare dates; undefined for UTC. */
  readonly days: () => ZoneDays | undefined
}

/**
 * Parses the filters of a search. Every filter that was sent becomes part of the result or an error; none is ignored.
 *
 * @param zoneOfCursor - the zone of bare dates where none is sent; default UTC
 * @returns the filters in canonical form, so that filters with the same meaning have the same JSON
 * @throws one error for all invalid values, with the reason of the first: INVALID_DATE, INVALID_AMOUNT, INVALID_RANGE, INVALID_ADDRESS,
 * INVALID_TX_HASH, INVALID_REQUEST_ID, INVALID_PAYMENT_REFERENCE, INVALID_REFERENCE, UNKNOWN_NETWORK, UNKNOWN_CURRENCY,
 * UNKNOWN_TIME_ZONE, TOO_MANY_VALUES
 */
export async function parseFilter(
  input: FilterInput,
  sources: NameSources,
  zoneOfCursor?: string,
): Promise<FilterValues> {
  const found: Record<string, unknown> = {}
  const values: FilterValues = found
  const days = () => daysUnlessUtc(values.timeZone ?? zoneOfCursor)
  const reading: Reading = { input, sources, values, bounds: new Map(), days }
  const sent = fieldsInOrder.filter(({ name }) => input[name] !== undefined)
  const readers = sent.map((field) => {
    const store = (value: unknown) => {
      if (value !== null) found[field.name] = value
    }
    const read = () => {
      const value = readFilter(field, reading)
      return value instanceof Promise ? value.then(store) : store(value)
    }
    return [field.name, read] as const
  })
  const ranges = { ranges: () => readEach(lowerBounds, (lower) => requireOrder(lower, reading)) }
  await readAllInOrder({ ...Object.fromEntries(readers), ...ranges })
  return values
}

type Field<K extends FilterField['kind']> = Extract<FilterField, { readonly kind: K }>

/** The value of one filter; null where it was not sent. No type here has `undefined`, so that a kind without a case does not compile. */
type ReadValue = string | number | readonly unknown[] | null

function readFilter(
  field: FilterField,
  { input, sources, values, bounds, days }: Reading,
): ReadValue | Promise<ReadValue> {
  switch (field.kind) {
    case 'list':
    case 'currency':
      return readList(field, field.name, input[field.name] ?? [], sources)
    case 'exclusion':
      return readList(turnedField(field), field.name, input[field.name] ?? [], sources)
    case 'pairs':
      return readPairs(field.name, input[field.name] ?? [])
    case 'prefix':
      return ifSent(input[field.name], (text) => requireReferencePrefix(field.name, text))
    case 'text':
      return ifSent(input[field.name], (text) => readFreeText(field.name, text))
    case 'zone':
      return ifSent(input[field.name], (text) => requireTimeZone(field.name, text))
    case 'date':
      return ifSent(input[field.name], (text) => {
        const { atMs, firstMs, lastMs } = requireDate(field.name, text, days())
        bounds.set(field.name, { units: BigInt(field.operator === '>=' ? atMs : lastMs), places: 0 })
        return field.operator === '>=' ? firstMs : lastMs
      })
    case 'amount':
      return ifSent(input[field.name], (text) => {
        const rule = { mayBeZero: true, fewestDecimals: decimalsOfRange(values, sources.tokens) }
        const amount = requireAmount(field.name, text, rule)
        bounds.set(field.name, amount)
        return formatDecimal(amount)
      })
  }
}

function daysUnlessUtc(timeZone = DEFAULT_TIME_ZONE): ZoneDays | undefined {
  return timeZone === DEFAULT_TIME_ZONE ? undefined : daysOfZone(timeZone)
}

function ifSent<T>(text: string | undefined, read: (text: string) => T): T | null {
  return text === undefined ? null : read(text)
}

function readList(
  field: Field<'list' | 'currency'>,
  name: FilterName,
  texts: readonly string[],
  sources: NameSources,
): ReadValue | Promise<ReadValue> {
  if (texts.length === 0) return null
  requireFewValues(name, texts)
  if (field.kind === 'list') field.checkAll?.(name, texts)
  const source = field.kind === 'list' ? field.value : field
  switch (source.read) {
    case 'name': {
      const resolve = (text: string): Promise<readonly unknown[]> => source.resolve(sources, name, text)
      const resolving = readEachInOrder([...new Set(texts)], resolve)
      return resolving.then((resolved) => canonicalList(resolved.flat()))
    }
    case 'text':
      return canonicalList(readEach(texts, (text) => source.parse(name, text)))
    case 'enum':
      return canonicalList(texts)
  }
}

function readPairs(name: FilterName, texts: readonly string[]): ReadValue {
  if (texts.length === 0) return null
  requireFewValues(name, texts)
  requireShortTexts(name, texts)
  return canonicalList(readEach(texts, (text) => requireMetadataPair(name, text)))
}

type BoundField = Field<'date' | 'amount'>

const boundFields = filterFields.filter(
  (field): field is BoundField => field.kind === 'date' || field.kind === 'amount',
)
const lowerBounds = boundFields.filter(({ operator }) => operator === '>=')

/** @throws WaybillError INVALID_RANGE where the other bound of a range lies below its lower bound */
function requireOrder(lower: BoundField, { input, bounds }: Reading): void {
  const isUpper = ({ column, operator }: BoundField) => column === lower.column && operator === '<='
  const upper = boundFields.find(isUpper)
  const [least, most] = [bounds.get(lower.name), upper && bounds.get(upper.name)]
  if (upper === undefined || least === undefined || most === undefined || compareDecimals(least, most) <= 0) return
  throw waybillError('INVALID_RANGE', {
    field: lower.name,
    value: input[lower.name] ?? '',
    other: upper.name,
    otherValue: input[upper.name] ?? '',
  })
}

/**
 * The decimals of the currency of the amount range, for the check against the largest amount. Where they differ from chain to chain, or are
 * unknown, the fewest count, because these allow the largest amounts.
 */
function decimalsOfRange(filter: FilterValues, tokens: TokenDirectory): number {
  if (amountBasis(filter) === 'amountInUsd') return FIAT_DECIMALS
  return Math.min(...currencyMatchesOf(filter).map(({ symbol, id }) => fewestDecimals(tokens, symbol, id)))
}
