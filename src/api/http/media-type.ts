import { MIMEType } from 'node:util'

/** A media type, as Content-Type names it (RFC 9110, 8.3.1). */
export interface MediaType {
  /** Type and subtype, in lower case: `application/json`. */
  readonly type: string
  /** Whether a text of this type is UTF-8: it is, unless a parameter names another charset. */
  readonly isUtf8: boolean
}

/** Of longer ones only the beginning is read. */
const MAX_LENGTH = 1024

/** Reads a Content-Type; undefined for a text that names no type. Parameters that cannot be read are ignored, as browsers do. */
export function readMediaType(contentType: string): MediaType | undefined {
  try {
    const { essence, params } = new MIMEType(contentType.slice(0, MAX_LENGTH))
    return { type: essence, isUtf8: /^utf-?8$/i.test(params.get('charset') ?? 'utf-8') }
  } catch {
    return undefined
  }
}

/**
 * A list of elements in a header, separated by commas (RFC 9110, 5.6.1). Only so much of it is read: a header may have 64 KiB, and 60,000
 * empty elements would take 10 ms of the one thread. No client has reason to send more.
 */
export const MAX_LIST_ELEMENTS = 100
const MAX_LIST_LENGTH = 4096

/** The first elements of a list, untrimmed. */
export function firstElements(list: string): readonly string[] {
  return list.slice(0, MAX_LIST_LENGTH).split(',', MAX_LIST_ELEMENTS)
}

/** The last elements of a list, untrimmed, for lists to which each proxy appends. */
export function lastElements(list: string): readonly string[] {
  return list.slice(-MAX_LIST_LENGTH).split(',').slice(-MAX_LIST_ELEMENTS)
}

/** How many parameters of an element are read. */
const MAX_PARAMETERS = 20

/** An element's value and its parameters, trimmed: `text/html;q=0.8` is `text/html` and `q=0.8`. */
export function partsOf(element: string): readonly string[] {
  return element.split(';', MAX_PARAMETERS).map((part) => part.trim())
}
