import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type PooledConnection, withConnection } from './cancellable.ts'
import { type ParameterText, toParameter } from './parameters.ts'
import { describeAndRun, type FieldDescription, type PgConnection, type WireStatement } from './wire-batch.ts'

/**
 * Statements prepared by name on the connections of a pool: parsed once a connection, planned once where one plan serves all
 * parameters. They are cancelled and time out as everything else does (cancellable.ts), and run inside a transaction of Knex when
 * given one.
 */

/** SQL with a `?` for each binding (`\?` is a question mark), as Knex builds it: `toSQL()` of a builder is one. */
export interface PreparedStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/** The columns of a row in the order of the select, as PostgreSQL writes them; a bytea is `\x` and digits. */
export type TextRow = readonly (string | null)[]

/** Runs a statement; its rows are as Knex gives them. */
export async function runPrepared<Row>(
  knex: Knex,
  statement: PreparedStatement,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  const [result] = await runBatch(knex, [statement], true, signal)
  const { rows, fields } = result as ReadResult
  return rows.map((row) => toObject(row, fields ?? []) as Row)
}

/** Runs a statement; nothing of its rows is parsed. */
export async function runPreparedText(
  knex: Knex,
  statement: PreparedStatement,
  signal: AbortSignal | undefined,
): Promise<readonly TextRow[]> {
  const [result] = await runBatch(knex, [statement], false, signal)
  return (result as ReadResult).rows
}

/**
 * Runs several statements in one round trip, one after the other. Outside a transaction each sees what was committed when it
 * began, and all are done or none.
 */
export async function runPreparedTexts(
  knex: Knex,
  statements: readonly PreparedStatement[],
  signal: AbortSignal | undefined,
): Promise<readonly (readonly TextRow[])[]> {
  return (await runBatch(knex, statements, false, signal)).map(({ rows }) => rows)
}

interface ReadResult {
  readonly rows: readonly TextRow[]
  /** Where they were asked for. */
  readonly fields: readonly Field[] | undefined
}

interface Field {
  readonly name: string
  readonly parse: (text: string) => unknown
}

/** What a connection holds prepared, the least recently used first. */
interface Held {
  readonly statements: Map<string, { fields?: readonly Field[] }>
  readonly most: number
}

/** A prepared statement with a cached plan takes some 100 KB of the server. */
const MOST_HELD = 100

const heldBy = new WeakMap<object, Held>()

/** Sets how many statements a connection may hold prepared. With 0 all are parsed anew each time, without a name. */
export function limitPrepared(connection: object, most: number): void {
  heldBy.set(connection, { statements: new Map(), most })
}

function heldOf(connection: object): Held {
  const known = heldBy.get(connection)
  if (known !== undefined) return known
  limitPrepared(connection, MOST_HELD)
  return heldOf(connection)
}

function runBatch(
  knex: Knex,
  statements: readonly PreparedStatement[],
  describe: boolean,
  signal: AbortSignal | undefined,
): Promise<ReadResult[]> {
  const asked = statements.map(({ sql, bindings }) => ({ ...compiled(sql), parameters: bindings.map(toParameter) }))
  return withConnection(knex, signal, async (pooled) => {
    const connection = pooled as PooledConnection & PgConnection
    const held = heldOf(connection)
    if (held.most === 0) return runUnnamed(connection, asked, describe)
    const inTransaction = connection.getTransactionStatus() !== 'I'
    try {
      return await runNamed(connection, held, asked, describe)
    } catch (error) {
      if (!isStale(error)) throw error
      // whatever was prepared may be gone, or be of a table that has changed since
      held.statements.clear()
      if (inTransaction) throw error
      return runUnnamed(connection, asked, describe)
    }
  })
}

interface Asked {
  readonly name: string
  readonly text: string
  readonly parameters: readonly ParameterText[]
}

async function runNamed(connection: PgConnection, held: Held, asked: readonly Asked[], describe: boolean) {
  const seen = new Set<string>()
  const batch = asked.map((each): WireStatement => {
    const known = held.statements.get(each.name)
    const isParsed = known !== undefined || seen.has(each.name)
    seen.add(each.name)
    return { ...each, parse: !isParsed, describe: describe && known?.fields === undefined }
  })
  const closing = [...batch.filter(({ parse }) => parse).map(({ name }) => name), ...makeRoom(held, seen)]
  const results = await describeAndRun(connection, batch, closing)
  return results.map(({ rows, fields }, at): ReadResult => {
    const name = (batch[at] as WireStatement).name
    const entry = held.statements.get(name) ?? {}
    if (fields !== undefined) entry.fields = fieldsOf(connection, fields)
    held.statements.delete(name)
    held.statements.set(name, entry)
    return { rows, fields: entry.fields }
  })
}

/** Forgets what was not used for longest, until `coming` fits. */
function makeRoom({ statements, most }: Held, coming: ReadonlySet<string>): string[] {
  const added = [...coming].filter((name) => !statements.has(name)).length
  const surplus = Math.max(0, statements.size + added - most)
  const leaving = [...statements.keys()].filter((name) => !coming.has(name)).slice(0, surplus)
  for (const name of leaving) statements.delete(name)
  return leaving
}

async function runUnnamed(connection: PgConnection, asked: readonly Asked[], describe: boolean): Promise<ReadResult[]> {
  const batch = asked.map((each): WireStatement => ({ ...each, name: '', parse: true, describe }))
  const results = await describeAndRun(connection, batch, [])
  return results.map(({ rows, fields }) => ({ rows, fields: fields && fieldsOf(connection, fields) }))
}

function fieldsOf(connection: PgConnection, fields: readonly FieldDescription[]): Field[] {
  return fields.map(({ name, dataTypeID }) => ({ name, parse: connection.getTypeParser(dataTypeID, 'text') }))
}

function toObject(row: TextRow, fields: readonly Field[]): object {
  const object: Record<string, unknown> = {}
  for (const [at, { name, parse }] of fields.entries()) {
    const text = row[at] ?? null
    object[name] = text === null ? null : parse(text)
  }
  return object
}

/**
 * The plan's columns have changed; the statement is not there; the name is taken. The last two are poolers that give the
 * connection of the server to others in between without knowing of prepared statements.
 */
function isStale(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown }
  return code === '26000' || code === '42P05' || (code === '0A000' && routine === 'RevalidateCachedQuery')
}

interface Compiled {
  readonly name: string
  /** With `$1` and so on. */
  readonly text: string
}

/** The texts of a service are few, but for filters in every combination. */
const MOST_TEXTS = 5_000
const compiledTexts = new Map<string, Compiled>()

function compiled(sql: string): Compiled {
  const known = compiledTexts.get(sql)
  if (known !== undefined) return known
  const text = numberPlaces(sql)
  const made = { name: `w_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
  if (compiledTexts.size >= MOST_TEXTS) compiledTexts.clear()
  compiledTexts.set(sql, made)
  return made
}

function numberPlaces(sql: string): string {
  let places = 0
  return sql.replace(/(\\*)\?/g, (_, escapes: string) => (escapes.length % 2 === 1 ? '?' : `$${++places}`))
}
