import { type Reason, type ReasonKind, reasons } from './reasons.ts'
import { shorten } from './shorten.ts'

/** Errors with a reason of the table, and the texts of reasons. */

type ParametersOf<T extends string> = T extends `${string}{${infer P}}${infer Rest}` ? P | ParametersOf<Rest> : never

type TemplatesOf<R extends Reason> = (typeof reasons)[R]['message'] | (typeof reasons)[R]['remedy']

/** The parameters that a reason's message and remedy name. */
export type ReasonParameters<R extends Reason> = Readonly<Record<ParametersOf<TemplatesOf<R>>, string | number>>

/** A reason with its texts filled in. */
export interface Explanation {
  readonly reason: Reason
  readonly message: string
  readonly remedy: string
  /** Values that programs may act on, by name; absent where there are none. */
  readonly metadata?: Readonly<Record<string, string>>
}

const MAX_VALUE_LENGTH = 120

/** API keys, tickets and secrets of webhooks. The group is the part that may be shown, which tells keys apart in a list. */
const API_KEYS = /((?:wbp?|wt|whsec)_[0-9A-Za-z+/]{4})[0-9A-Za-z+/=]{16,}/g

/** Callers send keys in other places than the header, and error messages are logged on their side. */
function withoutKeys(text: string): string {
  return text.replace(API_KEYS, '$1…')
}

/** Only the beginning of a value is read: a hostile one may have 64 KiB. */
const MAX_READ_LENGTH = 4_000

/** The beginning of a value, without a key that is cut off at its end and would not be recognised. */
function beginningOf(value: string): string {
  if (value.length <= MAX_READ_LENGTH) return value
  return value.slice(0, MAX_READ_LENGTH).replace(/(?:wbp?|wt|whsec)_[0-9A-Za-z+/]*$/, '')
}

/** Short printable ASCII, as nearly all values are: too short for a key, and nothing to replace. */
const PLAIN_AND_SHORT = /^[ -~]{0,22}$/

/** Makes a value from outside fit for a message: without control characters and API keys, and not too long. */
export function printable(value: string | number, maxLength = MAX_VALUE_LENGTH): string {
  const whole = String(value)
  if (maxLength > 22 && PLAIN_AND_SHORT.test(whole)) return whole
  const text = withoutKeys(beginningOf(whole).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}]/gu, '\uFFFD'))
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}

/** Parameters that hold texts of our own, such as lists of names. */
const ownTexts: ReadonlySet<string> = new Set(['suggestion', 'known', 'expected', 'allow', 'calls', 'why', 'remedy'])

/** Of a text of our own, percent-encoded as in `grpc-message`. */
const MAX_OWN_TEXT_SIZE = 2_000

function shown(name: string, value: string | number): string {
  return ownTexts.has(name) ? shorten(printable(value, MAX_READ_LENGTH), MAX_OWN_TEXT_SIZE) : printable(value)
}

/** Templates of the table split into texts and names, alternating. */
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
 * @param parameters - one for each `{name}` of the two templates; values of callers are cut to 120 printable characters, texts of our own
 *   to 2,000 bytes
 */
export function explain<R extends Reason>(reason: R, parameters: ReasonParameters<R>): Explanation {
  const entry = reasons[reason]
  const texts = { message: fill(entry.message, parameters), remedy: fill(entry.remedy, parameters) }
  const names = SHOWN_VALUES[reason]
  if (names === undefined) return { reason, ...texts }
  const given = parameters as Readonly<Record<string, string | number>>
  return { reason, ...texts, metadata: Object.fromEntries(names.map((name) => [name, String(given[name])])) }
}

/** What pages show of a reason in the words of their own language. */
const SHOWN_VALUES: { readonly [R in Reason]?: readonly (keyof ReasonParameters<R>)[] } = {
  INSUFFICIENT_BALANCE: ['missing', 'token', 'chain'],
  CROSSCHAIN_BALANCE_TOO_LOW: ['missing', 'token', 'chain'],
  INSUFFICIENT_GAS: ['missing', 'currency', 'chain'],
  PAYER_SCREENED: ['chain', 'at', 'changedAt'],
}

/** Message and remedy as one sentence: what was wrong, then what to do. */
export function inOneLine({ message, remedy }: Pick<Explanation, 'message' | 'remedy'>): string {
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
 * Its `metadata` is sent with the reason: never put a secret into it.
 */
export class WaybillError extends Error {
  override readonly name = 'WaybillError'
  readonly reason: Reason
  readonly metadata: Readonly<Record<string, string>>
  /** The fields that were wrong. The message is about the first. */
  readonly violations: readonly FieldViolation[]
  /** How many more were wrong, and whether more than those may be: see {@link Unlisted}. */
  readonly unlisted: Unlisted

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
    this.unlisted = options.unlisted ?? ALL_LISTED
    const field = metadata.field
    const violations = options.violations ?? (field === undefined ? [] : [{ field, reason, description: message }])
    this.violations = violations.map((each) => ({
      ...each,
      field: withoutKeys(each.field),
      description: withoutKeys(each.description),
    }))
  }
}

/** Violations beside those that an error lists. */
export interface Unlisted {
  /** How many are known. */
  readonly count: number
  /** Whether the rest of the input was not checked. */
  readonly isRestUnchecked: boolean
}

const ALL_LISTED: Unlisted = { count: 0, isRestUnchecked: false }

interface WaybillErrorOptions {
  readonly cause?: unknown
  readonly violations?: readonly FieldViolation[]
  readonly unlisted?: Unlisted
}

/**
 * Makes an error of a reason.
 *
 * @param parameters - one for each `{name}` of the reason's templates; `field`, a JSON name, also becomes a field violation
 * @param options - `cause`, and `violations` if more than one field was wrong
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
  return new WaybillError(reason, inOneLine(explain(reason, parameters)), metadata, options)
}

/** The kind of a reason. */
export function kindOf(reason: Reason): ReasonKind {
  return reasons[reason].kind
}
