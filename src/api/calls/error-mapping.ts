import { create, type DescMessage, type JsonObject, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.js'
import { type Reason, type ReasonKind } from '../../errors/reasons.ts'
import { shorten } from '../../errors/shorten.ts'
import { type ErrorTexts, writeToFit } from '../../errors/shorten-error.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { Protocol } from './call.ts'

/** `domain` of google.rpc.ErrorInfo. */
const DOMAIN = 'waybill'

const TYPE_URL = 'type.googleapis.com/'

/** The code and the HTTP status of an error. gRPC has no use for the status. */
export interface WireForm {
  readonly code: Code
  readonly httpStatus: number
}

const codeOfKind: Readonly<Record<ReasonKind, Code>> = {
  INVALID_INPUT: Code.InvalidArgument,
  UNAUTHENTICATED: Code.Unauthenticated,
  FORBIDDEN: Code.PermissionDenied,
  NOT_FOUND: Code.NotFound,
  CONFLICT: Code.AlreadyExists,
  PRECONDITION: Code.FailedPrecondition,
  LIMITED: Code.ResourceExhausted,
  UNSUPPORTED: Code.Unimplemented,
  CANCELLED: Code.Canceled,
  TIMEOUT: Code.DeadlineExceeded,
  UNAVAILABLE: Code.Unavailable,
  INTERNAL: Code.Internal,
  // A notice is not an error: throwing one is a mistake of this program.
  NOTICE: Code.Internal,
}

/** Reasons whose code or status differs from that of their kind. */
const specialForms: Partial<Record<Reason, WireForm>> = {
  CURSOR_EXPIRED: { code: Code.OutOfRange, httpStatus: 400 },
  // 409 as for ALREADY_EXISTS, but nothing exists: the caller is to ask again.
  QUOTE_CHANGED: { code: Code.Aborted, httpStatus: 409 },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, httpStatus: 405 },
  METHOD_NOT_FOUND: { code: Code.Unimplemented, httpStatus: 404 },
  NOT_ACCEPTABLE: { code: Code.InvalidArgument, httpStatus: 406 },
  REQUEST_TOO_SLOW: { code: Code.DeadlineExceeded, httpStatus: 408 },
  BODY_TOO_LARGE: { code: Code.ResourceExhausted, httpStatus: 413 },
  UNSUPPORTED_CONTENT_TYPE: { code: Code.InvalidArgument, httpStatus: 415 },
  UNSUPPORTED_CONTENT_ENCODING: { code: Code.InvalidArgument, httpStatus: 415 },
  // INTERNAL by the specifications of gRPC ("Compression", "Test cases") and of Connect, although the mistake is the caller's.
  UNSTATED_COMPRESSION: { code: Code.Internal, httpStatus: 400 },
  HEADERS_TOO_LARGE: { code: Code.InvalidArgument, httpStatus: 431 },
}

/** Reasons for which gRPC, gRPC-Web and Connect prescribe another form than REST has. */
const rpcForms: Partial<Record<Reason, WireForm>> = {
  UNSUPPORTED_CONTENT_ENCODING: { code: Code.Unimplemented, httpStatus: 501 },
}

/** The code and the HTTP status of a reason; the statuses are those to which grpc-gateway maps the codes. */
export function wireFormOf(reason: Reason, protocol: Protocol): WireForm {
  const special = (protocol === 'rest' ? undefined : rpcForms[reason]) ?? specialForms[reason]
  if (special !== undefined) return special
  const code = codeOfKind[kindOf(reason)]
  return { code, httpStatus: codeToHttpStatus(code) }
}

/** The name of a code in JSON and in logs, `invalid_argument`; `ok` for none. */
export function codeName(code: Code | undefined): string {
  return code === undefined ? 'ok' : codeToString(code)
}

/**
 * A ConnectError that a handler threw, with the code and the details that it chose. Handlers of this project throw reasons; services
 * from elsewhere may be served as well.
 */
class ForeignError extends WaybillError {
  override readonly cause: ConnectError

  constructor(cause: ConnectError) {
    super('INTERNAL', cause.rawMessage, {}, { cause })
    this.cause = cause
  }
}

