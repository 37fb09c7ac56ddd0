import { promisify } from 'node:util'
import { brotliDecompress, gunzip } from 'node:zlib'
import { waybillError } from '../../errors/waybill-error.ts'

const ungzip = promisify(gunzip)
const unbrotli = promisify(brotliDecompress)

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
  const decompress = decompressorOf(encoding)
  if (decompress === undefined || body.length === 0) return body
  try {
    return await decompress(body, { maxOutputLength: maxBytes })
  } catch (cause) {
    if (isTooLarge(cause)) throw waybillError('BODY_TOO_LARGE', { limit: maxBytes }, { cause })
    throw waybillError('MALFORMED_BODY', { detail: `it is not ${encoding}` }, { cause })
  }
}

type Decompress = (body: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Uint8Array>

function decompressorOf(encoding = 'identity'): Decompress | undefined {
  switch (encoding.toLowerCase()) {
    case '':
    case 'identity':
      return undefined
    case 'gzip':
      return ungzip
    case 'br':
      return unbrotli
    default:
      throw waybillError('UNSUPPORTED_CONTENT_ENCODING', { value: encoding, expected: 'gzip, br or identity' })
  }
}

function isTooLarge(cause: unknown): boolean {
  return cause instanceof Error && (cause as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE'
}
