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
  refuseExcess(text)
  const json = parseText(text)
  refuseDuplicateKeys(text)
  return json
}

function decodeUtf8(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch (cause) {
    throw new TranscodingError('INVALID_UTF8', 'the body is not UTF-8', { cause })
  }
}

function parseText(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new TranscodingError('MALFORMED_JSON', `the body: it is not JSON: ${why}`, { cause })
  }
}

function refuseExcess(text: string): void {
  let depth = 0
  let values = 0
  visitTokens(text, (token) => {
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    if (depth > MAX_DEPTH) throw new TranscodingError('TOO_DEEP', `the body is nested deeper than ${MAX_DEPTH} levels`)
    if (token === '{' || token === '[' || token === ',') values += 1
    if (values > MAX_VALUES)
      throw new TranscodingError('TOO_MANY_VALUES', `the body holds more than ${MAX_VALUES} values`)
  })
}

/** Only for texts that JSON.parse accepts. */
function refuseDuplicateKeys(text: string): void {
  /** The keys of each open object; arrays have none. */
  const open: (Set<string> | undefined)[] = []
  let keyExpected = false
  visitTokens(text, (token) => {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token.startsWith('"') && keyExpected) addKey(open.at(-1), token)
    keyExpected = token === '{' || (token === ',' && open.at(-1) !== undefined)
  })
}

const structural = new Set('{}[],:')

/** Visits each string and each structural character. The text may end within a string. */
function visitTokens(text: string, visit: (token: string) => void): void {
  for (let position = 0; position < text.length; position++) {
    const char = text.charAt(position)
    if (structural.has(char)) visit(char)
    if (char !== '"') continue
    const end = endOfString(text, position)
    visit(text.slice(position, end))
    position = end - 1
  }
}

/** The position after the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  for (let position = start + 1; position < text.length; position++) {
    const char = text.charAt(position)
    if (char === '"') return position + 1
    if (char === '\\') position += 1
  }
  return text.length
}

function addKey(keys: Set<string> | undefined, token: string): void {
  // An escaped key may equal a key that is not escaped.
  const key = token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1)
  if (keys?.has(key)) {
    throw new TranscodingError('DUPLICATE_JSON_FIELD', `the body: it gives the key ${quote(key)} twice`, { field: key })
  }
  keys?.add(key)
}
