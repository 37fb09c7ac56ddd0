import knexModule, { type Knex } from 'knex'
import { runCancellable } from './cancellable.ts'

/**
 * Statements that depend on what is asked are put together from pieces, and never edited afterwards. A piece is a raw query of Knex: it brings its own
 * bindings, and is itself a binding of the piece around it, so text and bindings cannot get out of step.
 */
export type Statement = Knex.Raw

type Binding = string | number | bigint | boolean | Date | Buffer | null
type Bindings = readonly Bound[] | Readonly<Record<string, Bound>>
type Bound = Binding | readonly Binding[] | Statement

/** Writes SQL, and has no database. */
const writer = knexModule({ client: 'pg' })

/**
 * A piece of SQL. Values and other pieces are bindings: `?` in a list, or `:name`. Only text that this program made (a column of the field table,
 * a row limit) is interpolated; never anything that came from a caller.
 *
 * @param bindings - of a piece without text Knex would write a `?`, so none is given
 * @example
 * raw(`select id from payments where ${column} = ?::bytea and ?`, [payer, condition])
 */
export function raw(text: string, bindings: Bindings = []): Statement {
  return writer.raw(text, bindings as readonly Knex.RawBinding[])
}

/** Reads the rows of a statement. When the signal fires, the server cancels it. */
export async function readRows<Row>(knex: Knex, statement: Statement, signal: AbortSignal | undefined): Promise<Row[]> {
  return (await runCancellable(knex, knex.raw<{ rows: Row[] }>('?', [statement]), signal)).rows
}

/** A time in milliseconds since 1970, as PostgreSQL reads it. It has no year 0, and does not read the sign and the 0 of +010000, the year after 9999. */
export function timeText(ms: number): string {
  return ms < YEAR_1_MS ? '-infinity' : new Date(ms).toISOString().replace(/^\+0/, '')
}

const YEAR_1_MS = Date.parse('0001-01-01T00:00:00Z')

/** `a, b, c` with the separator given. */
export function join(pieces: readonly Statement[], separator: string): Statement {
  return raw(pieces.map(() => '?').join(separator), pieces)
}

/** A condition that every row meets. */
export const TRUE: Statement = raw('true')

/** `a and b`; conditions that are always true are left out, unless there is no other. */
export function allOf(conditions: readonly Statement[]): Statement {
  const asked = conditions.filter((condition) => condition !== TRUE)
  return asked.length === 0 ? TRUE : join(asked, ' and ')
}

/** `(a or b)`; `false` where there is no alternative. */
export function anyOf(conditions: readonly Statement[]): Statement {
  const [only] = conditions
  if (only === undefined) return raw('false')
  return conditions.length === 1 ? only : raw(`(${conditions.map(() => '?').join(' or ')})`, conditions)
}

/** `(a) union all (b)`; a single source has no parentheses. */
export function unionAll(sources: readonly Statement[]): Statement {
  const [only] = sources
  if (sources.length === 1 && only !== undefined) return only
  return raw(`(${sources.map(() => '?').join(')\nunion all\n(')})`, sources)
}

/** A common table: `name as (…)`, or `name as materialized (…)`, which is computed once and not merged into what reads it. */
export function commonTable(name: string, body: Statement, how: 'inlined' | 'materialized' = 'inlined'): Statement {
  return raw(`${name} as ${how === 'materialized' ? 'materialized ' : ''}(\n?\n)`, [body])
}
