import { readCurrencyId } from '../chains/token-directory.ts'
import { type Address, parseAddress } from '../domain/address.ts'
import { parseFiatCode, symbolOfCurrency } from '../domain/currency.ts'
import { parseDateBound } from '../domain/date-bound.ts'
import { parseRequestId } from '../domain/payment-reference.ts'
import { type RequestStatus, requestStatuses } from '../domain/payment-request.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type KnownCurrencies, parseReference } from './request-terms.ts'
import type { RequestCell } from './sql/request-list-repository.ts'

/** The filters of a list as a caller sent them; absent and empty are not given. */
export interface FilterInput {
  readonly status?: readonly RequestStatus[] | undefined
  readonly reference?: readonly string[] | undefined
  readonly requestId?: readonly string[] | undefined
  readonly payee?: readonly string[] | undefined
  readonly network?: readonly string[] | undefined
  readonly currency?: readonly string[] | undefined
  readonly fromDate?: string | undefined
  readonly toDate?: string | undefined
}

/** A currency that a filter names: a payment currency by symbol, or by id; or an invoice currency by its code. */
export interface CurrencyMatch {
  readonly of: 'payment' | 'invoice'
  readonly symbol: string
  readonly id?: string
}

/**
 * The filters in canonical form, sorted and without repeats, so that equal filters are equal JSON. What is absent was not given; an empty list
 * matches nothing.
 */
export interface RequestFilter {
  readonly status?: readonly RequestStatus[]
  readonly reference?: readonly string[]
  readonly requestId?: readonly string[]
  readonly payee?: readonly Address[]
  readonly network?: readonly string[]
  readonly currency?: readonly CurrencyMatch[]
  /** Milliseconds since 1970, inclusive. */
  readonly fromDate?: number
  readonly toDate?: number
}

export const filterNames = [
  'status',
  'reference',
  'requestId',
  'payee',
  'network',
  'currency',
  'fromDate',
  'toDate',
] as const satisfies readonly (keyof RequestFilter)[]

/** Where names are looked up: the configuration first, the account's requests only when that does not know them. */
export interface NameSources extends KnownCurrencies {
  /** The networks and currencies of the account's requests. */
  readonly cells: () => Promise<readonly RequestCell[]>
}

/** The most values of one filter. */
const MAX_VALUES = 100

/** The most bytes that all values of `reference` take, so that a cursor that carries them fits into a URL. */
const MAX_REFERENCE_BYTES = 24 * 1024

/**
 * Reads the filters of a list. Everything that is given becomes a filter or an error, never nothing.
 *
 * @throws WaybillError with the reason of the first value that cannot be read: INVALID_DATE, INVALID_RANGE, INVALID_ADDRESS, INVALID_REQUEST_ID,
 *   INVALID_REFERENCE, VALUE_TOO_LONG, UNKNOWN_NETWORK, UNKNOWN_CURRENCY, TOO_MANY_VALUES
 */
export async function parseRequestFilter(input: FilterInput, sources: NameSources): Promise<RequestFilter> {
  for (const name of filterNames) checkCount(name, input[name])
  const { status = [], reference = [], requestId = [], payee = [], network = [], currency = [] } = input
  checkReferenceBytes(reference)
  const networks = await Promise.all(network.map((text) => resolveNetwork(text, sources)))
  const currencies = await Promise.all(currency.map((text) => resolveCurrency(text, sources)))
  return {
    ...(status.length > 0 && { status: requestStatuses.filter((each) => status.includes(each)) }),
    ...(reference.length > 0 && { reference: sortedSet(reference.map(parseReference)) }),
    ...(requestId.length > 0 && { requestId: sortedSet(requestId.map(readRequestId)) }),
    ...(payee.length > 0 && { payee: sortedSet(payee.map(readPayee)) }),
    ...(network.length > 0 && { network: sortedSet(networks.flat()) }),
    ...(currency.length > 0 && { currency: sortedMatches(currencies.flat()) }),
    ...readDates(input),
  }
}

/** Whether requests of a network and its currencies can match. */
export function matchesCell({ network, currency }: RequestFilter, cell: RequestCell): boolean {
  if (network !== undefined && !network.includes(cell.network)) return false
  return currency === undefined || currency.some((match) => matchesCurrency(match, cell))
}

function matchesCurrency({ of, symbol, id }: CurrencyMatch, { paymentCurrency, invoiceCurrency }: RequestCell) {
  const stored = of === 'payment' ? paymentCurrency : invoiceCurrency
  return id === undefined ? symbolOfCurrency(stored) === symbol : stored === id
}

