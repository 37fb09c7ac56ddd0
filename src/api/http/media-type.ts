/** A media type, as Content-Type names it (RFC 9110, 8.3.1). */
export interface MediaType {
  /** Type and subtype, in lower case: `application/json`. */
  readonly type: string
  /** Whether all parameters can be read. Empty ones (`;`) and unknown ones are ignored. */
  readonly isWellFormed: boolean
  /** Whether a text of this type is UTF-8: it is, unless a parameter names another charset. */
  readonly isUtf8: boolean
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
const TYPE = new RegExp(`^\\s*(${TOKEN}/${TOKEN})`)
/** RFC 9110 allows no space around `=`; some clients write it. */
const PARAMETER = new RegExp(`[ \\t]*;[ \\t]*(?:(${TOKEN})[ \\t]*=[ \\t]*(?:(${TOKEN})|"((?:[^"\\\\]|\\\\.)*)"))?`, 'y')

/** Longer ones are not well formed: reading 60,000 parameters takes milliseconds. */
const MAX_LENGTH = 1024

/** Reads a Content-Type; undefined for a text that names no type. */
export function readMediaType(sent: string): MediaType | undefined {
  const contentType = sent.slice(0, MAX_LENGTH)
  const found = TYPE.exec(contentType)
  if (found === null) return undefined
  let isUtf8 = true
  let end = found[0].length
  PARAMETER.lastIndex = end
  for (let match = PARAMETER.exec(contentType); match !== null; match = PARAMETER.exec(contentType)) {
    end = PARAMETER.lastIndex
    const [, name = '', token, quoted] = match
    if (name.toLowerCase() !== 'charset') continue
    const charset = token ?? quoted?.replaceAll(/\\(.)/g, '$1') ?? ''
    isUtf8 &&= /^utf-?8$/i.test(charset)
  }
  const isWellFormed = sent.length <= MAX_LENGTH && contentType.slice(end).trim() === ''
  return { type: (found[1] ?? '').toLowerCase(), isWellFormed, isUtf8 }
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
