import { waybillError } from '../../errors/waybill-error.ts'

const GROUP = 4

/**
 * Makes a decoder of the base64 of gRPC-Web's text form, as it arrives. The text may consist of several pieces, each with its padding. Node's own decoder skips what is not base64, and a
 * message that is lost in that way would be a search without filters.
 */
export function createBase64Decoder() {
  let held = ''
  return {
    /**
     * @returns the bytes that are complete
     * @throws WaybillError MALFORMED_BODY
     */
    push(chunk: Uint8Array): Uint8Array {
      const text = held + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')
      const end = text.length - (text.length % GROUP)
      held = text.slice(end)
      return decodePieces(text.slice(0, end))
    },
    /** @throws WaybillError MALFORMED_BODY when the text ends within a group of four characters */
    end(): void {
      if (held !== '') throw notBase64()
    },
  }
}

/** Decodes a text that is there as a whole. @throws WaybillError MALFORMED_BODY */
export function decodeBase64(text: Uint8Array): Uint8Array {
  const decoder = createBase64Decoder()
  const bytes = decoder.push(text)
  decoder.end()
  return bytes
}

/** A piece ends with its padding. */
function decodePieces(text: string): Uint8Array {
  const pieces = text.match(/[^=]+=*|=+/g) ?? []
  if (!pieces.every((piece) => piece.length % GROUP === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(piece))) throw notBase64()
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')))
}

function notBase64() {
  return waybillError('MALFORMED_BODY', { detail: 'it is not base64' })
}
