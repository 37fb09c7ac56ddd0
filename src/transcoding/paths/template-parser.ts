import { TranscodingError } from '../errors/transcoding-error.ts'
import { decodeSegment } from './percent-decoding.ts'

export type Segment =
  /** Exactly this text, once decoded. */
  | { readonly kind: 'literal'; readonly text: string }
  /** `*`: exactly one segment. */
  | { readonly kind: 'one' }
  /** `**`: any number of segments, none included. */
  | { readonly kind: 'any' }

/**
 * A variable captures the segments from `start` up to, not including, `end`. Below zero they count from the end of the
 * path: -1 is the end itself, -2 the last segment. Variables after `**` need this, since it has no fixed length.
 */
export interface TemplateVariable {
  /** Dotted, of proto field names: `book.name`. */
  readonly fieldPath: string
  readonly start: number
  readonly end: number
  /** Whether it captures several segments or `**`. An escaped slash then stays escaped in the value. */
  readonly multiSegment: boolean
}

export interface PathTemplate {
  readonly segments: readonly Segment[]
  /** The text after the colon, as written; empty for none. */
  readonly verb: string
  readonly variables: readonly TemplateVariable[]
}

/**
 * Parses a path template of google.api.http. The grammar, from http.proto:
 *
 * ```
 * Template = "/" Segments [ Verb ] ;
 * Segments = Segment { "/" Segment } ;
 * Segment  = "*" | "**" | LITERAL | Variable ;
 * Variable = "{" FieldPath [ "=" Segments ] "}" ;
 * FieldPath = IDENT { "." IDENT } ;
 * Verb     = ":" LITERAL ;
 * ```
 *
 * Variables do not nest. Only literals may follow `**` (in http.proto `**` is last; literals after it are an extension of
 * grpc-httpjson-transcoding). A verb may have further parts, `:verb:subverb`, as in grpc-gateway.
 *
 * @throws TemplateError with the column
 */
export function parseTemplate(text: string): PathTemplate {
  const scanner = scanTemplate(text)
  const parsed: Parsed = { segments: [], variables: [], indexOfAny: undefined }

  scanner.expect('/')
  parseSegments(scanner, parsed, true)
  const verb = scanner.take(':') ? parseVerb(scanner) : ''
  if (!scanner.atEnd()) throw scanner.error('expected "/", ":" or the end')

  const variables = parsed.variables.map((variable) => countAfterAny(variable, parsed))
  return { segments: parsed.segments, verb, variables }
}

/** The segments and verb of a template without its variables. Two templates of one form match the same paths. */
export function patternOf({ segments, verb }: PathTemplate): string {
  const path = segments.map((segment) => `/${segmentText(segment)}`).join('')
  return verb === '' ? path : `${path}:${verb}`
}

/** The segment as a template would write it: `*`, `**` or the literal, decoded. */
export function segmentText(segment: Segment): string {
  if (segment.kind === 'literal') return segment.text
  return segment.kind === 'one' ? '*' : '**'
}

interface Parsed {
  readonly segments: Segment[]
  readonly variables: TemplateVariable[]
  /** The position of `**`; there is at most one. */
  indexOfAny: number | undefined
}

function parseSegments(scanner: TemplateScanner, parsed: Parsed, variablesAllowed: boolean): void {
  do {
    if (scanner.at('{')) {
      if (!variablesAllowed) throw scanner.error('a variable within a variable')
      parseVariable(scanner, parsed)
    } else {
      parseSegment(scanner, parsed)
    }
  } while (scanner.take('/'))
}

function parseSegment(scanner: TemplateScanner, parsed: Parsed): void {
  const column = scanner.column()
  const segment = readSegment(scanner)
  if (segment.kind !== 'literal' && parsed.indexOfAny !== undefined) {
    throw scanner.error('only literals may follow "**"', column)
  }
  if (segment.kind === 'any') parsed.indexOfAny = parsed.segments.length
  parsed.segments.push(segment)
}

function readSegment(scanner: TemplateScanner): Segment {
  if (scanner.take('*')) return scanner.take('*') ? { kind: 'any' } : { kind: 'one' }
  return { kind: 'literal', text: decodeLiteral(scanner, scanner.takeLiteral('"*", "**", a literal or a variable')) }
}