/** As {@link wireFormOf}, for an error whose handler may have chosen its code. */
export function wireFormOfError(error: WaybillError, protocol: Protocol): WireForm {
  if (!(error instanceof ForeignError)) return wireFormOf(error.reason, protocol)
  const { code } = error.cause
  return { code, httpStatus: codeToHttpStatus(code) }
}

/** Recognises failures of the database; undefined for all others. */
export type ClassifyFailure = (error: unknown) => 'DATABASE_TIMEOUT' | 'DATABASE_UNAVAILABLE' | undefined

/**
 * Turns whatever was thrown into an error that may be sent. An unknown failure becomes INTERNAL, whose message says nothing about the
 * cause; the cause stays on the error, for the log. A ConnectError keeps its code, message and details.
 */
export function toWaybillError(thrown: unknown, classify: ClassifyFailure): WaybillError {
  if (thrown instanceof WaybillError) return thrown
  if (thrown instanceof ConnectError) return new ForeignError(thrown)
  return waybillError(classify(thrown) ?? 'INTERNAL', {}, { cause: thrown })
}

interface Detail {
  readonly desc: DescMessage
  readonly message: Message
}

const sentAlong = new WeakMap<WaybillError, readonly Detail[]>()

/**
 * Adds a message of the API to the details of an error, as the last one.
 *
 * @param forms - the message, then shorter forms of it, for an error that would not fit
 * @returns the error
 */
export function sendAlong(error: WaybillError, ...forms: readonly Detail[]): WaybillError {
  sentAlong.set(error, forms)
  return error
}

/** A detail in its two encodings. JSON is missing where a foreign handler gave bytes alone. */
interface WrittenDetail {
  readonly type: string
  readonly value: Uint8Array
  readonly json: JsonObject | undefined
}

/** An error as all protocols send it. */
interface WrittenError {
  readonly message: string
  readonly details: readonly WrittenDetail[]
}

/**
 * The most bytes of the three fields that an error has in gRPC, names included, and 32 for each field as HPACK counts them. Proxies take 4
 * KiB of headers or trailers (nginx: `grpc_buffer_size`), and an answer without a message has all its headers in one block with them: request
 * id, rate limits, date, 512 bytes at most.
 */
export const MAX_ERROR_BYTES = 4_096 - 512

/**
 * Writes an error so that it fits into the trailers of gRPC. The other protocols say the same, since the same mistake has the same details
 * everywhere.
 */
function writeError(error: WaybillError): WrittenError {
  if (error instanceof ForeignError) return writeForeignError(error)
  const writeWith = (along: Detail | undefined) => {
    const write = (texts: ErrorTexts): WrittenError => {
      return { message: texts.message, details: detailsOf(error, texts, along).map(writeDetail) }
    }
    return writeToFit(error, write, (written) => fits(error, written))
  }
  // The message that goes along is left out only if no form of it fits.
  for (const along of sentAlong.get(error) ?? []) {
    const written = writeWith(along)
    if (fits(error, written)) return written
  }
  return writeWith(undefined)
}

/** The last details of an error of a foreign handler are left out where they do not fit. */
function writeForeignError(error: ForeignError): WrittenError {
  const message = shorten(error.message, MAX_FOREIGN_MESSAGE_BYTES)
  const details = error.cause.details.map(writeForeign)
  while (details.length > 0 && !fits(error, { message, details })) details.pop()
  return { message, details }
}

/** Twice in the trailers, once in base64: half of what fits. */
const MAX_FOREIGN_MESSAGE_BYTES = 1_500

function fits(error: WaybillError, written: WrittenError): boolean {
  // Nearly all errors are short. A character takes at most 9 bytes with percent signs and 4 in base64, a detail 60 beside its own bytes.
  const most = written.details.reduce(
    (sum, { value }) => sum + (value.length + 60) * (4 / 3),
    written.message.length * 13,
  )
  if (most + 256 <= MAX_ERROR_BYTES) return true
  const fields = Object.entries(trailersOf(error, written))
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0) <= MAX_ERROR_BYTES
}

function writeDetail({ desc, message }: Detail): WrittenDetail {
  const json = toJson(desc, message, { alwaysEmitImplicit: true }) as JsonObject
  return { type: desc.typeName, value: toBinary(desc, message), json }
}

