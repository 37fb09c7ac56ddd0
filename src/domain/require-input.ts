import { readAll } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type Address, type AddressFamily, addressFamily, isZeroAddress, parseAddress } from './address.ts'
import { given } from './collections.ts'
import { type ParsedMoment, parseDateBound } from './date-bound.ts'
import { compareDecimals, type Decimal, explainAboveMaximum, parseDecimal, rescale } from './decimal.ts'
import { parseTxHash } from './hex.ts'
import { parsePaymentReference, parseRequestId, parseSalt, parseUuid } from './identifiers.ts'
import { suggestName } from './nearest.ts'
import type { Metadata } from './payment-request.ts'
import { parseTimeZone, timeZoneNames, type ZoneDays } from './time-zone.ts'

/**
 * The rules of input, one function a rule. API calls, filters and imported lines read their values here, so that a value is accepted
 * everywhere or nowhere. Each function throws the WaybillError of its rule, with the field and the value.
 */

type FormReason = `INVALID_${'PAYMENT_REFERENCE' | 'PAYMENT_ID' | 'REQUEST_ID' | 'SALT' | 'TX_HASH'}`

/** The rule of a value that has one form. @param parse - gives undefined for any other text */
function requireForm<T>(reason: FormReason, parse: (text: string) => T | undefined) {
  return (field: string, value: string): T => {
    const parsed = parse(value)
    if (parsed === undefined) throw waybillError(reason, { field, value })
    return parsed
  }
}

export const requirePaymentReference = requireForm('INVALID_PAYMENT_REFERENCE', parsePaymentReference)
export const requirePaymentId = requireForm('INVALID_PAYMENT_ID', parseUuid)
export const requireRequestId = requireForm('INVALID_REQUEST_ID', parseRequestId)
export const requireSalt = requireForm('INVALID_SALT', parseSalt)
export const requireTxHash = requireForm('INVALID_TX_HASH', parseTxHash)

/** @throws WaybillError INVALID_ADDRESS */
export function requireAddress(field: string, value: string): Address {
  const parsed = parseAddress(value)
  if (!parsed.ok) throw waybillError('INVALID_ADDRESS', { field, value, detail: parsed.detail })
  return parsed.address
}

/** Where somebody is to be paid. */
export interface ReceiverChain {
  /** Canonical name. */
  readonly name: string
  readonly family: AddressFamily
  /** Addresses of its configuration, each with a description. */
  readonly configured?: ReadonlyMap<Address, string>
}

/**
 * Explains why nobody can be paid at an address, for the `detail` of the error.
 *
 * @param chain - undefined while it is not known
 * @returns undefined when somebody can
 */
export function explainReceiver(address: Address, chain?: ReceiverChain): string | undefined {
  if (chain !== undefined && addressFamily(address) !== chain.family) return `it is not an address of ${chain.name}`
  return isZeroAddress(address) ? 'it is the zero address, which nobody owns' : undefined
}

/**
 * Reads an address to which money is to be sent. Payee, fee receiver and refund address follow this one rule.
 *
 * @param chain - undefined while it is not known
 * @throws WaybillError INVALID_ADDRESS; RECEIVER_IS_CONTRACT for an address of the chain's configuration, where money would be lost
 */
export function requireReceiver(field: string, value: string, chain?: ReceiverChain): Address {
  const address = requireAddress(field, value)
  const detail = explainReceiver(address, chain)
  if (detail !== undefined) throw waybillError('INVALID_ADDRESS', { field, value, detail })
  const what = chain?.configured?.get(address)
  if (what !== undefined) throw waybillError('RECEIVER_IS_CONTRACT', { field, value, what, network: chain?.name ?? '' })
  return address
}

/** What an amount has to be beyond a plain decimal number. */
export interface AmountRule {
  /** Default: it has to be above 0. */
  readonly mayBeZero?: boolean
  /** It has at most the decimals of this currency, and a contract can hold it. */
  readonly currency?: { readonly id: string; readonly decimals: number }
  /** Where one of several currencies is meant, the fewest decimals of them: a contract can hold it in that currency. */
  readonly fewestDecimals?: number
}

/** @throws WaybillError INVALID_AMOUNT */
export function requireAmount(field: string, value: string, rule: AmountRule): Decimal {
  const amount = parseDecimal(value)
  if (amount === undefined) {
    throw waybillError('INVALID_AMOUNT', {
      field,
      value,
      detail: 'it is not a plain decimal number of at most 18 places',
    })
  }
  const detail = explainAmount(amount, rule)
  if (detail !== undefined) throw waybillError('INVALID_AMOUNT', { field, value, detail })
  return amount
}

