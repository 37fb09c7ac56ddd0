import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { decodeQueryComponent } from '../../transcoding/paths/percent-decoding.ts'
import { headerOf } from '../calls/call.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import type { Exchange } from '../http/exchange.ts'
import { encodeBody, fieldsOf, type Inbound } from '../http/http-answer.ts'
import { decodeContent, findCompression, readBody } from '../http/request-body.ts'
import type { MessageCodec } from '../messages/message-codec.ts'
import { connectUnaryFields, grpcTrailers, rpcHeaders, sendGrpc, sendRpcError } from './call-outcome.ts'
import { maxBodyBytesOf, openEnvelope, sealEnvelope } from './envelope.ts'
import { CONNECT_JSON, type RpcForm, readTimeout } from './rpc-form.ts'

/** A method as it is served to one protocol or several. */
export interface Endpoint<Options> {
  readonly method: CallableMethod
  readonly codec: MessageCodec
  readonly options: Options
}

export interface UnaryOptions {
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
}

/** Reads the bytes of the one message of a request. */
type ReadMessage = (exchange: Exchange, form: RpcForm, maxBytes: number) => Promise<Uint8Array>

/** Answers a call of a unary method. */
export async function serveUnary(
  { method, codec, options }: Endpoint<UnaryOptions>,
  inbound: Inbound,
  form: RpcForm,
  readMessage: ReadMessage = form.protocol === 'connect' ? readConnectPost : readGrpc,
): Promise<void> {
  const { exchange, headers } = inbound
  const isConnect = form.protocol === 'connect'
  const outcome = await method.callUnary({
    ...inbound,
    protocol: form.protocol,
    readTimeoutMs: () => readTimeout(form, headers),
    readRequest: async () => codec.decode(await readMessage(exchange, form, options.maxBodyBytes), form.format),
  })
  if ('error' in outcome) return sendRpcError(inbound, form, outcome.error, outcome)
  const encoded = codec.encode(outcome.plain, form.format)
  // Not by grpc-accept-encoding, since every client of grpc-js lists gzip there. Only clients that compress their requests want it.
  const accepted = headerOf(headers, isConnect ? 'accept-encoding' : 'grpc-encoding') ?? undefined
  if (isConnect) {
    const { body, headers: coding } = await encodeBody(encoded, accepted, options.compressMinBytes)
    exchange.send({ status: 200, headers: rpcHeaders(inbound, form, connectUnaryFields(outcome), coding), body })
    return
  }
  const bytes = typeof encoded === 'string' ? Buffer.from(encoded) : encoded
  const { body, headers: coding } = await encodeBody(bytes, accepted, options.compressMinBytes)
  const encoding = coding['content-encoding']
  sendGrpc(inbound, form, {
    headers: { ...fieldsOf(outcome.header), ...(encoding !== undefined && { 'grpc-encoding': encoding }) },
    envelope: sealEnvelope(body as Uint8Array, encoding !== undefined),
    trailers: grpcTrailers(outcome.trailer),
  })
}

async function readGrpc(exchange: Exchange, { isText }: RpcForm, maxBytes: number): Promise<Uint8Array> {
  const encoding = headerOf(exchange.headers, 'grpc-encoding') ?? undefined
  // Checked even if the message is not compressed, so that the caller learns of it with its first call.
  findCompression(encoding)
  const body = await readBody(exchange, maxBodyBytesOf({ isText }, maxBytes), maxBytes)
  return openEnvelope(body, { isText, encoding, maxBytes })
}

/** In Connect by POST the message is the body. */
async function readConnectPost(exchange: Exchange, _: RpcForm, maxBytes: number): Promise<Uint8Array> {
  refuseOtherVersions(exchange)
  const encoding = exchange.headers['content-encoding']
  findCompression(encoding)
  return decodeContent(await readBody(exchange, maxBytes), encoding, maxBytes)
}

/** @throws WaybillError INVALID_FIELD when a call by POST names another version of the protocol than 1 */
export function refuseOtherVersions({ headers }: Exchange): void {
  const version = headers['connect-protocol-version']
  if (version !== undefined && version !== '1') throw unknownVersion('connect-protocol-version', String(version))
}

/** Whether a request calls a method without side effects by GET, with the message in the query. */
export function isConnectGet({ method }: Exchange, { readsOnly }: CallableMethod): boolean {
  return readsOnly && (method === 'GET' || method === 'HEAD')
}

/** The form of a call by GET. */
export function formOfConnectGet(exchange: Exchange): RpcForm {
  return { ...CONNECT_JSON, format: encodingOf(exchange) === 'proto' ? 'binary' : 'json' }
}

function encodingOf({ rawQuery }: Exchange): string | undefined {
  return /(?:^|&)encoding=([^&]*)/.exec(rawQuery)?.[1]
}

/** In Connect by GET the message stands in the query, which is checked when the message is read, after the caller is known. */
export async function readConnectGet(exchange: Exchange, _: RpcForm, maxBytes: number): Promise<Uint8Array> {
  const encoding = encodingOf(exchange)
  const parameters = readParameters(exchange.rawQuery)
  const version = parameters.get('connect')
  if (version !== undefined && version !== 'v1') throw unknownVersion('connect', version)
  if (encoding !== 'proto' && encoding !== 'json') {
    throw waybillError('INVALID_FIELD', { field: 'encoding', detail: `"${encoding ?? ''}" is neither proto nor json` })
  }
  const message = parameters.get('message')
  if (message === undefined) throw waybillError('MISSING_FIELD', { field: 'message' })
  return decodeContent(bytesOf(message, parameters.get('base64')), parameters.get('compression'), maxBytes)
}

/** Node's decoder skips what is not base64, and a message that is lost in that way would be a search without filters. */
const base64Pattern = /^[\w+/-]*={0,2}$/

function bytesOf(message: string, base64: string | undefined): Uint8Array {
  if (base64 === undefined || base64 === '0') return Buffer.from(message, 'utf8')
  if (base64 !== '1') throw waybillError('INVALID_FIELD', { field: 'base64', detail: `"${base64}" is neither 0 nor 1` })
  // The last group of four may lack its padding, but has at least two characters.
  if (!base64Pattern.test(message) || message.replace(/=+$/, '').length % 4 === 1) {
    throw waybillError('INVALID_FIELD', { field: 'message', detail: 'it is not base64' })
  }
  return Buffer.from(message, 'base64url')
}

const knownParameters = new Set(['connect', 'encoding', 'message', 'base64', 'compression'])

function readParameters(rawQuery: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of rawQuery.split('&')) {
    const equals = pair.indexOf('=')
    const name = decodeQueryComponent(equals < 0 ? pair : pair.slice(0, equals))
    if (name === '' && equals < 0) continue
    if (!knownParameters.has(name)) {
      const suggestion = `use ${[...knownParameters].join(', ')}; the fields of the request belong into message`
      throw waybillError('UNKNOWN_PARAMETER', { field: name, suggestion })
    }
    if (parameters.has(name)) throw waybillError('DUPLICATE_PARAMETER', { field: name, detail: 'in the query' })
    parameters.set(name, decodeQueryComponent(equals < 0 ? '' : pair.slice(equals + 1)))
  }
  return parameters
}

function unknownVersion(field: string, version: string): WaybillError {
  return waybillError('INVALID_FIELD', { field, detail: `the version "${version}" of the protocol is unknown` })
}
