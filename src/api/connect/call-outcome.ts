import type { WaybillError } from '../../errors/waybill-error.ts'
import type { Given } from '../calls/call.ts'
import { connectErrorJson, grpcErrorTrailers, metadataOf, wireFormOfError } from '../calls/error-mapping.ts'
import type { HeaderFields } from '../http/exchange.ts'
import { errorHeaders, fieldsOf, type Inbound } from '../http/http-answer.ts'
import { ACCEPTED_ENCODINGS } from '../http/request-body.ts'
import { sealConnectEnd, sealWebTrailers } from './envelope.ts'
import { contentTypeOf, type RpcForm } from './rpc-form.ts'

/**
 * The trailers that end a call of gRPC or gRPC-Web.
 *
 * @param trailer - what the handler has set
 */
export function grpcTrailers(trailer: Headers | undefined, error?: WaybillError): HeaderFields {
  if (error === undefined) return { ...fieldsOf(trailer), 'grpc-status': '0' }
  return { ...fieldsOf(trailer), ...fieldsOf(metadataOf(error)), ...grpcErrorTrailers(error) }
}

/** The envelope that ends a stream of Connect. @param trailer - what the handler has set */
export function connectEnd(trailer: Headers | undefined, error?: WaybillError): Uint8Array {
  const metadata = [...(trailer ?? []), ...((error && metadataOf(error)) ?? [])].map(([name, value]) => [name, [value]])
  return sealConnectEnd({
    error: error && connectErrorJson(error),
    metadata: metadata.length > 0 ? Object.fromEntries(metadata) : undefined,
  })
}

/**
 * Answers with an error and no message, in the form of the caller.
 *
 * @param given - what the handler has set before it failed
 */
export function sendRpcError(inbound: Inbound, form: RpcForm, error: WaybillError, given?: Given): void {
  inbound.onRefused(error)
  const headers = { ...fieldsOf(given?.header), ...encodingHeaders(form, error) }
  if (form.protocol !== 'connect') {
    sendGrpc(inbound, form, { headers, envelope: undefined, trailers: grpcTrailers(given?.trailer, error) })
  }
  // A stream of Connect always has status 200. But clients recognise a Content-Type that is not served by status 415.
  else if (form.isEnveloped && error.reason !== 'UNSUPPORTED_CONTENT_TYPE') {
    const body = connectEnd(given?.trailer, error)
    inbound.exchange.send({ status: 200, headers: rpcHeaders(inbound, form, headers), body })
  } else sendConnectError(inbound, error, given)
}

/** Names the compressions that are served, if the caller's is not one of them. */
function encodingHeaders(form: RpcForm, { reason }: WaybillError): HeaderFields | undefined {
  if (reason !== 'UNSUPPORTED_CONTENT_ENCODING') return undefined
  if (form.protocol === 'connect') return { 'connect-accept-encoding': ACCEPTED_ENCODINGS.join(',') }
  return { 'grpc-accept-encoding': ['identity', ...ACCEPTED_ENCODINGS].join(',') }
}

export interface GrpcAnswer {
  readonly headers: HeaderFields
  readonly envelope: Uint8Array | undefined
  readonly trailers: HeaderFields
}

/** Answers a call of gRPC or gRPC-Web as a whole. */
export function sendGrpc(inbound: Inbound, form: RpcForm, answer: GrpcAnswer): void {
  const { exchange } = inbound
  const { envelope, trailers } = answer
  const headers = rpcHeaders(inbound, form, answer.headers)
  if (form.protocol === 'grpc') {
    // Without a message the trailers are sent as headers, unless the handler has set headers: clients would take those for trailers.
    const isTrailersOnly = envelope === undefined && Object.keys(answer.headers).length === 0
    if (isTrailersOnly) exchange.send({ status: 200, headers: { ...headers, ...trailers } })
    else exchange.send({ status: 200, headers, body: envelope, trailers })
    return
  }
  const parts = envelope === undefined ? [sealWebTrailers(trailers)] : [envelope, sealWebTrailers(trailers)]
  const body = Buffer.concat(parts)
  exchange.send({ status: 200, headers, body: form.isText ? body.toString('base64') : body })
}

/**
 * The headers of an answer.
 *
 * @param given - the headers that the handler has set, and further ones of this answer
 */
export function rpcHeaders(
  { grpcHeaders, commonHeaders }: Inbound,
  form: RpcForm,
  ...given: readonly (HeaderFields | undefined)[]
): HeaderFields {
  const headers: HeaderFields = { ...(form.protocol === 'grpc' ? grpcHeaders : commonHeaders) }
  return Object.assign(headers, ...given, { 'content-type': contentTypeOf(form) }) as HeaderFields
}

function sendConnectError({ exchange, commonHeaders }: Inbound, error: WaybillError, given: Given | undefined): void {
  exchange.send({
    status: wireFormOfError(error, 'connect').httpStatus,
    headers: {
      ...commonHeaders,
      ...connectUnaryFields(given),
      ...fieldsOf(metadataOf(error)),
      ...errorHeaders(error),
      'content-type': 'application/json',
    },
    body: JSON.stringify(connectErrorJson(error)),
  })
}

/** The headers of a unary answer of Connect, which has its trailers among them, with a prefix. */
export function connectUnaryFields(given: Given | undefined): HeaderFields | undefined {
  if (given?.header === undefined && given?.trailer === undefined) return undefined
  const trailer = [...(given?.trailer ?? [])].map(([name, value]) => [`trailer-${name}`, value] as const)
  return Object.fromEntries([...(given?.header ?? []), ...trailer])
}
