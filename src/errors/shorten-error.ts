import { MAX_VIOLATIONS } from './gather-errors.ts'
import type { Reason } from './reasons.ts'
import { shorten } from './shorten.ts'
import { explain, type FieldViolation, inOneLine, type ReasonParameters, type WaybillError } from './waybill-error.ts'

/** What an error says. */
export interface ErrorTexts {
  readonly message: string
  readonly metadata: Readonly<Record<string, string>>
  /** Where some are left out, the last one names no field and counts them. */
  readonly violations: readonly FieldViolation[]
}

/** The most bytes of a value, percent-encoded, from one form of an error to the next. */
const VALUE_SIZES = [800, 400, 200, 100, 50]

/** The least to which a description is cut, and a message that was not made of its reason's template. */
const MIN_TEXT_SIZE = 200

/**
 * Writes an error so that it fits. First its values and descriptions are cut, then violations are left out, the last ones first. What is left
 * out is counted.
 *
 * @param write - writes the texts
 * @param fits - whether what was written is short enough
 * @returns the first form that fits, else the shortest, which lists one violation
 */
export function writeToFit<T>(error: WaybillError, write: (texts: ErrorTexts) => T, fits: (written: T) => boolean): T {
  const { message, metadata } = error
  let texts: ErrorTexts = { message, metadata, violations: error.violations.slice(0, MAX_VIOLATIONS) }
  let written = write(countingRest(error, texts))
  if (fits(written)) return written
  const isOfTemplate = explainAgain(error, metadata) === message
  for (const size of VALUE_SIZES) {
    texts = cutTo(size, error, texts, isOfTemplate)
    written = write(countingRest(error, texts))
    if (fits(written)) return written
  }
  for (let count = texts.violations.length - 1; count > 0; count--) {
    written = write(countingRest(error, { ...texts, violations: texts.violations.slice(0, count) }))
    if (fits(written)) break
  }
  return written
}

function explainAgain({ reason }: WaybillError, metadata: Readonly<Record<string, string>>): string {
  return inOneLine(explain(reason, metadata as ReasonParameters<Reason>))
}

function cutTo(size: number, error: WaybillError, before: ErrorTexts, isOfTemplate: boolean): ErrorTexts {
  const metadata = Object.fromEntries(
    Object.entries(before.metadata).map(([name, text]) => [name, shorten(text, size)]),
  )
  const cutText = (text: string) => shorten(text, Math.max(size, MIN_TEXT_SIZE))
  const message = isOfTemplate ? explainAgain(error, metadata) : cutText(before.message)
  const violations = before.violations.map(({ field, reason, description }) => ({
    field: shorten(field, MIN_TEXT_SIZE),
    reason,
    description: description === before.message ? message : cutText(description),
  }))
  return { message, metadata, violations }
}

/** Adds the violation that counts those that are left out, if any are. */
function countingRest(error: WaybillError, texts: ErrorTexts): ErrorTexts {
  const { violations, unlisted, reason } = error
  const listed = texts.violations.length
  const count = violations.length - listed + unlisted.count
  const more = count === 0 ? [] : [`and ${count} more`]
  const description = [...more, ...(unlisted.isRestUnchecked ? ['the rest was not checked'] : [])].join('; ')
  if (description === '') return texts
  const rest = { field: '', reason: violations[listed]?.reason ?? reason, description }
  return { ...texts, violations: [...texts.violations, rest] }
}
