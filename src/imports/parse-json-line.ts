import { waybillError } from '../errors/waybill-error.ts'

/** Levels of objects and lists within each other; a payment has three. */
const DEEPEST = 32

/**
 * Parses the JSON of a line. Unlike JSON.parse it bounds the nesting and refuses keys that are given twice, of which JSON.parse would
 * silently keep the last.
 *
 * @throws WaybillError MALFORMED_LINE
 */
export function parseJsonLine(text: string): unknown {
  const json = parse(text)
  refuseDepth(text)
  if (countKeyEnds(text) !== countKeys(json)) refuseDuplicateKeys(text)
  return json
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw malformed((cause as Error).message, cause)
  }
}

/** Brackets within strings count at first as well; only what has too many is counted exactly. */
function refuseDepth(text: string): void {
  let brackets = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0 && brackets <= DEEPEST; at = text.indexOf(bracket, at + 1)) brackets++
  }
  if (brackets <= DEEPEST) return
  let depth = 0
  visitTokens(text, (token) => {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    if (depth > DEEPEST) throw malformed(`it is nested deeper than ${DEEPEST} levels`)
  })
}

/**
 * How often a quote and a colon follow each other: as often as there are keys, in the usual form; no fewer than there are, unless a key has a
 * blank behind it, which is told by another number.
 */
function countKeyEnds(text: string): number {
  if (/"\s+:/.test(text)) return -1
  let count = 0
  for (let at = text.indexOf('":'); at >= 0; at = text.indexOf('":', at + 2)) count++
  return count
}

function countKeys(json: unknown): number {
  if (typeof json !== 'object' || json === null) return 0
  let count = 0
  if (Array.isArray(json)) {
    for (const entry of json) count += countKeys(entry)
    return count
  }
  for (const name in json) count += 1 + countKeys((json as Record<string, unknown>)[name])
  return count
}

function refuseDuplicateKeys(text: string): void {
  const open: (Set<string> | undefined)[] = []
  let isKeyNext = false
  visitTokens(text, (token) => {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (isKeyNext && token.startsWith('"')) addKey(open.at(-1), JSON.parse(token) as string)
    isKeyNext = token === '{' || (token === ',' && open.at(-1) !== undefined)
  })
}

function addKey(keys: Set<string> | undefined, key: string): void {
  if (keys?.has(key)) throw malformed(`"${key}" is given twice`)
  keys?.add(key)
}

const TOKEN = /[{}[\],]|"[^"\\]*(?:\\.[^"\\]*)*"/g

/** Visits strings, and what opens, closes and separates. Only of a text that JSON.parse has taken, whose strings end. */
function visitTokens(text: string, visit: (token: string) => void): void {
  for (const [token] of text.matchAll(TOKEN)) visit(token)
}

function malformed(detail: string, cause?: unknown): Error {
  return waybillError('MALFORMED_LINE', { detail }, { cause })
}
