import { quote, TranscodingError } from '../errors/transcoding-error.ts'

/*
 * All texts are as Node gives them in `request.url`: one character for each byte. A byte above 0x7F that was sent unescaped, as
 * curl does, is read as if it were escaped.
 */
const malformedEscape = /%(?![0-9A-Fa-f]{2})/
const unescapedByte = /[\u0080-\u00ff]/g
const needsDecoding = /[%\u0080-\u00ff]/
const escapedSlash = /(%2[Ff])/

/** Whether a text has anything to decode. */
export function isEncoded(raw: string): boolean {
  return needsDecoding.test(raw)
}

/**
 * Decodes one path segment: every escape, once; `+` is a plus.
 *
 * @param field - whose value it is, for the error
 * @throws TranscodingError MALFORMED_ESCAPE, INVALID_UTF8
 */
export function decodeSegment(raw: string, field?: string): string {
  return needsDecoding.test(raw) ? decodeEscapes(raw, field) : raw
}

/**
 * Decodes the value of a variable of several segments. An escaped slash stays escaped, so that it differs from the slashes
 * between the segments (http.proto: `"%2F"` and `"%2f"` are left unchanged).
 *
 * @throws TranscodingError MALFORMED_ESCAPE, INVALID_UTF8
 */
export function decodeSegments(raw: string): string {
  if (!needsDecoding.test(raw)) return raw
  const parts = raw.split(escapedSlash)
  return parts.map((part, index) => (index % 2 === 1 ? part : decodeEscapes(part))).join('')
}

/**
 * Decodes a name or value of a query string: every escape, once; `+` is a space.
 *
 * @param field - whose value it is, for the error
 * @throws TranscodingError MALFORMED_ESCAPE, INVALID_UTF8
 */
export function decodeQueryComponent(raw: string, field?: string): string {
  return decodeSegment(raw.includes('+') ? raw.replaceAll('+', ' ') : raw, field)
}

function decodeEscapes(raw: string, field?: string): string {
  const malformed = malformedEscape.exec(raw)
  if (malformed !== null) {
    const escape = raw.slice(malformed.index, malformed.index + 3)
    const problem = `malformed escape ${quote(escape)} in ${quote(raw)}: write a percent sign as %25`
    throw new TranscodingError('MALFORMED_ESCAPE', problem, { field, value: raw })
  }
  try {
    return decodeURIComponent(raw.replace(unescapedByte, escapeByte))
  } catch (cause) {
    throw new TranscodingError('INVALID_UTF8', `${quote(raw)} is not UTF-8 once decoded`, { field, value: raw, cause })
  }
}

function escapeByte(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16)}`
}
