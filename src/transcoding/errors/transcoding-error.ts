import type { Message } from '@bufbuild/protobuf'

/**
 * What is wrong with a request that a route cannot decode. The set is closed, so that the caller can map every kind to a reason
 * with an exhaustive switch.
 */
export type TranscodingErrorKind =
  /** A query parameter that no field of the request has. */
  | 'UNKNOWN_PARAMETER'
  /** A value in path, query or body that its field does not accept. */
  | 'INVALID_VALUE'
  /** A singular field given twice in the query. */
  | 'DUPLICATE_PARAMETER'
  /** Two members of one oneof. */
  | 'ONEOF_CONFLICT'
  /** A query parameter, or a different value in the body, for a field that the path binds. */
  | 'PATH_VARIABLE_OVERRIDDEN'
  /** A query parameter for a field that is bound in the body. */
  | 'BODY_FIELD_OVERRIDDEN'
  /** A query parameter for a field that a query cannot carry: a map, a list of messages, or a whole message. */
  | 'NOT_MAPPABLE'
  /** A `%` that is not followed by two hexadecimal digits. */
  | 'MALFORMED_ESCAPE'
  /** Bytes, escaped or not, that are not UTF-8. */
  | 'INVALID_UTF8'
  /** A body that is not JSON. */
  | 'MALFORMED_JSON'
  /** A key of a body that no field has. */
  | 'UNKNOWN_JSON_FIELD'
  /** A key given twice in one object of a body. */
  | 'DUPLICATE_JSON_FIELD'
  /** A body, or a parameter's dotted path, nested deeper than the limit. */
  | 'TOO_DEEP'
  /** A body with more values than the limit. */
  | 'TOO_MANY_VALUES'
  /** A body where the route accepts none. */
  | 'UNEXPECTED_BODY'

export interface TranscodingErrorDetails {
  /** The parameter, variable or JSON path as the caller wrote it; absent if the whole body or path is meant. */
  readonly field?: string | undefined
  /** The whole offending text. */
  readonly value?: string | undefined
  /** The name to send instead, where the request makes it certain. */
  readonly suggestion?: string | undefined
  /** For an unknown parameter or JSON field: the names that are known in its place. */
  readonly known?: readonly string[] | undefined
  readonly cause?: unknown
}

/** A request that cannot be decoded: always the caller's mistake, never the server's. */
export class TranscodingError extends Error {
  override readonly name = 'TranscodingError'
  readonly kind: TranscodingErrorKind
  readonly field: string | undefined
  readonly value: string | undefined
  readonly suggestion: string | undefined
  readonly known: readonly string[]
  /** Other mistakes of the same request. */
  others: readonly TranscodingError[] = []
  /** The request without its wrong values; undefined where nothing can be said of the rest. */
  decoded: Message | undefined

  /** @param problem - what was wrong, without the suggestion, which is added */
  constructor(kind: TranscodingErrorKind, problem: string, details: TranscodingErrorDetails = {}) {
    const { field, value, suggestion, known = [], cause } = details
    super(suggestion === undefined ? problem : `${problem}; did you mean ${quote(suggestion)}?`, { cause })
    this.kind = kind
    this.field = field
    this.value = value
    this.suggestion = suggestion
    this.known = known
  }
}

/** Takes a mistake in one value of a request, so that the others are read as well; throws to end the reading. */
export type ReportMistake = (error: TranscodingError) => void

/** Ends the reading with the first mistake. */
export function throwMistake(error: TranscodingError): never {
  throw error
}

/** The most mistakes that are looked for in one request. */
const MAX_MISTAKES = 16

/**
 * Decodes a message by steps that report their mistakes.
 *
 * @throws TranscodingError for the first mistake, with the others and what could be read in spite of them
 */
export function decodeReporting(message: Message, decode: (report: ReportMistake) => void): Message {
  const errors: TranscodingError[] = []
  let isWhole = false
  try {
    decode((error) => {
      if (errors.length === MAX_MISTAKES - 1) throw error
      errors.push(error)
    })
    isWhole = true
  } catch (error) {
    if (!(error instanceof TranscodingError)) throw error
    errors.push(error)
  }
  const [first, ...others] = errors
  if (first === undefined) return message
  first.others = others
  first.decoded = isWhole ? message : undefined
  throw first
}

/** Reports a mistake that was thrown. Any other failure is thrown again. */
export function reportThrown(thrown: unknown, report: ReportMistake): void {
  if (!(thrown instanceof TranscodingError)) throw thrown
  report(thrown)
}

/** In UTF-16 units. */
const MAX_QUOTE_LENGTH = 100

/** Quotes a caller's text for a message, escaped and cut to 100 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}…` : text)
}
