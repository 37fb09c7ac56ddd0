import { create, type DescMessage, type JsonObject, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToString } from '@connectrpc/connect/protocol-connect'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.js'
import { type Reason, type ReasonKind } from '../../errors/reasons.ts'
import { kindOf, WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { httpStatusOf } from '../../transcoding/http-status.ts'

/** `domain` of google.rpc.ErrorInfo: whose reasons these are. */
const DOMAIN = 'waybill'

const TYPE_URL = 'type.googleapis.com/'

/** How a reason looks on the wire: on gRPC and Connect by its code, over HTTP by its status too. */
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
  // A notice that was thrown is a mistake of this program.
  NOTICE: Code.Internal,
}

/** What has a code or a status of its own, where its kind has another. */
const specialForms: Partial<Record<Reason, WireForm>> = {
  CURSOR_EXPIRED: { code: Code.OutOfRange, httpStatus: 400 },
  CURSOR_AHEAD: { code: Code.OutOfRange, httpStatus: 400 },
  // 409 as well, but nothing exists already: the caller is to look again.
  QUOTE_CHANGED: { code: Code.Aborted, httpStatus: 409 },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, httpStatus: 405 },
  METHOD_NOT_FOUND: { code: Code.Unimplemented, httpStatus: 404 },
  NOT_ACCEPTABLE: { code: Code.InvalidArgument, httpStatus: 406 },
  REQUEST_TOO_SLOW: { code: Code.DeadlineExceeded, httpStatus: 408 },
  BODY_TOO_LARGE: { code: Code.InvalidArgument, httpStatus: 413 },
  UNSUPPORTED_CONTENT_TYPE: { code: Code.InvalidArgument, httpStatus: 415 },
  UNSUPPORTED_CONTENT_ENCODING: { code: Code.InvalidArgument, httpStatus: 415 },
  TOO_MANY_HEADERS: { code: Code.InvalidArgument, httpStatus: 431 },
  HEADERS_TOO_LARGE: { code: Code.InvalidArgument, httpStatus: 431 },
}

/** The code and the HTTP status of a reason, the statuses as grpc-gateway maps the codes. */
export function wireFormOf(reason: Reason): WireForm {
  const special = specialForms[reason]
  if (special !== undefined) return special
  const code = codeOfKind[kindOf(reason)]
  return { code, httpStatus: httpStatusOf(code) }
}

/** The name of a code in JSON and in logs, `invalid_argument`; `ok` for none. */
export function codeName(code: Code | undefined): string {
  return code === undefined ? 'ok' : codeToString(code)
}

/**
 * An error that a handler threw as connect's own, with a code and details of its choice. Handlers of this project have
 * reasons; this is for services from elsewhere.
 */
class ForeignError extends WaybillError {
  override readonly cause: ConnectError

  constructor(cause: ConnectError) {
    super('INTERNAL', cause.rawMessage, {}, { cause })
    this.cause = cause
  }
}

/** As {@link wireFormOf}, of an error that may have come with a code. */
export function wireFormOfError(error: WaybillError): WireForm {
  if (!(error instanceof ForeignError)) return wireFormOf(error.reason)
  const { code } = error.cause
  return { code, httpStatus: httpStatusOf(code) }
}

/** Recognises failures of what lies beneath, the database above all; undefined for what it does not know. */
export type ClassifyFailure = (error: unknown) => 'DATABASE_TIMEOUT' | 'DATABASE_UNAVAILABLE' | undefined

/**
 * Turns whatever was thrown into an error that may go out. What nobody knows becomes INTERNAL, which says nothing of its
 * cause; the cause stays on the error for the log.
 */
export function toWaybillError(thrown: unknown, classify: ClassifyFailure): WaybillError {
  if (thrown instanceof WaybillError) return thrown
  if (thrown instanceof ConnectError) return fromConnectError(thrown)
  return waybillError(classify(thrown) ?? 'INTERNAL', {}, { cause: thrown })
}

/** As {@link toWaybillError}, of what came out of a handler, which may throw errors of connect itself. */
export function fromHandler(thrown: unknown, classify: ClassifyFailure): WaybillError {
  return thrown instanceof ConnectError ? new ForeignError(thrown) : toWaybillError(thrown, classify)
}

/** What connect raises by itself, while it reads a stream. */
export function fromConnectError(error: ConnectError): WaybillError {
  const options = { cause: error }
  if (error.code === Code.Canceled) return waybillError('CALL_CANCELLED', {}, options)
  const limit = error.code === Code.ResourceExhausted ? /readMaxBytes (\d+)$/.exec(error.rawMessage)?.[1] : undefined
  if (limit !== undefined) return waybillError('BODY_TOO_LARGE', { limit }, options)
  if (codesOfBadInput.has(error.code)) return waybillError('MALFORMED_BODY', { detail: error.rawMessage }, options)
  return waybillError('INTERNAL', {}, options)
}

const codesOfBadInput = new Set([Code.InvalidArgument, Code.ResourceExhausted, Code.Unimplemented])

interface Detail {
  readonly desc: DescMessage
  readonly message: Message
}

const sentAlong = new WeakMap<WaybillError, Detail>()

/** Has a message of the API go out with an error, as its last detail on every protocol. @returns the error */
export function sendAlong(error: WaybillError, detail: Detail): WaybillError {
  sentAlong.set(error, detail)
  return error
}