/** Explains which part of the rule an amount breaks, for the `detail` of INVALID_AMOUNT; undefined for none. */
export function explainAmount(
  amount: Decimal,
  { mayBeZero, currency, fewestDecimals }: AmountRule,
): string | undefined {
  if (mayBeZero && amount.units < 0n) return 'it is negative'
  if (!mayBeZero && amount.units <= 0n) return 'it is not above 0'
  if (currency !== undefined && compareDecimals(rescale(amount, currency.decimals), amount) !== 0) {
    return `it has more places than the ${currency.decimals} decimals of ${currency.id}`
  }
  const decimals = currency?.decimals ?? fewestDecimals
  return decimals === undefined ? undefined : explainAboveMaximum(amount, decimals)
}

/**
 * Explains why a short text of a caller, such as a reference or a note, cannot be stored and shown, for the `detail` of the error.
 * PostgreSQL does not accept all control characters.
 *
 * @param maxLength - in characters
 * @returns undefined when it can
 */
export function explainText(text: string, maxLength: number): string | undefined {
  if (text === '') return 'it is empty'
  // A character outside the basic plane is two code units, so only a text that seems too long is counted exactly.
  if (text.length > maxLength && Array.from(text).length > maxLength) return `it has more than ${maxLength} characters`
  if (/\p{Cc}/u.test(text)) return 'it has a control character'
  return text.isWellFormed() ? undefined : 'it is not valid Unicode'
}

/** The same for a text that payers read: a character that changes the direction of text would show them another sum than is meant. */
export function explainPublicText(text: string, maxLength: number): string | undefined {
  const isReordered = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(text)
  return (
    explainText(text, maxLength) ?? (isReordered ? 'it has a character that changes the direction of text' : undefined)
  )
}

/** @returns the value @throws WaybillError INVALID_FIELD where something is wrong with it */
export function requireRight<T>(field: string, value: T, wrong: string | undefined): T {
  if (wrong !== undefined) throw waybillError('INVALID_FIELD', { field, detail: wrong })
  return value
}

const MAX_NOTE_LENGTH = 256

/** Reads what an account notes of its own things. @throws WaybillError INVALID_FIELD */
export const requireNote = (field: string, value: string) =>
  requireRight(field, value, explainText(value, MAX_NOTE_LENGTH))

const MAX_REFERENCE_LENGTH = 256

/** Reads the merchant's own reference. @throws WaybillError INVALID_REFERENCE */
export function requireMerchantReference(field: string, value: string): string {
  const detail = explainText(value, MAX_REFERENCE_LENGTH)
  if (detail !== undefined) throw waybillError('INVALID_REFERENCE', { field, detail })
  return value
}

const MAX_TITLE_LENGTH = 80

/** Reads what payers read of a request. @throws WaybillError INVALID_TITLE */
export function requireTitle(field: string, value: string): string {
  const detail = explainPublicText(value, MAX_TITLE_LENGTH)
  if (detail !== undefined) throw waybillError('INVALID_TITLE', { field, detail })
  return value
}

const MAX_PAIRS = 20
const METADATA_KEY = /^[A-Za-z0-9_.-]{1,40}$/
const MAX_METADATA_LENGTH = 500

/** Reads one pair of metadata. @throws WaybillError INVALID_METADATA */
function requirePair(field: string, key: string, value: string): void {
  const isKey = METADATA_KEY.test(key)
  const ofValue = explainText(value, MAX_METADATA_LENGTH)
  if (isKey && ofValue === undefined) return
  const detail = isKey ? `the value of "${key}": ${ofValue}` : `"${key}" is no key`
  throw waybillError('INVALID_METADATA', { field, detail })
}

/** Reads all metadata of a request; undefined where it has none. @throws WaybillError INVALID_METADATA, TOO_MANY_VALUES */
export function requireMetadata(field: string, metadata: Metadata): Metadata | undefined {
  const pairs = Object.entries(metadata)
  if (pairs.length > MAX_PAIRS) {
    throw waybillError('TOO_MANY_VALUES', { field, detail: `${pairs.length}, at most ${MAX_PAIRS}` })
  }
  for (const pair of pairs) requirePair(field, ...pair)
  return pairs.length === 0 ? undefined : metadata
}

/** Reads what an update does to metadata: each key gets its value, and an empty value removes it. @throws WaybillError INVALID_METADATA */
export function requireMetadataChanges(field: string, changes: Metadata): Metadata {
  for (const [key, value] of Object.entries(changes)) requirePair(field, key, value === '' ? 'removed' : value)
  return changes
}

/** Reads a key of metadata. @throws WaybillError INVALID_METADATA */
export function requireMetadataKey(field: string, key: string): string {
  requirePair(field, key, 'a value')
  return key
}

/** Reads the `KEY=VALUE` of a filter. @throws WaybillError INVALID_METADATA */
export function requireMetadataPair(field: string, text: string): string {
  const [key = '', ...rest] = text.split('=')
  if (rest.length === 0) throw waybillError('INVALID_METADATA', { field, detail: `"${text}" is not KEY=VALUE` })
  requirePair(field, key, rest.join('='))
  return text
}

