import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compilePlainJsonSerializer } from '../../transcoding/messages/plain-json-serializer.ts'
import { type Given, headerOf } from '../calls/call.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { grpcErrorTrailers, metadataOf } from '../calls/error-mapping.ts'
import { readGrpcTimeout } from '../calls/read-timeout.ts'
import { type HeaderFields, readBody } from '../http/exchange.ts'
import { encodeBody, type Inbound } from '../http/http-answer.ts'
import { compileDecoder, type MessageFormat } from '../messages/request-decoder.ts'
import { ENVELOPE_OVERHEAD, openEnvelope, sealEnvelope, sealTrailers } from './envelope.ts'

/** One of gRPC's ways to write a call, as its Content-Type names it. */
export interface GrpcForm {
  readonly protocol: 'grpc' | 'grpc-web'
  readonly format: MessageFormat
  /** gRPC-Web in base64, for clients that cannot read bytes as they come. */
  readonly isText: boolean
}

const contentTypePattern = /^application\/grpc(-web)?(-text)?(?:\+(proto|json))?\s*(?:;.*)?$/i

/** Reads a Content-Type; undefined when it is none of gRPC's. */
export function readGrpcForm(contentType: string): GrpcForm | undefined {
  const match = contentTypePattern.exec(contentType)
  if (match === null) return undefined
  const [, web, text, format] = match
  if (web === undefined && text !== undefined) return undefined
  return {
    protocol: web === undefined ? 'grpc' : 'grpc-web',
    format: format?.toLowerCase() === 'json' ? 'json' : 'binary',
    isText: text !== undefined,
  }
}

export interface UnaryOptions {
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
}

/** Serves a unary method to gRPC and gRPC-Web. */
export type GrpcUnaryServer = (inbound: Inbound, form: GrpcForm) => Promise<void>

export function createGrpcUnaryServer(method: CallableMethod, options: UnaryOptions): GrpcUnaryServer {
  const { input, output } = method.desc
  const { maxBodyBytes, compressMinBytes } = options
  const decode = compileDecoder(input)
  const toJson = compilePlainJsonSerializer(output)
  const toBinary = compileBinarySerializer(output)

  async function readRequest({ exchange }: Inbound, { format, isText }: GrpcForm) {
    const mostSent = isText ? Math.ceil(maxBodyBytes / 3) * 4 + 8 : maxBodyBytes + ENVELOPE_OVERHEAD
    const sent = await readBody(exchange, mostSent, maxBodyBytes)
    const body = isText ? decodeBase64(sent) : sent
    const encoding = headerOf(exchange.headers, 'grpc-encoding') ?? undefined
    return decode(await openEnvelope(body, { encoding, maxBytes: maxBodyBytes }), format)
  }

  return async (inbound, form) => {
    const { exchange, requestId } = inbound
    let failed: Given | undefined
    try {
      const { plain, header, trailer } = await method.callUnary({
        protocol: form.protocol,
        requestId,
        headers: exchange.headers,
        clientAddress: inbound.clientAddress,
        reportLimit: inbound.reportLimit,
        readTimeoutMs: () => readGrpcTimeout(exchange.headers),
        readRequest: () => readRequest(inbound, form),
        onHangUp: exchange.onHangUp,
        onFailure: (given) => {
          failed = given
        },
      })
      const bytes = form.format === 'json' ? Buffer.from(toJson(plain)) : toBinary(plain)
      // Every client of grpc-js says that it takes gzip; those that mean it compress as well.
      const encoded = await encodeBody(
        bytes,
        headerOf(exchange.headers, 'grpc-encoding') ?? undefined,
        compressMinBytes,
      )
      const isCompressed = encoded.body !== bytes
      const envelope = sealEnvelope(encoded.body as Uint8Array, isCompressed)
      const headers: HeaderFields = { ...(header && Object.fromEntries(header)) }
      if (isCompressed) headers['grpc-encoding'] = encoded.headers['content-encoding'] ?? 'identity'
      const trailers = { ...(trailer && Object.fromEntries(trailer)), 'grpc-status': '0' }
      sendGrpc(inbound, form, { headers, envelope, trailers })
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      sendGrpcError(inbound, form, error, failed)
    }
  }
}

/**
 * Decodes base64 that may come in pieces, each with its padding. Node skips what is not base64, and a message that is lost
 * would be a search without filters.
 */
function decodeBase64(sent: Uint8Array): Uint8Array {
  const pieces =
    Buffer.from(sent)
      .toString('latin1')
      .match(/[^=]+=*|=+/g) ?? []
  const isGood = pieces.every((piece) => piece.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(piece))
  if (!isGood) throw waybillError('MALFORMED_BODY', { detail: 'it is not base64' })
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')))
}

/** Answers with an error and no message. */
export function sendGrpcError(inbound: Inbound, form: GrpcForm, error: WaybillError, given?: Given): void {
  inbound.onRefused(error)
  const isEncoding = error.reason === 'UNSUPPORTED_CONTENT_ENCODING'
  const headers: HeaderFields = {
    ...Object.fromEntries(given?.header ?? []),
    ...(isEncoding && { 'grpc-accept-encoding': 'identity,gzip,br' }),
  }
  const trailers = {
    ...Object.fromEntries(given?.trailer ?? []),
    ...Object.fromEntries(metadataOf(error) ?? []),
    ...grpcErrorTrailers(error),
  }
  sendGrpc(inbound, form, { headers, envelope: undefined, trailers })
}

interface GrpcAnswer {
  readonly headers: HeaderFields
  readonly envelope: Uint8Array | undefined
  readonly trailers: HeaderFields
}

function sendGrpc(inbound: Inbound, form: GrpcForm, { headers: given, envelope, trailers }: GrpcAnswer): void {
  const { exchange } = inbound
  const common = form.protocol === 'grpc' ? inbound.grpcHeaders : inbound.commonHeaders
  const headers: HeaderFields = { ...common, ...given, 'content-type': contentTypeOf(form) }
  if (form.protocol === 'grpc') {
    // Without a message the trailers are the header.
    if (envelope === undefined) exchange.send({ status: 200, headers: { ...headers, ...trailers } })
    else exchange.send({ status: 200, headers, body: envelope, trailers })
    return
  }
  const parts = envelope === undefined ? [sealTrailers(trailers)] : [envelope, sealTrailers(trailers)]
  const body = Buffer.concat(parts)
  exchange.send({ status: 200, headers, body: form.isText ? body.toString('base64') : body })
}

function contentTypeOf({ protocol, format, isText }: GrpcForm): string {
  return `application/${protocol}${isText ? '-text' : ''}+${format === 'json' ? 'json' : 'proto'}`
}
