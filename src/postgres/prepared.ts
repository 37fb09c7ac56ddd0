import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type PooledConnection, withConnection } from './cancellable.ts'
import { type ParameterText, toParameter } from './parameters.ts'
import { describeAndRun, type FieldDescription, type PgConnection, type WireStatement } from './wire-batch.ts'

/**
 * Runs named prepared statements on the connections of a Knex pool. A connection parses each text once, and PostgreSQL keeps a generic plan
 * where one plan serves all parameters. Cancelling and timeouts work as in cancellable.ts; given a transaction, statements run inside it.
 *
 * pg's own named queries would do for one statement at a time. What they do not have: several statements in one round trip, columns as
 * text, and a limit on how many statements a connection keeps.
 */

/** SQL with a `?` for each binding (`\?` is a question mark), as Knex writes it: `toSQL()` of a builder is one. */
export interface PreparedStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/** The columns of a row as the texts that PostgreSQL sends; a bytea is `\x` and hex digits. */
export type TextRow = readonly (string | null)[]

/** Runs a statement; rows are objects, their columns parsed as Knex would parse them. */
export async function runPrepared<Row>(
  knex: Knex,
  statement: PreparedStatement,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  const [result] = await runBatch(knex, [statement], true, signal)
  const { rows, fields } = result as ReadResult
  return rows.map((row) => toObject(row, fields ?? []) as Row)
}

/** Runs a statement; rows are not parsed. */
export async function runPreparedText(
  knex: Knex,
  statement: PreparedStatement,
  signal: AbortSignal | undefined,
): Promise<readonly TextRow[]> {
  const [result] = await runBatch(knex, [statement], false, signal)
  return (result as ReadResult).rows
}

/**
 * Runs several statements in one round trip, one after the other. Outside a transaction each sees what was committed when it began, and
 * either all take effect or none.
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
  /** Undefined where they were not asked for. */
  readonly fields: readonly Field[] | undefined
}

interface Field {
  readonly name: string
  readonly parse: (text: string) => unknown
}

/** The statements that a connection has prepared, the least recently used first. */
interface PreparedCache {
  readonly statements: Map<string, { fields?: readonly Field[] }>
  readonly maxStatements: number
}

/** A prepared statement with a generic plan takes some 100 KB of the backend's memory. */
const MAX_PREPARED = 100

const caches = new WeakMap<object, PreparedCache>()

/** Sets how many statements a connection may keep prepared. With 0 each is parsed every time, without a name. */
export function limitPrepared(connection: object, maxStatements: number): void {
  caches.set(connection, { statements: new Map(), maxStatements })
}

function cacheOf(connection: object): PreparedCache {
  const known = caches.get(connection)
  if (known !== undefined) return known
  limitPrepared(connection, MAX_PREPARED)
  return cacheOf(connection)
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
    const cache = cacheOf(connection)
    if (cache.maxStatements === 0) return runUnnamed(connection, asked, describe)
    const inTransaction = connection.getTransactionStatus() !== 'I'
    try {
      return await runNamed(connection, cache, asked, describe)
    } catch (error) {
      if (!isStale(error)) throw error
      // the statements may be gone from the server, or belong to a table that has changed since
      cache.statements.clear()
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

async function runNamed(connection: PgConnection, cache: PreparedCache, asked: readonly Asked[], describe: boolean) {
  const seen = new Set<string>()
  const batch = asked.map((each): WireStatement => {
    const known = cache.statements.get(each.name)
    const isParsed = known !== undefined || seen.has(each.name)
    seen.add(each.name)
    return { ...each, parse: !isParsed, describe: describe && known?.fields === undefined }
  })
  const closed = [...batch.filter(({ parse }) => parse).map(({ name }) => name), ...makeRoom(cache, seen)]
  const results = await describeAndRun(connection, batch, closed)
  return results.map(({ rows, fields }, at): ReadResult => {
    const name = (batch[at] as WireStatement).name
    const entry = cache.statements.get(name) ?? {}
    if (fields !== undefined) entry.fields = fieldsOf(connection, fields)
    cache.statements.delete(name)
    cache.statements.set(name, entry)
    return { rows, fields: entry.fields }
  })
}

/** Evicts the least recently used statements until `coming` fits; the caller closes them on the server. */
function makeRoom({ statements, maxStatements }: PreparedCache, coming: ReadonlySet<string>): string[] {
  const added = [...coming].filter((name) => !statements.has(name)).length
  const surplus = Math.max(0, statements.size + added - maxStatements)
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
 * Whether the server no longer has the statement as it was prepared: its result columns have changed (0A000), its name is unknown (26000)
 * or taken (42P05). The last two come from poolers that share server connections among clients without tracking prepared statements.
 */
function isStale(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown }
  return code === '26000' || code === '42P05' || (code === '0A000' && routine === 'RevalidateCachedQuery')
}

interface Compiled {
  readonly name: string
  /** With `$1`, `$2`, … */
  readonly text: string
}

/** Texts whose compiled form is remembered. A service has few, apart from combinations of filters. */
const MAX_TEXTS = 5_000
const compiledTexts = new Map<string, Compiled>()

function compiled(sql: string): Compiled {
  const known = compiledTexts.get(sql)
  if (known !== undefined) return known
  const text = numberPlaces(sql)
  const made = { name: `w_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
  if (compiledTexts.size >= MAX_TEXTS) compiledTexts.clear()
  compiledTexts.set(sql, made)
  return made
}

/** The last step from Knex's notation to PostgreSQL's: `?` becomes `$1`, and `\?` a question mark. */
function numberPlaces(sql: string): string {
  let places = 0
  return sql.replace(/(\\*)\?/g, (_, escapes: string) => (escapes.length % 2 === 1 ? '?' : `$${++places}`))
}
