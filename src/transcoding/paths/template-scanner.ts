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

export type TemplateScanner = ReturnType<typeof scanTemplate>

/*
 * http.proto does not define LITERAL. Here: the characters that RFC 3986 allows in a segment (unreserved, pct-encoded,
 * sub-delims, "@"), except those with a meaning in a template, `*` and `:`.
 */
const literal = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y

/** Scans a path template from its first character. It never backtracks: the grammar needs one character of lookahead. */
export function scanTemplate(template: string) {
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
