import { type Reason, type ReasonKind, reasons } from './reasons.ts'

/** Errors with a reason of the table, and the words for reasons wherever they stand. */

type ParametersOf<T extends string> = T extends `${string}{${infer P}}${infer Rest}` ? P | ParametersOf<Rest> : never

type TemplatesOf<R extends Reason> = (typeof reasons)[R]['message'] | (typeof reasons)[R]['remedy']

/** The parameters that a reason's message and remedy name. */
export type ReasonParameters<R extends Reason> = Readonly<Record<ParametersOf<TemplatesOf<R>>, string | number>>

/** A reason with its texts filled in. */
export interface Explanation {
  readonly reason: Reason
  readonly message: string
  readonly remedy: string
}

const LONGEST_VALUE = 120

/** What begins as API keys and tickets do, and as much of it as tells keys apart in a list. */
const API_KEYS = /(w[bt]_[0-9A-Za-z]{4})[0-9A-Za-z]{16,}/g

/** Callers send keys in other places than the header, and messages are logged where they and their proxies live. */
function withoutKeys(text: string): string {
  return text.replace(API_KEYS, '$1…')
}

/** Beyond that nothing of a value is looked at: what is hostile may have 64 KiB. */
const LONGEST_LOOKED_AT = 4_000

/** Without a key that was cut off in the middle, which nothing would know for one. */
function beginningOf(value: string): string {
  if (value.length <= LONGEST_LOOKED_AT) return value
  return value.slice(0, LONGEST_LOOKED_AT).replace(/w[bt]_[0-9A-Za-z]*$/, '')
}

/** Shorter than any key, and nothing that need be hidden: nearly all values, known without looking further. */
const PLAIN_AND_SHORT = /^[ -~]{0,22}$/

/** Cuts a value that came from outside to what a message can show: no control characters, no API key, and not long. */
export function printable(value: string | number, longest = LONGEST_VALUE): string {
  const whole = String(value)
  if (longest > 22 && PLAIN_AND_SHORT.test(whole)) return whole
  const text = withoutKeys(beginningOf(whole).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}]/gu, '\uFFFD'))
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

/** Parameters that hold our own words, not a caller's: lists of names, which are of use only when whole. */
const ownWords: ReadonlySet<string> = new Set(['suggestion', 'known', 'expected', 'allow', 'calls', 'why', 'remedy'])
const LONGEST_OWN_WORDS = 2_000

function shown(name: string, value: string | number): string {
  return ownWords.has(name) ? printable(value, LONGEST_OWN_WORDS) : printable(value)
}

/** Templates of the table taken apart: text and names in turn. */
const partsOf = new Map<string, readonly string[]>()

function fill(template: string, parameters: Readonly<Record<string, string | number>>): string {
  let parts = partsOf.get(template)
  if (parts === undefined) {
    parts = template.split(/\{(\w+)\}/)
    partsOf.set(template, parts)
  }
  return parts.map((part, i) => (i % 2 === 0 ? part : shown(part, parameters[part] ?? ''))).join('')
}

/**
 * Fills a reason's message and remedy with values.
 *
 * @param parameters - one for each `{name}` of the two templates; cut to 120 printable characters, our own lists and sentences to 2,000
 */
export function explain<R extends Reason>(reason: R, parameters: ReasonParameters<R>): Explanation {
  const entry = reasons[reason]
  return { reason, message: fill(entry.message, parameters), remedy: fill(entry.remedy, parameters) }
}

/** What `explain` says as one sentence: what was wrong, then what to do. */
export function explainInOneLine<R extends Reason>(reason: R, parameters: ReasonParameters<R>): string {
  const { message, remedy } = explain(reason, parameters)
  return remedy === '' ? message : `${message}; ${remedy}`
}

/** One field of a request that was wrong. */
export interface FieldViolation {
  /** Path of the field by JSON names, `status[2]`. */
  readonly field: string
  readonly reason: Reason
  readonly description: string
}

/**
 * An error with a reason of the table; the only kind that reaches a caller with its message.
 * Its `metadata` goes out with the reason: never put a secret in.
 */
export class WaybillError extends Error {
  override readonly name = 'WaybillError'
  readonly reason: Reason
  readonly metadata: Readonly<Record<string, string>>
  /** The fields that were wrong; the first is the one that the message speaks of. */
  readonly violations: readonly FieldViolation[]

  /** Use {@link waybillError}, which checks the parameters against the templates. */
  constructor(
    reason: Reason,
    message: string,
    metadata: Readonly<Record<string, string>>,
    options: WaybillErrorOptions,
  ) {
    super(withoutKeys(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.metadata = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, withoutKeys(value)]))
    const field = metadata.field
    const violations = options.violations ?? (field === undefined ? [] : [{ field, reason, description: message }])
    this.violations = violations.map((each) => ({
      ...each,
      field: withoutKeys(each.field),
      description: withoutKeys(each.description),
    }))
  }
}

interface WaybillErrorOptions {
  readonly cause?: unknown
  readonly violations?: readonly FieldViolation[]
}

/**
 * Makes an error of a reason.
 *
 * @param parameters - what the reason's templates name; `field` (by JSON name) also becomes a field violation
 * @param options - `cause`, and `violations` where more than one field was wrong
 * @example throw waybillError('INVALID_TX_HASH', { field: 'txHash', value: '0x12' })
 */
export function waybillError<R extends Reason>(
  reason: R,
  parameters: ReasonParameters<R>,
  options: WaybillErrorOptions = {},
): WaybillError {
  const metadata: Record<string, string> = {}
  for (const [name, value] of Object.entries(parameters as Record<string, string | number>)) {
    metadata[name] = shown(name, value)
  }
  return new WaybillError(reason, explainInOneLine(reason, parameters), metadata, options)
}

/** The kind of a reason. */
export function kindOf(reason: Reason): ReasonKind {
  return reasons[reason].kind
}