function checkCount(field: string, given: readonly unknown[] | string | undefined): void {
  if (!Array.isArray(given) || given.length <= MAX_VALUES) return
  throw waybillError('TOO_MANY_VALUES', { field, detail: `${given.length}, at most ${MAX_VALUES}` })
}

function checkReferenceBytes(references: readonly string[]): void {
  const bytes = references.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes <= MAX_REFERENCE_BYTES) return
  const detail = `together they take ${bytes} bytes, at most ${MAX_REFERENCE_BYTES}`
  throw waybillError('VALUE_TOO_LONG', { field: 'reference', detail })
}

function readRequestId(text: string): string {
  const requestId = parseRequestId(text)
  if (requestId === undefined) throw waybillError('INVALID_REQUEST_ID', { field: 'requestId', value: text })
  return requestId
}

function readPayee(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw waybillError('INVALID_ADDRESS', { field: 'payee', value: text, detail: parsed.detail })
  return parsed.address
}

/** @returns none for a real chain whose name is served here under another id, as in a demo */
async function resolveNetwork(text: string, { chains, cells }: NameSources): Promise<readonly string[]> {
  const known = chains.resolve(text)
  if (known.kind === 'chain') return [known.name]
  if (known.kind === 'elsewhere') return []
  const again = chains.resolve(text, new Set((await cells()).map(({ network }) => network)))
  if (again.kind === 'chain') return [again.name]
  const suggestion = again.kind === 'unknown' ? again.suggest() : known.suggest()
  throw waybillError('UNKNOWN_NETWORK', { field: 'network', value: text, suggestion })
}

async function resolveCurrency(text: string, sources: NameSources): Promise<readonly CurrencyMatch[]> {
  const { chains, tokens, cells } = sources
  const configured = matchPayment(
    text,
    tokens.bySymbol(text).map(({ id }) => id),
  )
  if (configured.length > 0) return configured
  const token = tokens.byId(text)
  if (token !== undefined) return [{ of: 'payment', symbol: token.symbol, id: token.id }]
  const fiat = parseFiatCode(text)
  if (fiat !== undefined) return [{ of: 'invoice', symbol: fiat, id: fiat }]
  const stored = await cells()
  const ids = sortedSet(stored.map(({ paymentCurrency }) => paymentCurrency))
  const readings = readCurrencyId(text, chains, new Set(stored.map(({ network }) => network)))
  const ofAccount = [text, ...readings.map(({ id }) => id)].flatMap((name) => matchPayment(name, ids))
  if (ofAccount.length > 0) return ofAccount
  const suggestion = tokens.suggest(text, [...ids, ...ids.map(symbolOfCurrency)])
  throw waybillError('UNKNOWN_CURRENCY', { field: 'currency', value: text, suggestion })
}

/** The currencies whose symbol the text is, else whose id it is. An exact match wins over one in another case. */
function matchPayment(text: string, ids: readonly string[]): CurrencyMatch[] {
  const symbols = sameName(text, ids.map(symbolOfCurrency))
  if (symbols.length > 0) return symbols.map((symbol) => ({ of: 'payment', symbol }))
  return sameName(text, ids).map((id) => ({ of: 'payment', symbol: symbolOfCurrency(id), id }))
}

function sameName(text: string, names: readonly string[]): readonly string[] {
  if (names.includes(text)) return [text]
  return sortedSet(names.filter((name) => name.toLowerCase() === text.toLowerCase()))
}

function readDates({ fromDate, toDate }: FilterInput): Pick<RequestFilter, 'fromDate' | 'toDate'> {
  const from = fromDate === undefined ? undefined : readDate('fromDate', fromDate)
  const to = toDate === undefined ? undefined : readDate('toDate', toDate)
  if (from !== undefined && to !== undefined && from.atMs > to.lastMs) {
    const bounds = { field: 'fromDate', value: fromDate ?? '', other: 'toDate', otherValue: toDate ?? '' }
    throw waybillError('INVALID_RANGE', bounds)
  }
  return {
    ...(from === undefined ? {} : { fromDate: from.firstMs }),
    ...(to === undefined ? {} : { toDate: to.lastMs }),
  }
}

function readDate(field: string, value: string) {
  const parsed = parseDateBound(value)
  if (!parsed.ok) throw waybillError('INVALID_DATE', { field, value, detail: parsed.detail })
  return parsed
}

function sortedSet<T extends string>(values: readonly T[]): T[] {
  return [...new Set(values)].toSorted((a, b) => (a < b ? -1 : 1))
}

function sortedMatches(matches: readonly CurrencyMatch[]): CurrencyMatch[] {
  const byText = new Map(matches.map((match) => [JSON.stringify(match), match]))
  return sortedSet([...byText.keys()]).map((text) => byText.get(text) as CurrencyMatch)
}
