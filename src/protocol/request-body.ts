import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { waybillError } from '../errors.ts'

const decompress = promisify(gunzip)

/**
 * Undoes the compression of a body or of a message.
 *
 * @param encoding - what the caller says of it; undefined and `identity` for none
 * @param maxBytes - the most that may come out of it
 * @throws WaybillError UNSUPPORTED_CONTENT_ENCODING, BODY_TOO_LARGE, MALFORMED_BODY
 */
export async function decodeContent(
  body: Uint8Array,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  refuseUnknownEncoding(encoding)
  if (!isGzip(encoding) || body.length === 0) return body
  try {
    return await decompress(body, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (isTooLarge(cause)) throw waybillError('BODY_TOO_LARGE', { limit: maxBytes }, { cause })
    throw waybillError('MALFORMED_BODY', { detail: 'it is not gzip' }, { cause })
  }
}

function refuseUnknownEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^(?:identity|gzip|)$/i.test(encoding)) return
  throw waybillError('UNSUPPORTED_CONTENT_ENCODING', { value: encoding, expected: 'gzip or identity' })
}

function isGzip(encoding: string | undefined): boolean {
  return encoding !== undefined && /^gzip$/i.test(encoding)
}

function isTooLarge(cause: unknown): boolean {
  return cause instanceof Error && (cause as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE'
}
