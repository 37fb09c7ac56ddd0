import { Code, ConnectError } from '@connectrpc/connect'
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node'
import { waybillError } from '../../errors/waybill-error.ts'

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
