import { create, type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBodyMapping } from '../../transcoding/body-mapping.ts'
import { countFields } from './count-fields.ts'
import { MAX_JSON_DEPTH, MAX_VALUES } from './request-errors.ts'

/** How the bytes of a message are to be read. */
export type MessageFormat = 'binary' | 'json'

/** Decodes one message. */
export type MessageDecoder = (bytes: Uint8Array, format: MessageFormat) => Message

/**
 * Compiles the decoder of a message. JSON is read as strictly as by plain HTTP, so that a mistake has the same reason
 * whichever way it comes.
 *
 * The decoder throws TranscodingError, and WaybillError MALFORMED_BODY, INVALID_UTF8, BODY_TOO_COMPLEX.
 */
export function compileDecoder(desc: DescMessage): MessageDecoder {
  const mapBody = compileBodyMapping(desc, '*', {
    registry: undefined,
    maxJsonDepth: MAX_JSON_DEPTH,
    maxJsonValues: MAX_VALUES,
  })
  return (bytes, format) => {
    if (format === 'binary') return decodeBinary(desc, bytes)
    if (bytes.length === 0) throw waybillError('MALFORMED_BODY', { detail: 'it is empty' })
    const message = create(desc)
    mapBody(message, bytes)
    return message
  }
}

function decodeBinary(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    if (countFields(desc, bytes, MAX_VALUES) > MAX_VALUES) throw waybillError('BODY_TOO_COMPLEX', { limit: MAX_VALUES })
    return fromBinary(desc, bytes)
  } catch (cause) {
    if (cause instanceof WaybillError) throw cause
    // The decoder of strings is the only one with a code.
    if (cause instanceof Error && (cause as { code?: unknown }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw waybillError('INVALID_UTF8', { field: 'a text in the message' }, { cause, violations: [] })
    }
    throw waybillError('MALFORMED_BODY', { detail: `it is no ${desc.typeName}` }, { cause })
  }
}
