import type { IncomingHttpHeaders } from 'node:http'
import { parseTimeout as parseConnectTimeout } from '@connectrpc/connect/protocol-connect'
import { parseTimeout as parseGrpcTimeout } from '@connectrpc/connect/protocol-grpc'
import { waybillError } from '../../errors/waybill-error.ts'
import { headerOf, type Protocol } from '../calls/call.ts'
import { readMediaType } from '../http/media-type.ts'
import type { MessageFormat } from '../messages/message-codec.ts'

/** How a call of gRPC, gRPC-Web or Connect is written, as its Content-Type says. */
export interface RpcForm {
  readonly protocol: Exclude<Protocol, 'rest'>
  readonly format: MessageFormat
  /** False for a Content-Type that is not served, such as `application/grpc+thrift`: then the form is that of the error. */
  readonly isServed: boolean
  /** Whether each message stands in an envelope: always in gRPC and gRPC-Web, in Connect for methods with streams. */
  readonly isEnveloped: boolean
  /** gRPC-Web in base64, for clients that cannot read bytes as they arrive. */
  readonly isText: boolean
}

/** A unary call of Connect in JSON. */
export const CONNECT_JSON: RpcForm = {
  protocol: 'connect',
  format: 'json',
  isServed: true,
  isEnveloped: false,
  isText: false,
}

/** A call of a method whose Content-Type names no protocol: its error has the form of Connect, which is plain JSON. */
export const UNKNOWN_FORM: RpcForm = { ...CONNECT_JSON, isServed: false }

const grpcPattern = /^application\/grpc(-web)?(-text)?(?:\+([\w.-]+))?$/
const connectPattern = /^application\/(connect\+)?([\w.-]+)$/

/** Reads a Content-Type; undefined when it belongs to no RPC protocol. `application/json` may also be meant for REST. */
export function readRpcForm(contentType: string): RpcForm | undefined {
  return usualForms.get(contentType) ?? parseForm(contentType)
}

function parseForm(contentType: string): RpcForm | undefined {
  const media = readMediaType(contentType)
  const form = media && (readGrpcForm(media.type) ?? readConnectForm(media.type))
  if (media === undefined || form === undefined) return undefined
  // A charset says nothing of a binary message.
  return { ...form, isServed: form.isServed && (media.isUtf8 || form.format === 'binary') }
}

function readGrpcForm(type: string): RpcForm | undefined {
  const match = grpcPattern.exec(type)
  if (match === null) return undefined
  const [, web, text, format = 'proto'] = match
  // Only gRPC-Web has a form in base64.
  if (web === undefined && text !== undefined) return undefined
  const protocol = web === undefined ? 'grpc' : 'grpc-web'
  return { protocol, ...readFormat(format), isEnveloped: true, isText: text !== undefined }
}

function readConnectForm(type: string): RpcForm | undefined {
  const [, enveloped, name = ''] = connectPattern.exec(type) ?? []
  const format = readFormat(name)
  // Of a unary call only the two types that are served tell that it is one.
  if (enveloped === undefined && !format.isServed) return undefined
  return { protocol: 'connect', ...format, isEnveloped: enveloped !== undefined, isText: false }
}

function readFormat(name: string): Pick<RpcForm, 'format' | 'isServed'> {
  return { format: name === 'json' ? 'json' : 'binary', isServed: name === 'json' || name === 'proto' }
}

/** The Content-Types of nearly all calls, parsed once. */
const usualForms: ReadonlyMap<string, RpcForm | undefined> = new Map(
  ['', '+proto', '+json']
    .flatMap((codec) => [`application/grpc${codec}`, `application/grpc-web${codec}`, `application/connect${codec}`])
    .concat('application/json', 'application/proto')
    .map((contentType) => [contentType, parseForm(contentType)]),
)

/** The Content-Type of an answer. */
export function contentTypeOf({ protocol, format, isEnveloped, isText }: RpcForm): string {
  const codec = format === 'json' ? 'json' : 'proto'
  if (protocol !== 'connect') return `application/${protocol}${isText ? '-text' : ''}+${codec}`
  return isEnveloped ? `application/connect+${codec}` : `application/${codec}`
}

/**
 * Reads the timeout of a call in the header of its protocol.
 *
 * @returns milliseconds; undefined when there is none
 * @throws WaybillError INVALID_FIELD
 */
export function readTimeout({ protocol }: Pick<RpcForm, 'protocol'>, headers: IncomingHttpHeaders): number | undefined {
  const isConnect = protocol === 'connect'
  const field = isConnect ? 'connect-timeout-ms' : 'grpc-timeout'
  const value = headerOf(headers, field)
  const parse = isConnect ? parseConnectTimeout : parseGrpcTimeout
  const { timeoutMs, error } = parse(value, Number.POSITIVE_INFINITY)
  if (error !== undefined) throw waybillError('INVALID_FIELD', { field, detail: `"${value}" is not a timeout` })
  return timeoutMs
}
