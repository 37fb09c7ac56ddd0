/**
 * SQL with a `?` for each binding. A statement is put together from pieces and never edited afterwards; each piece brings its own
 * bindings, so text and bindings cannot get out of step.
 */
export interface Statement {
  readonly sql: string
  readonly bindings: readonly Binding[]
}

export type Binding = string | number | Buffer | null | readonly (string | number | Buffer | null)[]

/**
 * Writes a piece of SQL. Only pieces can be interpolated, so that a value never gets into the text by mistake: values go through
 * {@link bind}, text that this program made (a column of the field table, a row limit) through {@link raw}.
 *
 * @example
 * sql`select id from payments where ${raw('payer')} = ${bind(payer, 'bytea')}`
 * // { sql: 'select id from payments where payer = ?::bytea', bindings: [payer] }
 */
export function sql(texts: TemplateStringsArray, ...pieces: readonly Statement[]): Statement {
  let text = ''
  const bindings: Binding[] = []
  let at = 0
  for (const piece of pieces) {
    text += texts[at++] + piece.sql
    for (const binding of piece.bindings) bindings.push(binding)
  }
  return { sql: text + texts[at], bindings }
}

/** Text that this program made. Never give it anything that came from a caller. */
export function raw(text: string | number): Statement {
  return { sql: String(text), bindings: [] }
}

/** A value: `?`, or `?::type` where the server cannot infer its type. */
export function bind(value: Binding, type?: string): Statement {
  return { sql: type === undefined ? '?' : `?::${type}`, bindings: [value] }
}

/** A time in milliseconds since 1970 as `?::timestamptz`; null where there is none. */
export function bindTime(ms: number | undefined): Statement {
  return bind(ms === undefined ? null : timeText(ms), 'timestamptz')
}

/** A time as PostgreSQL reads it. It has no year 0, and does not read the sign and the 0 of +010000, the year after 9999. */
export function timeText(ms: number): string {
  return ms < YEAR_1_MS ? '-infinity' : new Date(ms).toISOString().replace(/^\+0/, '')
}

const YEAR_1_MS = Date.parse('0001-01-01T00:00:00Z')

/** `a, b, c` with the separator given. */
export function join(pieces: readonly Statement[], separator: string): Statement {
  return {
    sql: pieces.map((piece) => piece.sql).join(separator),
    bindings: pieces.flatMap((piece) => piece.bindings),
  }
}

export const EMPTY: Statement = raw('')

/** A condition that every row meets. */
export const TRUE: Statement = raw('true')

/** `a and b`; conditions that are always true are left out. */
export function allOf(conditions: readonly Statement[]): Statement {
  return join(
    conditions.filter((condition) => condition !== TRUE),
    ' and ',
  )
}

/** `(a or b)`; `false` where there is no alternative. */
export function anyOf(conditions: readonly Statement[]): Statement {
  const [only] = conditions
  if (only === undefined) return raw('false')
  return conditions.length === 1 ? only : sql`(${join(conditions, ' or ')})`
}

/** `\nwhere a and b`, on a line of its own; empty without conditions. */
export function where(conditions: readonly Statement[]): Statement {
  const asked = conditions.filter((condition) => condition !== TRUE)
  return asked.length === 0 ? EMPTY : sql`\nwhere ${join(asked, ' and ')}`
}

/** `(a) union all (b)`; a single source has no parentheses. */
export function unionAll(sources: readonly Statement[]): Statement {
  const [only] = sources
  return sources.length === 1 && only !== undefined ? only : sql`(${join(sources, ')\nunion all\n(')})`
}

/** A common table: `name as (…)`, or `name as materialized (…)`, which is computed once and not merged into what reads it. */
export function commonTable(name: string, body: Statement, how: 'inlined' | 'materialized' = 'inlined'): Statement {
  return sql`${raw(name)} as ${raw(how === 'materialized' ? 'materialized ' : '')}(\n${body}\n)`
}
