import { createChainDirectory } from '../../chains/chain-directory.ts'
import type { Address } from '../../domain/address.ts'
import { canonicalChainName } from '../../domain/chain.ts'
import { rememberByKey } from '../../domain/collections.ts'
import { type DecimalString, formatDecimal, isCanonicalAmount } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import { suggestName } from '../../domain/nearest.ts'
import type { Metadata } from '../../domain/payment-request.ts'
import {
  explainText,
  requireAddress,
  requireAmount,
  requireDate,
  requireMerchantReference,
  requireMetadata,
  requirePaymentReference,
  requireRequestId,
  requireTxHash,
} from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'

/**
 * Reads one value of a line. The path names the field, such as `fees[2].amount`.
 *
 * @throws WaybillError that names the field
 */
export type Reader<T> = (path: string, value: unknown) => T

/** Describes the fields of an object. */
export interface ObjectForm {
  readonly fields: Readonly<Record<string, Reader<unknown>>>
  readonly required: readonly string[]
  /** Fields that are allowed and ignored. */
  readonly derived?: ReadonlySet<string>
}

/** Fields with another name in the domain. */
const innerNames: Readonly<Record<string, string>> = { amountInUSD: 'amountInUsd' }

/** Reads an object: refuses unknown fields, treats null as absent. The result is a new object, which the caller may change. */
export function objectOf<T>({ fields, required, derived = new Set() }: ObjectForm): Reader<T> {
  const places = new Map(
    Object.entries(fields).map(([name, read]) => [name, { read, inner: innerNames[name] ?? name }]),
  )
  const unknown = (field: string, name: string) =>
    waybillError('UNKNOWN_LINE_FIELD', { field, suggestion: suggestName(name, [...places.keys(), ...derived]) })
  return (path, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notA(path, value, 'an object')
    const prefix = path === '' ? '' : `${path}.`
    const result: Record<string, unknown> = {}
    for (const name in value) {
      const place = places.get(name)
      if (place === undefined) {
        if (derived.has(name)) continue
        throw unknown(prefix + name, name)
      }
      const given = (value as Record<string, unknown>)[name]
      if (given !== null) result[place.inner] = place.read(prefix + name, given)
    }
    for (const name of required) {
      if (result[name] === undefined) throw waybillError('MISSING_FIELD', { field: prefix + name })
    }
    return result as T
  }
}

const MAX_ENTRIES = 1_000

export function listOf<T>(entry: Reader<T>): Reader<T[]> {
  return (path, value) => {
    if (!Array.isArray(value)) throw notA(path, value, 'a list')
    if (value.length > MAX_ENTRIES) {
      throw waybillError('TOO_MANY_VALUES', { field: path, detail: `${value.length}, at most ${MAX_ENTRIES}` })
    }
    return value.map((inner, at) => entry(`${path}[${at}]`, inner))
  }
}

/** Reads one of a closed set of names; case matters. */
export function oneOf<T extends string>(names: readonly T[]): Reader<T> {
  const known = new Set<unknown>(names)
  return (path, value) => {
    if (known.has(value)) return value as T
    const suggestion = typeof value === 'string' ? suggestName(value, names) : `use one of: ${names.join(', ')}`
    throw waybillError('UNKNOWN_ENUM_VALUE', { field: path, value: shown(value), suggestion })
  }
}

/** Reads a text that is not empty and has no control characters, some of which PostgreSQL refuses. */
export function textOf(maxLength: number): Reader<string> {
  return (path, value) => {
    const text = readString(path, value)
    if (text === '') throw waybillError('INVALID_FIELD', { field: path, detail: 'it is empty; leave it out' })
    const detail = explainText(text, maxLength)
    if (detail !== undefined) throw waybillError('INVALID_FIELD', { field: path, detail })
    return text
  }
}

export const readFlag: Reader<boolean> = (path, value) => {
  if (typeof value !== 'boolean') throw notA(path, value, 'true or false')
  return value
}

/** The merchant's own reference. */
export const readReference: Reader<string> = (path, value) => requireMerchantReference(path, readString(path, value))

/** The decimals of an imported currency may be unknown. 0 decimals allow the largest amount. */
const amountRule = { mayBeZero: true, fewestDecimals: 0 }

/** Reads a decimal string that is not negative; returns it in canonical form. */
export const readAmount: Reader<DecimalString> = (path, value) => {
  if (typeof value !== 'string') {
    const detail = 'it is not a string, and JSON numbers lose digits'
    throw waybillError('INVALID_AMOUNT', { field: path, value: shown(value), detail })
  }
  return isCanonicalAmount(value) ? value : formatDecimal(requireAmount(path, value, amountRule))
}

