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

/** A cursor over a template. It never backtracks: the grammar needs one character of lookahead. */
export interface TemplateScanner {
  /** Whether this is the next character. */
  at(char: string): boolean
  atEnd(): boolean
  /** Skips this character, if it is next. */
  take(char: string): boolean
  /** Skips this character, or throws. */
  expect(char: string): void
  /** Skips a literal of the path and returns it as written, or throws. `:` is allowed within a verb only. */
  takeLiteral(what: string): string
  /** Skips an identifier, or throws. */
  takeIdentifier(): string
  /** The column of the next character, counted from 1. */
  column(): number
  /** The error for the next character, or for the given column. */
  error(problem: string, column?: number): TemplateError
}

/*
 * http.proto does not define LITERAL. Here: the characters that RFC 3986 allows in a segment (unreserved, pct-encoded,
 * sub-delims, "@"), except those with a meaning in a template, `*` and `:`.
 */
const literal = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y

/** Scans a path template from its first character. */
export function scanTemplate(template: string): TemplateScanner {
  let position = 0

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

  const scanner: TemplateScanner = {
    at: (char) => template[position] === char,
    atEnd: () => position === template.length,
    take(char) {
      if (template[position] !== char) return false
      position += 1
      return true
    },
    expect(char) {
      if (!scanner.take(char)) throw error(`expected ${JSON.stringify(char)}, found ${describeNext()}`)
    },
    takeLiteral: (what) => takeMatch(literal, what),
    takeIdentifier: () => takeMatch(identifier, 'a field name'),
    column: () => position + 1,
    error,
  }
  return scanner
}
