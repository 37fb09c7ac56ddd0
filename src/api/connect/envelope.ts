import { waybillError } from '../../errors/waybill-error.ts'
import { decodeContent } from '../http/request-body.ts'

/*
 * gRPC and gRPC-Web put five bytes before each message: flags and length. The lowest flag says that the message is
 * compressed; in gRPC-Web the highest marks the trailers, which come last.
 */
const PREFIX_LENGTH = 5
const COMPRESSED = 0x01
const TRAILERS = 0x80

/** The longest prefix that a single message has beside its bytes. */
export const ENVELOPE_OVERHEAD = PREFIX_LENGTH

/**
 * Opens the one envelope of a unary request.
 *
 * @throws WaybillError WRONG_REQUEST_COUNT, MALFORMED_BODY, UNSTATED_COMPRESSION, UNSUPPORTED_CONTENT_ENCODING, BODY_TOO_LARGE
 */
export async function openEnvelope(
  body: Uint8Array,
  { encoding, maxBytes }: { readonly encoding: string | undefined; readonly maxBytes: number },
): Promise<Uint8Array> {
  if (body.length === 0) throw waybillError('WRONG_REQUEST_COUNT', { count: 'no message' })
  if (body.length < PREFIX_LENGTH) throw malformed('it ends within the prefix of a message')
  const flags = body[0] ?? 0
  const length = new DataView(body.buffer, body.byteOffset).getUint32(1)
  if (length > maxBytes) throw waybillError('BODY_TOO_LARGE', { limit: maxBytes })
  if (body.length < PREFIX_LENGTH + length) throw malformed(`it ends within a message of ${length} bytes`)
  if (body.length > PREFIX_LENGTH + length)
    throw waybillError('WRONG_REQUEST_COUNT', { count: 'more than one message' })
  const message = body.subarray(PREFIX_LENGTH)
  if (flags === 0) return message
  if (flags !== COMPRESSED) throw malformed(`the flags ${flags} of its message are unknown`)
  if (encoding === undefined || encoding === 'identity') throw waybillError('UNSTATED_COMPRESSION', {})
  return decodeContent(message, encoding, maxBytes)
}

/** Puts a message into an envelope. */
export function sealEnvelope(message: Uint8Array, compressed: boolean): Uint8Array {
  return withPrefix(message, compressed ? COMPRESSED : 0)
}

/** Writes the trailers of gRPC-Web, which stand in the body. */
export function sealTrailers(trailers: Readonly<Record<string, string>>): Uint8Array {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
  return withPrefix(Buffer.from(lines.join('')), TRAILERS)
}

function withPrefix(payload: Uint8Array, flags: number): Uint8Array {
  const envelope = Buffer.allocUnsafe(PREFIX_LENGTH + payload.length)
  envelope[0] = flags
  envelope.writeUInt32BE(payload.length, 1)
  envelope.set(payload, PREFIX_LENGTH)
  return envelope
}

function malformed(detail: string) {
  return waybillError('MALFORMED_BODY', { detail })
}