function writeForeign(detail: ConnectError['details'][number]): WrittenDetail {
  if ('desc' in detail) return writeDetail({ desc: detail.desc, message: create(detail.desc, detail.value) })
  return { type: detail.type, value: detail.value, json: undefined }
}

/** The typed details of an error, the same on every protocol: reason, violations, when to retry, and the message of {@link sendAlong}. */
function detailsOf(error: WaybillError, texts: ErrorTexts, along: Detail | undefined): readonly Detail[] {
  const { reason } = error
  const metadata = { ...texts.metadata }
  const details: Detail[] = [
    { desc: ErrorInfoSchema, message: create(ErrorInfoSchema, { reason, domain: DOMAIN, metadata }) },
  ]
  if (texts.violations.length > 0) {
    const fieldViolations = texts.violations.map(({ field, reason, description }) => ({ field, reason, description }))
    details.push({ desc: BadRequestSchema, message: create(BadRequestSchema, { fieldViolations }) })
  }
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) {
    const retryDelay = { seconds: BigInt(retryAfter) }
    details.push({ desc: RetryInfoSchema, message: create(RetryInfoSchema, { retryDelay }) })
  }
  return along === undefined ? details : [...details, along]
}

/** Seconds after which a place may be free, or the database back. A stream holds its place for longer than a call. */
const retrySeconds: Partial<Record<Reason, number>> = {
  DATABASE_UNAVAILABLE: 5,
  OVERLOADED: 1,
  TOO_MANY_CONNECTIONS: 1,
  TOO_MANY_OPEN_BODIES: 1,
  TOO_MANY_STREAMS: 5,
  TOO_MANY_PAGE_STREAMS: 5,
}

/** After how many whole seconds the caller may retry; undefined where the error does not say. */
export function retryAfterSeconds({ reason, metadata }: WaybillError): number | undefined {
  if (retrySeconds[reason] !== undefined) return retrySeconds[reason]
  if (reason !== 'RATE_LIMITED' && reason !== 'TOO_MANY_AT_ONCE') return undefined
  const seconds = Math.ceil(Number(metadata.retryAfterSeconds))
  return Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : undefined
}

/** The body of an error over plain HTTP: google.rpc.Status in JSON, with the code by name. */
export function httpErrorBody(error: WaybillError): string {
  const { message, details } = writeError(error)
  const written = details.map(({ type, value, json }) => ({
    '@type': TYPE_URL + type,
    ...(json ?? { value: Buffer.from(value).toString('base64') }),
  }))
  return JSON.stringify({ code: codeName(wireFormOfError(error, 'rest').code), message, details: written })
}

/** An error as JSON in the Connect protocol: the body of a unary answer, `error` in the last message of a stream. */
export function connectErrorJson(error: WaybillError): JsonObject {
  const { message, details } = writeError(error)
  const written = details.map(({ type, value, json }) => ({
    type,
    value: Buffer.from(value).toString('base64').replace(/=+$/, ''),
    ...(json && { debug: json }),
  }))
  return { code: codeName(wireFormOfError(error, 'connect').code), message, details: written }
}

/** The metadata of a ConnectError; undefined for errors of this project. */
export function metadataOf(error: WaybillError): Headers | undefined {
  return error instanceof ForeignError ? error.cause.metadata : undefined
}

/** The trailers of an error in gRPC and gRPC-Web: at most {@link MAX_ERROR_BYTES}. */
export function grpcErrorTrailers(error: WaybillError): Record<string, string> {
  return trailersOf(error, writeError(error))
}

function trailersOf(error: WaybillError, { message, details }: WrittenError): Record<string, string> {
  const { code } = wireFormOfError(error, 'grpc')
  const packed = details.map(({ type, value }) => create(AnySchema, { typeUrl: TYPE_URL + type, value }))
  const status = toBinary(StatusSchema, create(StatusSchema, { code, message, details: packed }))
  return {
    'grpc-status': String(code),
    'grpc-message': encodeGrpcMessage(message),
    'grpc-status-details-bin': Buffer.from(status).toString('base64').replace(/=+$/, ''),
  }
}

/**
 * Percent-encodes a text for `grpc-message`: the percent sign and all that is not printable ASCII. Nothing else, since grpc-js does not
 * decode other escapes.
 */
export function encodeGrpcMessage(message: string): string {
  return message.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent)
}
