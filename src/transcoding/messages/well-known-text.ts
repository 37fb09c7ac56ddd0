import { create, type Message } from '@bufbuild/protobuf'
import { DurationSchema, FieldMaskSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { TextReader } from './scalar-text.ts'

const rfc3339 = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-](\d{2}):(\d{2}))$/
const durationText = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/
const fieldMaskPath = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of a Timestamp. */
export const MIN_TIMESTAMP_SEC = -62_135_596_800
export const MAX_TIMESTAMP_SEC = 253_402_300_799
/** About 10,000 years: the range of a Duration, in both directions. */
const MAX_DURATION_SEC = 315_576_000_000n

interface SecondsAndNanos {
  readonly seconds: bigint
  readonly nanos: number
}

/**
 * Reads an RFC 3339 time with an offset. Days that do not exist are refused: Date.parse reads 30 February as 2 March, and
 * 24:00 as the next day.
 *
 * @returns undefined if the text is not such a time, or is outside the years 1 to 9999
 */
function parseTimestampText(text: string): SecondsAndNanos | undefined {
  const match = rfc3339.exec(text)
  if (match === null) return undefined
  const [, date = '', time = '', fraction, , offsetHours = '00', offsetMinutes = '00'] = match
  if (!isCalendarDay(date) || !(time < '24') || Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined

  const localMs = Date.parse(`${date}T${time}Z`)
  const sign = match[4]?.startsWith('-') ? -1 : 1
  const seconds = localMs / 1000 - sign * (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60)
  // Minutes and seconds above 59 give NaN, which fails both comparisons.
  if (!(seconds >= MIN_TIMESTAMP_SEC && seconds <= MAX_TIMESTAMP_SEC)) return undefined
  return { seconds: BigInt(seconds), nanos: parseNanos(fraction) }
}

/**
 * Reads a duration of seconds, `1.5s`.
 *
 * @returns undefined if the text is not a duration, or is longer than about 10,000 years
 */
function parseDurationText(text: string): SecondsAndNanos | undefined {
  const match = durationText.exec(text)
  if (match === null) return undefined
  const [, minus, whole = '', fraction] = match
  const seconds = BigInt(whole)
  const nanos = parseNanos(fraction)
  if (seconds > MAX_DURATION_SEC) return undefined
  return minus === '-' ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos }
}

/**
 * Reads the paths of a field mask, separated by commas, in the names of JSON or of proto.
 *
 * @returns proto names; undefined if one is not a path
 */
function parseFieldMaskText(text: string): string[] | undefined {
  if (text === '') return []
  const paths = text.split(',')
  if (!paths.every((path) => fieldMaskPath.test(path))) return undefined
  return paths.map((path) => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
}

/** How messages are read that JSON writes as one string, wrappers excepted. */
export const wellKnownReaders: ReadonlyMap<string, TextReader> = new Map([
  [
    TimestampSchema.typeName,
    {
      read: (text) => ifRead(parseTimestampText(text), (time) => create(TimestampSchema, time)),
      expectation: 'an RFC 3339 time with an offset, such as 2025-01-31T12:00:00Z',
    },
  ],
  [
    DurationSchema.typeName,
    {
      read: (text) => ifRead(parseDurationText(text), (duration) => create(DurationSchema, duration)),
      expectation: 'a duration in seconds, such as 1.5s',
    },
  ],
  [
    FieldMaskSchema.typeName,
    {
      read: (text) => ifRead(parseFieldMaskText(text), (paths) => create(FieldMaskSchema, { paths })),
      expectation: 'a list of field paths separated by commas',
    },
  ],
])

function ifRead<T>(value: T | undefined, make: (value: T) => Message): Message | undefined {
  return value === undefined ? undefined : make(value)
}

function isCalendarDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date)
}

function parseNanos(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, '0'))
}
