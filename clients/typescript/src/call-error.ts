import { Code, ConnectError } from '@connectrpc/connect'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../gen/google/rpc/error_details_pb.js'
import { type Route, RouteSchema } from '../gen/payments/v1/route_pb.js'
import type { Reason } from '../gen/reasons.js'

/** What is wrong with one field of a request. */
export interface FieldViolation {
  /** The field by its JSON name, `wallet`. */
  readonly field: string
  readonly reason: Reason
  readonly description: string
}

/** A call that failed. What it says is in its fields; the message is for people. */
export class WaybillCallError extends Error {
  override readonly name = 'WaybillCallError'
  /** The code of Connect and google.rpc, `invalid_argument`. */
  readonly code: string
  /**
   * The reason of the service's table, `REQUEST_NOT_FOUND`. `NETWORK` if no answer came, or not all of it; `NONE` if the answer names none. A
   * service that is newer than the client may name others.
   */
  readonly reason: Reason | 'NETWORK' | 'NONE'
  /** What the reason is about, by name. */
  readonly metadata: Readonly<Record<string, string>>
  /** Every field that was wrong. */
  readonly fieldViolations: readonly FieldViolation[]
  /** The `x-request-id` of the answer, for whoever reads the service's log. */
  readonly requestId: string | undefined
  /** After how many milliseconds the service takes the call again. */
  readonly retryAfterMs: number | undefined
  /** The new quote, where the reason is QUOTE_CHANGED. */
  readonly newQuote: Route | undefined

  constructor(cause: ConnectError) {
    const [info] = cause.findDetails(ErrorInfoSchema)
    super(cause.rawMessage, { cause })
    const isWithoutAnswer = !cause.isWireError && info === undefined && cause.code === Code.Unknown
    this.code = isWithoutAnswer ? 'unavailable' : nameOfCode(cause.code)
    this.reason = (info?.reason as Reason | undefined) ?? (isWithoutAnswer ? 'NETWORK' : 'NONE')
    this.metadata = info?.metadata ?? {}
    this.fieldViolations = cause
      .findDetails(BadRequestSchema)
      .flatMap(({ fieldViolations }) =>
        fieldViolations.map(({ field, reason, description }) => ({ field, reason: reason as Reason, description })),
      )
    this.requestId = cause.metadata.get('x-request-id') ?? undefined
    this.retryAfterMs = retryAfterMsOf(cause)
    this.newQuote = cause.findDetails(RouteSchema)[0]
  }
}

/** What a transport threw, as a value with fields. */
export function toCallError(thrown: unknown): WaybillCallError {
  return thrown instanceof WaybillCallError ? thrown : new WaybillCallError(ConnectError.from(thrown))
}

function nameOfCode(code: Code): string {
  return Code[code].replace(/(?<!^)[A-Z]/g, '_$&').toLowerCase()
}

/** RetryInfo of the details, else the header Retry-After in seconds. */
function retryAfterMsOf(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay
  if (delay !== undefined) return Number(delay.seconds) * 1_000 + Math.ceil(delay.nanos / 1_000_000)
  const header = error.metadata.get('retry-after')
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : undefined
}
