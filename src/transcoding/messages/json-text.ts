import { quote, TranscodingError } from '../errors/transcoding-error.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The maximum of levels in a request: of objects and lists in JSON, of messages in binary, of names in a parameter. As in protobuf's own parsers. */
export const MAX_DEPTH = 100

/**
 * The maximum of fields and values in a request; nested objects and lists are values, too. A search has up to a hundred values in each of
 * some twenty filters. Decoding a third of a million empty messages took 2.8 s of the one thread that serves everybody.
 */
export const MAX_VALUES = 10_000

/** The JSON of a body, as JSON.parse returns it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/**
 * Parses a body. Unlike JSON.parse it limits nesting and values, and refuses duplicate keys, of which JSON.parse silently keeps the
 * last.
 *
 * @throws TranscodingError INVALID_UTF8, TOO_DEEP, TOO_MANY_VALUES, MALFORMED_JSON, DUPLICATE_JSON_FIELD
 */
export function parseJson(body: Uint8Array): Json {
  const text = decodeUtf8(body)
  let values = 0
  let twice: string | undefined
  const json = parseText(text, {
    onOpen(depth) {
      if (depth <= MAX_DEPTH) return
      throw new TranscodingError('TOO_DEEP', `the body is nested deeper than ${MAX_DEPTH} levels`)
    },
    onValue() {
      values += 1
      if (values <= MAX_VALUES) return
      throw new TranscodingError('TOO_MANY_VALUES', `the body holds more than ${MAX_VALUES} values`)
    },
    onTwice(key) {
      twice ??= key
    },
  })
  if (twice === undefined) return json
  const problem = `the body: it gives the key ${quote(twice)} twice`
  throw new TranscodingError('DUPLICATE_JSON_FIELD', problem, { field: twice })
}

function decodeUtf8(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch (cause) {
    throw new TranscodingError('INVALID_UTF8', 'the body is not UTF-8', { cause })
  }
}

/** Scans the text first: JSON.parse takes long for deep nesting. */
function parseText(text: string, findings: JsonFindings): Json {
  try {
    scanJson(text, findings)
    return JSON.parse(text) as Json
  } catch (cause) {
    if (cause instanceof TranscodingError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new TranscodingError('MALFORMED_JSON', `the body: it is not JSON: ${why}`, { cause })
  }
}

/** What is found in a JSON text. */
interface JsonFindings {
  /** An object or a list begins. @param depth - how many are open with it */
  readonly onOpen: (depth: number) => void
  /** An object, a list, or what follows a comma. */
  readonly onValue?: () => void
  /** An object has a key for the second time. */
  readonly onTwice: (key: string) => void
}

/** Strings, and the structural characters but colons. A string may be cut off: a pattern that then failed would be tried at each of its quotes. */
const TOKEN = /[{}[\],]|"[^"\\]*(?:\\[^][^"\\]*)*"?/g

/** Goes through a text. @throws SyntaxError for one that is no JSON, or else not */
export function scanJson(text: string, { onOpen, onValue, onTwice }: JsonFindings): void {
  /** The keys of each open object; lists have none. */
  const open: (Set<string> | undefined)[] = []
  let isKeyNext = false
  for (const [token] of text.matchAll(TOKEN)) {
    const isOpening = token === '{' || token === '['
    if (isOpening || token === ',') onValue?.()
    if (isOpening) {
      open.push(token === '{' ? new Set() : undefined)
      onOpen(open.length)
    } else if (token === '}' || token === ']') open.pop()
    else if (isKeyNext) {
      // An escaped key may equal a key that is not escaped.
      const key = token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1)
      if (open.at(-1)?.has(key) === true) onTwice(key)
      open.at(-1)?.add(key)
    }
    isKeyNext = token === '{' || (token === ',' && open.at(-1) !== undefined)
  }
}