function parseVariable(scanner: TemplateScanner, parsed: Parsed): void {
  const column = scanner.column()
  scanner.expect('{')
  const fieldPath = parseFieldPath(scanner)
  if (parsed.variables.some((other) => other.fieldPath === fieldPath)) {
    throw scanner.error(`the variable ${fieldPath} stands twice`, column)
  }
  const start = parsed.segments.length
  if (scanner.take('=')) parseSegments(scanner, parsed, false)
  else if (parsed.indexOfAny === undefined) parsed.segments.push({ kind: 'one' })
  else throw scanner.error('only literals may follow "**"', column)
  scanner.expect('}')

  const end = parsed.segments.length
  const multiSegment = end - start > 1 || parsed.indexOfAny === start
  parsed.variables.push({ fieldPath, start, end, multiSegment })
}

function parseFieldPath(scanner: TemplateScanner): string {
  let path = scanner.takeIdentifier()
  while (scanner.take('.')) path += `.${scanner.takeIdentifier()}`
  return path
}

function parseVerb(scanner: TemplateScanner): string {
  let verb = scanner.takeLiteral('a verb')
  while (scanner.take(':')) verb += `:${scanner.takeLiteral('a verb')}`
  return verb
}

function decodeLiteral(scanner: TemplateScanner, raw: string): string {
  try {
    return decodeSegment(raw)
  } catch (error) {
    if (error instanceof TranscodingError) throw scanner.error(error.message, scanner.column() - raw.length)
    throw error
  }
}

/** Turns the bounds after `**` into bounds that count from the end. */
function countAfterAny(variable: TemplateVariable, { segments, indexOfAny }: Parsed): TemplateVariable {
  const fromEnd = (bound: number) => bound - segments.length - 1
  if (indexOfAny === undefined) return variable
  return {
    ...variable,
    start: variable.start > indexOfAny ? fromEnd(variable.start) : variable.start,
    end: variable.end > indexOfAny ? fromEnd(variable.end) : variable.end,
  }
}

/** A path template that breaks the grammar. Thrown at start-up: templates come from the descriptors. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
  readonly template: string
  /** Where the template breaks, counted from 1. */
  readonly column: number

  constructor(template: string, column: number, problem: string) {
    super(`path template ${JSON.stringify(template)}, column ${column}: ${problem}`)
    this.template = template
    this.column = column
  }
}

type TemplateScanner = ReturnType<typeof scanTemplate>

/*
 * http.proto does not define LITERAL. Here: the characters that RFC 3986 allows in a segment (unreserved, pct-encoded,
 * sub-delims, "@"), except those with a meaning in a template, `*` and `:`.
 */
const literal = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y

/** Scans a path template from its first character. It never backtracks: the grammar needs one character of lookahead. */
function scanTemplate(template: string) {
  let position = 0

  /** The error for the next character, or for the given column. */
  function error(problem: string, column = position + 1): TemplateError {
    return new TemplateError(template, column, problem)
  }

  function describeNext(): string {
    return position < template.length ? JSON.stringify(template[position]) : 'the end'
  }

  function takeMatch(pattern: RegExp, what: string): string {
    pattern.lastIndex = position
    const text = pattern.exec(template)?.[0]
    if (text === undefined) throw error(`expected ${what}, found ${describeNext()}`)
    position += text.length
    return text
  }

  /** Skips this character, if it is next. */
  function take(char: string): boolean {
    if (template[position] !== char) return false
    position += 1
    return true
  }

  return {
    take,
    error,
    /** Whether this is the next character. */
    at: (char: string) => template[position] === char,
    atEnd: () => position === template.length,
    /** Skips this character, or throws. */
    expect(char: string): void {
      if (!take(char)) throw error(`expected ${JSON.stringify(char)}, found ${describeNext()}`)
    },
    /** Skips a literal of the path and returns it as written, or throws. `:` is allowed within a verb only. */
    takeLiteral: (what: string) => takeMatch(literal, what),
    /** Skips an identifier, or throws. */
    takeIdentifier: () => takeMatch(identifier, 'a field name'),
    /** The column of the next character, counted from 1. */
    column: () => position + 1,
  }
}