/** The details of an error as they are written: the name of their type, their bytes and, where the type is known, JSON. */
interface WrittenDetail {
  readonly type: string
  readonly value: Uint8Array
  readonly json: JsonObject | undefined
}

function writeDetails(error: WaybillError): readonly WrittenDetail[] {
  if (error instanceof ForeignError) return error.cause.details.map(writeForeign)
  return detailsOf(error).map(({ desc, message }) => writeDetail(desc, message))
}

function writeDetail(desc: DescMessage, message: Message): WrittenDetail {
  const json = toJson(desc, message, { alwaysEmitImplicit: true }) as JsonObject
  return { type: desc.typeName, value: toBinary(desc, message), json }
}

function writeForeign(detail: ConnectError['details'][number]): WrittenDetail {
  if ('desc' in detail) return writeDetail(detail.desc, create(detail.desc, detail.value))
  return { type: detail.type, value: detail.value, json: undefined }
}

/** The typed details of an error, the same on every protocol: the reason, the fields that were wrong, when to come back, what is sent along. */
function detailsOf(error: WaybillError): readonly Detail[] {
  const { reason, metadata, violations } = error
  const details: Detail[] = [
    { desc: ErrorInfoSchema, message: create(ErrorInfoSchema, { reason, domain: DOMAIN, metadata: { ...metadata } }) },
  ]
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ field, reason, description }) => ({ field, reason, description }))
    details.push({ desc: BadRequestSchema, message: create(BadRequestSchema, { fieldViolations }) })
  }
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) {
    const retryDelay = { seconds: BigInt(retryAfter) }
    details.push({ desc: RetryInfoSchema, message: create(RetryInfoSchema, { retryDelay }) })
  }
  const along = sentAlong.get(error)
  return along === undefined ? details : [...details, along]
}

/** How long the caller is to wait, in whole seconds; undefined where the error says nothing of it. */
export function retryAfterSeconds({ reason, metadata }: WaybillError): number | undefined {
  if (reason === 'OVERLOADED' || reason === 'TOO_MANY_CONNECTIONS') return 1
  if (reason !== 'RATE_LIMITED' && reason !== 'TOO_MANY_AT_ONCE') return undefined
  const seconds = Math.ceil(Number(metadata.retryAfterSeconds))
  return Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : undefined
}

/** The body of an error over plain HTTP: google.rpc.Status in JSON, with the code by name. */
export function httpErrorBody(error: WaybillError): string {
  const details = writeDetails(error).map(({ type, value, json }) => ({
    '@type': TYPE_URL + type,
    ...(json ?? { value: Buffer.from(value).toString('base64') }),
  }))
  return JSON.stringify({ code: codeName(wireFormOfError(error).code), message: error.message, details })
}

/** The body of an error in the Connect protocol. */
export function connectErrorBody(error: WaybillError): string {
  const details = writeDetails(error).map(({ type, value, json }) => ({
    type,
    value: Buffer.from(value).toString('base64').replace(/=+$/, ''),
    debug: json,
  }))
  return JSON.stringify({ code: codeName(wireFormOfError(error).code), message: error.message, details })
}

/**
 * The codes that gRPC has for reasons whose code over HTTP is another: a compression that is not known is UNIMPLEMENTED there,
 * one that is not stated INTERNAL (gRPC, "Compression", "Test cases"), and what is too large RESOURCE_EXHAUSTED, as in every server of it.
 */
const grpcCodes: Partial<Record<Reason, Code>> = {
  UNSUPPORTED_CONTENT_ENCODING: Code.Unimplemented,
  UNSTATED_COMPRESSION: Code.Internal,
  BODY_TOO_LARGE: Code.ResourceExhausted,
}

/** What the handler of a foreign error wants sent beside it; nothing for errors of this project. */
export function metadataOf(error: WaybillError): Headers | undefined {
  return error instanceof ForeignError ? error.cause.metadata : undefined
}

/** The trailers of an error in gRPC and gRPC-Web. */
export function grpcErrorTrailers(error: WaybillError): Record<string, string> {
  const code = grpcCodes[error.reason] ?? wireFormOfError(error).code
  const details = writeDetails(error).map(({ type, value }) => create(AnySchema, { typeUrl: TYPE_URL + type, value }))
  const status = toBinary(StatusSchema, create(StatusSchema, { code, message: error.message, details }))
  return {
    'grpc-status': String(code),
    'grpc-message': encodeGrpcMessage(error.message),
    'grpc-status-details-bin': Buffer.from(status).toString('base64').replace(/=+$/, ''),
  }
}

/**
 * Writes a text for `grpc-message`: what is not printable ASCII, and the percent sign, is escaped and nothing else, since
 * grpc-js leaves other escapes as they are.
 */
export function encodeGrpcMessage(message: string): string {
  return message.toWellFormed().replace(/[^ -$&-~]+/g, encodeURIComponent)
}

/** The error for connect's own handlers, which serve the streams. */
export function toConnectError(error: WaybillError): ConnectError {
  if (error instanceof ForeignError) return error.cause
  const details = detailsOf(error).map(({ desc, message }) => ({ desc, value: message }))
  const code = grpcCodes[error.reason] ?? wireFormOf(error.reason).code
  return new ConnectError(error.message, code, undefined, details, error)
}
