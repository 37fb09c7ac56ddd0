import { Code, ConnectError } from '@connectrpc/connect'
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node'
import { waybillError } from '../../errors/waybill-error.ts'
import type { Exchange } from './exchange.ts'

const compressions = new Map([compressionGzip, compressionBrotli].map((compression) => [compression.name, compression]))

/** The compressions of requests, as the protocols list them. */
export const ACCEPTED_ENCODINGS: readonly string[] = [...compressions.keys()]

/**
 * Finds a compression.
 *
 * @param encoding - the name that the caller gives it; undefined, empty and `identity` for none
 * @throws WaybillError UNSUPPORTED_CONTENT_ENCODING
 */
export function findCompression(encoding = 'identity') {
  const name = encoding.toLowerCase()
  if (name === '' || name === 'identity') return undefined
  const compression = compressions.get(name)
  if (compression !== undefined) return compression
  const expected = `${ACCEPTED_ENCODINGS.join(', ')} or identity`
  throw waybillError('UNSUPPORTED_CONTENT_ENCODING', { value: encoding, expected })
}

/**
 * Decompresses a body or a message.
 *
 * @param encoding - as for {@link findCompression}
 * @param maxBytes - of the decompressed bytes; decompression stops there
 * @throws WaybillError UNSUPPORTED_CONTENT_ENCODING, BODY_TOO_LARGE, MALFORMED_BODY
 */
export async function decodeContent(
  body: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  const compression = findCompression(encoding)
  if (compression === undefined) return body
  try {
    return await compression.decompress(body, maxBytes)
  } catch (cause) {
    if (ConnectError.from(cause).code === Code.ResourceExhausted) {
      throw waybillError('BODY_TOO_LARGE', { limit: maxBytes }, { cause })
    }
    throw waybillError('MALFORMED_BODY', { detail: `it is not ${encoding}` }, { cause })
  }
}

/**
 * Reads a whole body.
 *
 * @param statedLimit - the limit to name in the error, where the body holds more than the caller's message
 * @throws WaybillError BODY_TOO_LARGE as soon as more than `maxBytes` arrive, CALL_CANCELLED when the body is cut off
 */
export function readBody(
  { hasBody, headers, body, received, askForBody, isCutOff }: Exchange,
  maxBytes: number,
  statedLimit = maxBytes,
): Promise<Uint8Array> {
  if (!hasBody) return Promise.resolve(new Uint8Array())
  if (Number(headers['content-length']) > maxBytes) {
    return Promise.reject(waybillError('BODY_TOO_LARGE', { limit: statedLimit }))
  }
  // A body without bytes ends by itself, even if nobody reads it.
  if (body.readableEnded && !isCutOff()) return Promise.resolve(new Uint8Array())
  if (body.destroyed) return Promise.reject(waybillError('CALL_CANCELLED', {}))
  askForBody()
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const chunks: Uint8Array[] = []
  let isOver = false
  const leave = () => {
    isOver = true
    body.off('data', onData)
    body.off('end', onEnd)
    body.off('error', onBroken)
    body.off('close', onBroken)
  }
  const onData = (chunk: Uint8Array) => {
    received.bytes += chunk.length
    if (received.bytes <= maxBytes) {
      chunks.push(chunk)
      return
    }
    leave()
    body.pause()
    reject(waybillError('BODY_TOO_LARGE', { limit: statedLimit }))
  }
  const onBroken = (cause?: Error) => {
    if (isOver) return
    leave()
    reject(waybillError('CALL_CANCELLED', {}, { cause }))
  }
  const onEnd = () => {
    if (isCutOff()) return onBroken()
    // After `end` only `close` can fire. Removing the listeners would cost as much as reading the body.
    isOver = true
    resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
    chunks.length = 0
  }
  body.on('data', onData)
  body.on('end', onEnd)
  body.on('error', onBroken)
  body.on('close', onBroken)
  return promise
}

/**
 * Reads a body in pieces, as they are asked for. The rest of it may be left unread.
 *
 * @throws WaybillError CALL_CANCELLED when the body is cut off
 */
export async function* readPieces({ body, askForBody, isCutOff }: Exchange): AsyncIterable<Uint8Array> {
  askForBody()
  try {
    // Destroying the body would break off the answer as well.
    yield* body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  } catch (cause) {
    throw waybillError('CALL_CANCELLED', {}, { cause })
  }
  if (isCutOff()) throw waybillError('CALL_CANCELLED', {})
}
