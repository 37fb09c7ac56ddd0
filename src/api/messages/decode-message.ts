import { create, type DescMessage, fromBinary, type Message, type Registry } from '@bufbuild/protobuf'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBodyMapping } from '../../transcoding/body-mapping.ts'
import { decodeReporting, TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { MAX_DEPTH, MAX_VALUES } from '../../transcoding/messages/json-text.ts'
import { checkBinary } from './check-binary.ts'

/** The two encodings of a message. */
export type MessageFormat = 'binary' | 'json'

/** Decodes one message. */
export type MessageDecoder = (bytes: Uint8Array, format: MessageFormat) => Message

/**
 * Compiles the one decoder of a request message, which unary calls and streams of every RPC protocol use. JSON is decoded as strictly as
 * in REST, and both formats have the same limits, so that a mistake has the same reason whichever way it comes. Unknown fields and enum
 * numbers of binary messages are refused after decoding; see unknown-numbers.ts.
 *
 * The decoder throws TranscodingError and WaybillError.
 *
 * @param registry - finds the types in google.protobuf.Any
 */
export function compileDecoder(desc: DescMessage, registry: Registry): MessageDecoder {
  const mapBody = compileBodyMapping(desc, '*', registry)
  return (bytes, format) => {
    if (format === 'binary') return decodeBinary(desc, bytes)
    if (bytes.length === 0) throw waybillError('MALFORMED_BODY', { detail: 'it is empty' })
    const message = create(desc)
    return decodeReporting(message, (report) => mapBody(message, bytes, report))
  }
}

function decodeBinary(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    checkBinary(desc, bytes, { maxValues: MAX_VALUES, maxDepth: MAX_DEPTH })
    return fromBinary(desc, bytes)
  } catch (cause) {
    if (cause instanceof WaybillError || cause instanceof TranscodingError) throw cause
    // The decoder of strings is the only one whose errors have a code.
    if (cause instanceof Error && (cause as { code?: unknown }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw waybillError('INVALID_UTF8', { field: 'a text in the message' }, { cause, violations: [] })
    }
    throw waybillError('MALFORMED_BODY', { detail: `it is not a ${desc.typeName} in protobuf's format` }, { cause })
  }
}
