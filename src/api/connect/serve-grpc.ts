import { WaybillError } from '../../errors/waybill-error.ts'
import { type Given, headerOf } from '../calls/call.ts'
import { type Exchange, readBody } from '../http/exchange.ts'
import { encodeBody, fieldsOf, type Inbound, originOf } from '../http/http-answer.ts'
import { findCompression } from '../http/request-body.ts'
import { decodeBase64 } from './base64-text.ts'
import { grpcTrailers, sendGrpc, sendRpcError } from './call-outcome.ts'
import { maxBodyBytesOf, openEnvelope, sealEnvelope } from './envelope.ts'
import type { Endpoint } from './message-codec.ts'
import { readGrpcTimeout } from './read-timeout.ts'
import type { RpcForm } from './rpc-form.ts'

export interface UnaryOptions {
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
}

/** Answers a call of a unary method by gRPC or gRPC-Web. */
export async function serveGrpcUnary(endpoint: Endpoint<UnaryOptions>, inbound: Inbound, form: RpcForm): Promise<void> {
  const { method, codec, options } = endpoint
  const { exchange } = inbound
  let failed: Given | undefined
  try {
    const { plain, header, trailer } = await method.callUnary({
      ...originOf(inbound),
      protocol: form.protocol,
      readTimeoutMs: () => readGrpcTimeout(exchange.headers),
      readRequest: () => readRequest(endpoint, exchange, form),
      onFailure: (given) => {
        failed = given
      },
    })
    const encoded = codec.encode(plain, form.format)
    const bytes = typeof encoded === 'string' ? Buffer.from(encoded) : encoded
    // Not by grpc-accept-encoding, since every client of grpc-js lists gzip there. Only clients that compress their requests want it.
    const accepted = headerOf(exchange.headers, 'grpc-encoding') ?? undefined
    const { body, headers } = await encodeBody(bytes, accepted, options.compressMinBytes)
    const encoding = headers['content-encoding']
    sendGrpc(inbound, form, {
      headers: { ...fieldsOf(header), ...(encoding !== undefined && { 'grpc-encoding': encoding }) },
      envelope: sealEnvelope(body as Uint8Array, encoding !== undefined),
      trailers: grpcTrailers(trailer),
    })
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    sendRpcError(inbound, form, error, failed)
  }
}

async function readRequest({ codec, options }: Endpoint<UnaryOptions>, exchange: Exchange, form: RpcForm) {
  const { maxBodyBytes: maxBytes } = options
  const encoding = headerOf(exchange.headers, 'grpc-encoding') ?? undefined
  // Checked even if the message is not compressed, so that the caller learns of it with its first call.
  findCompression(encoding)
  const sent = await readBody(exchange, maxBodyBytesOf(form, maxBytes), maxBytes)
  const body = form.isText ? decodeBase64(sent) : sent
  return codec.decode(await openEnvelope(body, { encoding, maxBytes }), form.format)
}