const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Reads the address of a page that payers go back to. @throws WaybillError INVALID_RETURN_URL */
export function requireReturnUrl(field: string, value: string): string {
  const detail = explainReturnUrl(value)
  if (detail !== undefined) throw waybillError('INVALID_RETURN_URL', { field, value, detail })
  return value
}

function explainReturnUrl(value: string): string | undefined {
  const url = URL.parse(value)
  if (url === null || /[\s\p{Cc}]/u.test(value)) return 'it is no address of a page'
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && LOCAL_HOSTS.has(url.hostname))
  if (!isSafe) return 'it does not begin with https://'
  return url.username === '' && url.password === '' ? undefined : 'it has a user name or a password'
}

/** Fewer characters would begin too many references. */
const MIN_PREFIX_LENGTH = 2

/** Reads what references begin with. @throws WaybillError INVALID_REFERENCE */
export function requireReferencePrefix(field: string, value: string): string {
  const prefix = requireMerchantReference(field, value)
  if (Array.from(prefix).length >= MIN_PREFIX_LENGTH) return prefix
  throw waybillError('INVALID_REFERENCE', { field, detail: `it has fewer than ${MIN_PREFIX_LENGTH} characters` })
}

/** Reads RFC 3339 with an offset, or a day: of UTC, or of the zone whose days are given. @throws WaybillError INVALID_DATE */
export function requireDate(field: string, value: string, days?: ZoneDays): ParsedMoment {
  const parsed = parseDateBound(value, days)
  if (!parsed.ok) throw waybillError('INVALID_DATE', { field, value, detail: parsed.detail })
  return parsed
}

/** Instead of listing more than four hundred names. */
const ZONE_NAMES_HINT = 'use UTC or a name such as Europe/Zurich; Etc/GMT-1 is one hour ahead of UTC'

/** Reads the name of a time zone. @throws WaybillError UNKNOWN_TIME_ZONE */
export function requireTimeZone(field: string, value: string): string {
  const timeZone = parseTimeZone(value)
  if (timeZone !== undefined) return timeZone
  const suggestion = suggestName(value, timeZoneNames(), ZONE_NAMES_HINT)
  throw waybillError('UNKNOWN_TIME_ZONE', { field, value, suggestion })
}

/** The bounds of time in a filter, in milliseconds since 1970, inclusive. An absent bound was not given. */
export interface DateRange {
  readonly fromDate?: number | undefined
  readonly toDate?: number | undefined
}

/**
 * Reads the fields `fromDate` and `toDate` of a filter.
 *
 * @param names - what they are named for the caller
 * @throws WaybillError INVALID_DATE, INVALID_RANGE
 */
export function requireDateRange(
  { fromDate, toDate }: { readonly [K in keyof DateRange]?: string | undefined },
  names = { fromDate: 'fromDate', toDate: 'toDate' },
): DateRange {
  const { from, to } = readAll({
    from: () => given(fromDate, (text) => requireDate(names.fromDate, text)),
    to: () => given(toDate, (text) => requireDate(names.toDate, text)),
  })
  if (from !== undefined && to !== undefined && from.atMs > to.lastMs) {
    const bounds = { field: names.fromDate, value: fromDate ?? '', other: names.toDate, otherValue: toDate ?? '' }
    throw waybillError('INVALID_RANGE', bounds)
  }
  return { fromDate: from?.firstMs, toDate: to?.lastMs }
}

/** Items on a page of a list when the caller names no limit, and at most. */
export const DEFAULT_PAGE_LIMIT = 20
const MAX_PAGE_LIMIT = 100

/**
 * Reads the `limit` of a list. More than the maximum counts as the maximum.
 *
 * @returns undefined when none was sent; clients whose protocol has no presence send 0
 * @throws WaybillError INVALID_LIMIT
 */
export function requirePageLimit(limit: number | undefined): number | undefined {
  if (limit === undefined || limit === 0) return undefined
  if (!Number.isInteger(limit) || limit < 0) throw waybillError('INVALID_LIMIT', { value: limit })
  return Math.min(limit, MAX_PAGE_LIMIT)
}

/** The most values of one filter. */
const MAX_VALUES = 100

/** Checks how many values a filter has. @throws WaybillError TOO_MANY_VALUES */
export function requireFewValues(field: string, values: readonly unknown[]): void {
  if (values.length <= MAX_VALUES) return
  throw waybillError('TOO_MANY_VALUES', { field, detail: `${values.length}, at most ${MAX_VALUES}` })
}

/** The most bytes of all values of a filter by free texts. A cursor that carries all filters then fits into a URL of 64 KiB. */
const MAX_TEXT_BYTES = 24 * 1024

/** Checks how long the values of a filter by free texts are together. @throws WaybillError VALUE_TOO_LONG */
export function requireShortTexts(field: string, values: readonly string[]): void {
  const bytes = values.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes <= MAX_TEXT_BYTES) return
  const detail = `together they take ${bytes} bytes, at most ${MAX_TEXT_BYTES}`
  throw waybillError('VALUE_TOO_LONG', { field, detail })
}
