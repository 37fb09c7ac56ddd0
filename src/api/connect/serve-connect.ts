import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { decodeQueryComponent } from '../../transcoding/paths/percent-decoding.ts'
import type { Given } from '../calls/call.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { type Exchange, readBody } from '../http/exchange.ts'
import { encodeBody, type Inbound, originOf } from '../http/http-answer.ts'
import { decodeContent, findCompression } from '../http/request-body.ts'
import type { MessageFormat } from '../messages/decode-message.ts'
import { connectUnaryFields, rpcHeaders, sendRpcError } from './call-outcome.ts'
import type { Endpoint } from './message-codec.ts'
import { readConnectTimeout } from './read-timeout.ts'
import { CONNECT_JSON, type RpcForm } from './rpc-form.ts'
import type { UnaryOptions } from './serve-grpc.ts'

/** A request whose message has not been read yet. */
export interface ConnectRequest {
  readonly format: MessageFormat
  readonly readBytes: (maxBytes: number) => Promise<Uint8Array>
}

/** Answers a call of a unary method by Connect, by POST or, where it has no side effects, by GET. */
export async function serveConnectUnary(
  { method, codec, options }: Endpoint<UnaryOptions>,
  inbound: Inbound,
  { format, readBytes }: ConnectRequest,
): Promise<void> {
  const { exchange } = inbound
  const form: RpcForm = { ...CONNECT_JSON, format }
  let failed: Given | undefined
  try {
    const answered = await method.callUnary({
      ...originOf(inbound),
      protocol: 'connect',
      readTimeoutMs: () => readConnectTimeout(exchange.headers),
      readRequest: async () => codec.decode(await readBytes(options.maxBodyBytes), format),
      onFailure: (given) => {
        failed = given
      },
    })
    const acceptEncoding = exchange.headers['accept-encoding']?.toString()
    const encoded = await encodeBody(codec.encode(answered.plain, format), acceptEncoding, options.compressMinBytes)
    const headers = rpcHeaders(inbound, form, connectUnaryFields(answered), encoded.headers)
    exchange.send({ status: 200, headers, body: encoded.body })
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    sendRpcError(inbound, form, error, failed)
  }
}

/** A call by POST: the message is the body. */
export function readConnectPost(exchange: Exchange, format: MessageFormat): ConnectRequest {
  const { headers } = exchange
  return {
    format,
    async readBytes(maxBytes) {
      refuseOtherVersions(exchange)
      const encoding = headers['content-encoding']
      findCompression(encoding)
      return decodeContent(await readBody(exchange, maxBytes), encoding, maxBytes)
    },
  }
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

/** A call by GET. Its query is checked when the message is read, after the caller is known. */
export function readConnectGet({ rawQuery }: Exchange): ConnectRequest {
  const encoding = /(?:^|&)encoding=([^&]*)/.exec(rawQuery)?.[1]
  return {
    format: encoding === 'proto' ? 'binary' : 'json',
    async readBytes(maxBytes) {
      const parameters = readParameters(rawQuery)
      const version = parameters.get('connect')
      if (version !== undefined && version !== 'v1') throw unknownVersion('connect', version)
      if (encoding !== 'proto' && encoding !== 'json') {
        throw waybillError('INVALID_FIELD', {
          field: 'encoding',
          detail: `"${encoding ?? ''}" is neither proto nor json`,
        })
      }
      const message = parameters.get('message')
      if (message === undefined) throw waybillError('MISSING_FIELD', { field: 'message' })
      return decodeContent(bytesOf(message, parameters.get('base64')), parameters.get('compression'), maxBytes)
    },
  }
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