/** A UTC time as exports write it, with a day up to the 28th, so that it exists in every month. */
const PLAIN_TIME =
  /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3})?Z$/

/** Reads an RFC 3339 time with an offset, or a day, which means its beginning. Digits beyond milliseconds are cut off. */
export const readTime: Reader<Date> = (path, value) => {
  const text = readString(path, value)
  if (PLAIN_TIME.test(text)) return new Date(text)
  return new Date(requireDate(path, text).atMs)
}

/** Like {@link readTime}, cut to whole seconds, the precision of blocks. */
export const readBlockTime: Reader<Date> = (path, value) => {
  const time = readTime(path, value)
  const ms = time.getTime()
  return ms % 1_000 === 0 ? time : new Date(Math.floor(ms / 1_000) * 1_000)
}

/** Reads a time into the text that JSON columns store: UTC with milliseconds. */
export const readTimeText: Reader<string> = (path, value) => {
  if (typeof value !== 'string' || !PLAIN_TIME.test(value)) return readTime(path, value).toISOString()
  return value.length > '2026-03-01T12:00:00Z'.length ? value : `${value.slice(0, -1)}.000Z`
}

// Checking an address's checksum costs more than the rest of its line, and few addresses make up most of a file.
const MAX_CACHED_ADDRESSES = 50_000
const addressOf = rememberByKey(MAX_CACHED_ADDRESSES, (text, path: string) => requireAddress(path, text))

export const readAddress: Reader<Address> = (path, value) => addressOf(readString(path, value), path)

/** Texts by key. */
export const readMetadata: Reader<Metadata | undefined> = (path, value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notA(path, value, 'an object')
  for (const [key, text] of Object.entries(value)) readString(`${path}.${key}`, text)
  return requireMetadata(path, value as Metadata)
}

export const readTxHash: Reader<Hex> = (path, value) => requireTxHash(path, readString(path, value))

export const readRequestId: Reader<string> = (path, value) => requireRequestId(path, readString(path, value))

export const readPaymentReference: Reader<Hex> = (path, value) => requirePaymentReference(path, readString(path, value))

const builtIn = createChainDirectory([])
const canonicalNames = new Map<string, string>()
const MAX_CACHED_NAMES = 1_000

/** Reads a network's name or alias. An unknown network is accepted in canonical form, because old payments may be on chains that are gone. */
export const readNetwork: Reader<string> = (path, value) => {
  const text = readString(path, value)
  const known = canonicalNames.get(text)
  if (known !== undefined) return known
  const resolved = builtIn.resolve(text)
  const name = resolved.kind === 'unknown' ? canonicalChainName(text) : resolved.name
  if (name === undefined) {
    const suggestion = resolved.kind === 'unknown' ? resolved.suggest() : ''
    throw waybillError('UNKNOWN_NETWORK', { field: path, value: text, suggestion })
  }
  if (canonicalNames.size < MAX_CACHED_NAMES) canonicalNames.set(text, name)
  return name
}

const CAIP2 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/

/** @see https://chainagnostic.org/CAIPs/caip-2 */
export const readChainId: Reader<string> = (path, value) => {
  const text = readString(path, value)
  if (CAIP2.test(text)) return text
  throw waybillError('INVALID_FIELD', { field: path, detail: 'it is not CAIP-2, such as eip155:8453' })
}

const MAX_INT32 = 2 ** 31 - 1

export const readIndex: Reader<number> = (path, value) => {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_INT32) return value
  throw notA(path, value, `a whole number from 0 to ${MAX_INT32}`)
}

const MAX_INT64 = 2n ** 63n - 1n

/** Reads a string of digits, since JSON numbers are exact only up to 2^53; up to there it may be a number. */
export const readBigCount: Reader<bigint> = (path, value) => {
  const isNumber = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
  const isDigits = typeof value === 'string' && /^\d{1,19}$/.test(value)
  const count = isNumber || isDigits ? BigInt(value) : undefined
  if (count === undefined || count > MAX_INT64) throw notA(path, value, 'digits of a whole number below 2^63')
  return count
}

export function readString(path: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw notA(path, value, 'a string')
}

function notA(path: string, value: unknown, expected: string): Error {
  const where = path === '' ? 'the line' : path
  return waybillError('INVALID_FIELD', { field: where, detail: `${shown(value)} is not ${expected}` })
}

/** The value for a message, which cuts long texts; lists and objects are only named. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
