import { waybillError } from '../../errors/waybill-error.ts'
import { decodeContent, findCompression } from '../http/request-body.ts'

/*
 * gRPC, gRPC-Web and the streams of Connect put five bytes before each message: flags and length. The lowest flag says that the message
 * is compressed. The last envelope of an answer has a flag of its own: in gRPC-Web it holds the trailers, in Connect the outcome.
 */
const PREFIX_LENGTH = 5
const COMPRESSED = 0x01
const WEB_TRAILERS = 0x80
const CONNECT_END = 0x02

/**
 * How many bytes the body of a request with one message may have.
 *
 * @param isText - whether the body is in base64, which may be written in two pieces, each with its padding
 */
export function maxBodyBytesOf({ isText }: { readonly isText: boolean }, maxMessageBytes: number): number {
  return isText ? Math.ceil(maxMessageBytes / 3) * 4 + 8 : maxMessageBytes + PREFIX_LENGTH
}

/** How the messages of a request may be compressed, and how large they may be. */
export interface EnvelopeTerms {
  /** Whether the body is in base64. */
  readonly isText: boolean
  /** The compression that the call states; undefined and `identity` for none. */
  readonly encoding: string | undefined
  /** Of a message, compressed or not. */
  readonly maxBytes: number
}

/**
 * Takes the one message of a unary request out of its envelope.
 *
 * @throws WaybillError WRONG_REQUEST_COUNT, MALFORMED_BODY, UNSTATED_COMPRESSION, UNSUPPORTED_CONTENT_ENCODING, BODY_TOO_LARGE
 */
export async function openEnvelope(sent: Uint8Array, terms: EnvelopeTerms): Promise<Uint8Array> {
  const body = terms.isText ? decodeBase64(latin1Of(sent)) : sent
  if (body.length === 0) throw waybillError('WRONG_REQUEST_COUNT', { count: 'no message' })
  if (body.length < PREFIX_LENGTH) throw endsWithinPrefix()
  const { flags, length } = readPrefix(body, terms)
  if (body.length < PREFIX_LENGTH + length) throw endsWithinMessage(length)
  if (body.length > PREFIX_LENGTH + length) {
    throw waybillError('WRONG_REQUEST_COUNT', { count: 'more than one message' })
  }
  return openMessage(flags, body.subarray(PREFIX_LENGTH), terms)
}

/**
 * Takes the messages of a stream out of their envelopes, one after the other as they are asked for.
 *
 * @param body - in pieces of any size
 * @throws WaybillError as {@link openEnvelope}, except WRONG_REQUEST_COUNT
 */
export async function* openEnvelopes(
  body: AsyncIterable<Uint8Array>,
  terms: EnvelopeTerms,
): AsyncGenerator<Uint8Array> {
  const held = createByteQueue()
  let prefix: Prefix | undefined
  for await (const piece of terms.isText ? decodePieces(body) : body) {
    held.push(piece)
    for (;;) {
      if (prefix === undefined && held.length() >= PREFIX_LENGTH) prefix = readPrefix(held.take(PREFIX_LENGTH), terms)
      if (prefix === undefined || held.length() < prefix.length) break
      const message = held.take(prefix.length)
      const { flags } = prefix
      prefix = undefined
      yield await openMessage(flags, message, terms)
    }
  }
  if (prefix !== undefined) throw endsWithinMessage(prefix.length)
  if (held.length() > 0) throw endsWithinPrefix()
}

interface Prefix {
  readonly flags: number
  readonly length: number
}

function readPrefix(bytes: Uint8Array, { maxBytes }: EnvelopeTerms): Prefix {
  const flags = bytes[0] ?? 0
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1)
  // Refused before any memory is allocated for a length that is only claimed.
  if (length > maxBytes) throw waybillError('BODY_TOO_LARGE', { limit: maxBytes })
  return { flags, length }
}

async function openMessage(flags: number, message: Uint8Array, terms: EnvelopeTerms): Promise<Uint8Array> {
  if (flags === 0) return message
  if (flags !== COMPRESSED) throw malformed(`the flags ${flags} of its message are unknown`)
  const { encoding, maxBytes } = terms
  if (findCompression(encoding) === undefined) throw waybillError('UNSTATED_COMPRESSION', {})
  return decodeContent(message, encoding, maxBytes)
}

/** Bytes that have arrived and were not taken. Pieces are joined only when they are taken: a client may send single bytes. */
function createByteQueue() {
  let pieces: Uint8Array[] = []
  let length = 0
  return {
    length: () => length,
    push(piece: Uint8Array) {
      if (piece.length > 0) pieces.push(piece)
      length += piece.length
    },
    /** @param count - at most {@link length} */
    take(count: number): Uint8Array {
      const [first = new Uint8Array()] = pieces
      const bytes = pieces.length <= 1 ? first : Buffer.concat(pieces)
      pieces = bytes.length > count ? [bytes.subarray(count)] : []
      length -= count
      return bytes.subarray(0, count)
    },
  }
}

/**
 * Decodes the base64 of gRPC-Web's text form, as it arrives.
 *
 * @throws WaybillError MALFORMED_BODY, also when the text ends within a group of four characters
 */
async function* decodePieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held = ''
  for await (const piece of pieces) {
    const text = held + latin1Of(piece)
    const end = text.length - (text.length % GROUP)
    held = text.slice(end)
    yield decodeBase64(text.slice(0, end))
  }
  if (held !== '') throw malformed('it is not base64')
}

const GROUP = 4

function latin1Of({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

/**
 * The text may consist of several parts, each with its padding. Node's own decoder skips what is not base64, and a message that is lost in that
 * way would be a search without filters.
 */
function decodeBase64(text: string): Uint8Array {
  const parts = text.match(/[^=]+=*|=+/g) ?? []
  const isBase64 = parts.every((part) => part.length % GROUP === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(part))
  if (!isBase64) throw malformed('it is not base64')
  return Buffer.concat(parts.map((part) => Buffer.from(part, 'base64')))
}

/** Puts a message into an envelope. */
export function sealEnvelope(message: Uint8Array, isCompressed: boolean): Uint8Array {
  return withPrefix(message, isCompressed ? COMPRESSED : 0)
}

/** Writes the trailers of gRPC-Web, which end the body. */
export function sealWebTrailers(trailers: Readonly<Record<string, string>>): Uint8Array {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
  return withPrefix(Buffer.from(lines.join('')), WEB_TRAILERS)
}

/** Writes the outcome of a stream of Connect, which ends the body. @param outcome - to be written as JSON */
export function sealConnectEnd(outcome: object): Uint8Array {
  return withPrefix(Buffer.from(JSON.stringify(outcome)), CONNECT_END)
}

function withPrefix(payload: Uint8Array, flags: number): Uint8Array {
  const envelope = Buffer.allocUnsafe(PREFIX_LENGTH + payload.length)
  envelope[0] = flags
  envelope.writeUInt32BE(payload.length, 1)
  envelope.set(payload, PREFIX_LENGTH)
  return envelope
}

function endsWithinPrefix() {
  return malformed('it ends within the prefix of a message')
}

function endsWithinMessage(length: number) {
  return malformed(`it ends within a message of ${length} bytes`)
}

function malformed(detail: string) {
  return waybillError('MALFORMED_BODY', { detail })
}
