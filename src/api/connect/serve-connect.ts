import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compilePlainJsonSerializer } from '../../transcoding/messages/plain-json-serializer.ts'
import { decodeQueryComponent } from '../../transcoding/paths/percent-decoding.ts'
import type { Given } from '../calls/call.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { connectErrorBody, metadataOf, wireFormOfError } from '../calls/error-mapping.ts'
import { readConnectTimeout } from '../calls/read-timeout.ts'
import { type Exchange, type HeaderFields, readBody } from '../http/exchange.ts'
import { encodeBody, errorHeaders, type Inbound } from '../http/http-answer.ts'
import { decodeContent } from '../http/request-body.ts'
import { compileDecoder, type MessageFormat } from '../messages/request-decoder.ts'
import type { UnaryOptions } from './serve-grpc.ts'

const contentTypePattern = /^application\/(?:(proto)|json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?)$/i

/** Reads the Content-Type of a unary call of Connect; undefined when it is none. */
export function readConnectFormat(contentType: string): MessageFormat | undefined {
  const match = contentTypePattern.exec(contentType)
  if (match === null) return undefined
  return match[1] === undefined ? 'json' : 'binary'
}

/** Serves a unary method to Connect, by POST or, where it has no side effects, by GET. */
export type ConnectUnaryServer = (inbound: Inbound, asked: ConnectRequest) => Promise<void>

/** How a call was written. */
export interface ConnectRequest {
  readonly format: MessageFormat
  readonly readBytes: (maxBytes: number) => Promise<Uint8Array>
}

export function createConnectUnaryServer(method: CallableMethod, options: UnaryOptions): ConnectUnaryServer {
  const { input, output } = method.desc
  const { maxBodyBytes, compressMinBytes } = options
  const decode = compileDecoder(input)
  const toJson = compilePlainJsonSerializer(output)
  const toBinary = compileBinarySerializer(output)

  return async (inbound, { format, readBytes }) => {
    const { exchange, requestId, commonHeaders } = inbound
    let failed: Given | undefined
    try {
      const answered = await method.callUnary({
        protocol: 'connect',
        requestId,
        headers: exchange.headers,
        clientAddress: inbound.clientAddress,
        reportLimit: inbound.reportLimit,
        readTimeoutMs: () => readConnectTimeout(exchange.headers),
        readRequest: async () => decode(await readBytes(maxBodyBytes), format),
        onHangUp: exchange.onHangUp,
        onFailure: (given) => {
          failed = given
        },
      })
      const whole = format === 'json' ? toJson(answered.plain) : toBinary(answered.plain)
      const { body, headers } = await encodeBody(
        whole,
        exchange.headers['accept-encoding']?.toString(),
        compressMinBytes,
      )
      const contentType = format === 'json' ? 'application/json' : 'application/proto'
      const fields: HeaderFields = { ...commonHeaders, ...fieldsOf(answered), ...headers }
      exchange.send({ status: 200, headers: { ...fields, 'content-type': contentType }, body })
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      sendConnectError(inbound, error, failed)
    }
  }
}

/** The header and, with the prefix that Connect has for it, the trailer. */
function fieldsOf(given: Given | undefined): HeaderFields | undefined {
  if (given?.header === undefined && given?.trailer === undefined) return undefined
  const trailer = [...(given?.trailer ?? [])].map(([name, value]) => [`trailer-${name}`, value] as const)
  return Object.fromEntries([...(given?.header ?? []), ...trailer])
}

/** A call by POST: the message is the body. */
export function readConnectPost(exchange: Exchange, format: MessageFormat): ConnectRequest {
  const { headers } = exchange
  return {
    format,
    async readBytes(maxBytes) {
      const version = headers['connect-protocol-version']
      if (version !== undefined && version !== '1') throw unknownVersion('connect-protocol-version', String(version))
      return decodeContent(await readBody(exchange, maxBytes), headers['content-encoding'], maxBytes)
    },
  }
}

/** Whether a request is a call by GET: a read, with the message in the query. */
export function isConnectGet({ method }: Exchange, { readsOnly }: CallableMethod): boolean {
  return readsOnly && (method === 'GET' || method === 'HEAD')
}

/** A call by GET. What is wrong with its query shows when it is read, after the caller is known. */
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

/** Node skips what is not base64, and a message that is lost would be a search without filters. */
const base64Pattern = /^[\w+/-]*={0,2}$/

function bytesOf(message: string, base64: string | undefined): Uint8Array {
  if (base64 === undefined || base64 === '0') return Buffer.from(message, 'utf8')
  if (base64 !== '1') throw waybillError('INVALID_FIELD', { field: 'base64', detail: `"${base64}" is neither 0 nor 1` })
  // A group of four may lack its padding, but not consist of a single character.
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
      const suggestion = `use ${[...knownParameters].join(', ')}; the fields stand in message`
      throw waybillError('UNKNOWN_PARAMETER', { field: name, suggestion })
    }
    if (parameters.has(name)) throw waybillError('DUPLICATE_PARAMETER', { field: name })
    parameters.set(name, decodeQueryComponent(equals < 0 ? '' : pair.slice(equals + 1)))
  }
  return parameters
}

function unknownVersion(field: string, version: string): WaybillError {
  return waybillError('INVALID_FIELD', { field, detail: `the version "${version}" of the protocol is unknown` })
}

/** Answers with an error as Connect writes it. */
export function sendConnectError(inbound: Inbound, error: WaybillError, given?: Given): void {
  const { exchange, commonHeaders } = inbound
  inbound.onRefused(error)
  exchange.send({
    status: wireFormOfError(error).httpStatus,
    headers: {
      ...commonHeaders,
      ...fieldsOf(given),
      ...Object.fromEntries(metadataOf(error) ?? []),
      ...errorHeaders(error),
      'content-type': 'application/json',
    },
    body: connectErrorBody(error),
  })
}
