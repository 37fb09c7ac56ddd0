import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type PooledConnection, withConnection } from './cancellable.ts'
import type { Statement } from './statement.ts'
import {
  type ParameterText,
  type PgConnection,
  sendBatch,
  type TextRow,
  toParameter,
  type WireStatement,
} from './wire-batch.ts'

/**
 * The fast path of pages of payments. All other SQL goes through Knex.
 *
 * A page of payments takes about a millisecond; by Knex it took twice as long. A connection parses each text once, and PostgreSQL keeps a plan where
 * one plan serves all parameters. Several statements go in one round trip, and columns stay texts, since few of them are looked at. pg's own
 * named queries have neither, nor a limit on how many statements a connection keeps.
 *
 * Cancelling and timeouts work as in cancellable.ts; given a transaction, statements run inside it.
 */

/** The statements that a connection has prepared, by name, the least recently used first. */
interface PreparedNames {
  readonly names: Set<string>
  readonly maxStatements: number
}

/** A prepared statement with a generic plan takes some 100 KB of the backend's memory. */
const MAX_PREPARED = 100

const prepared = new WeakMap<object, PreparedNames>()

/** Sets how many statements a connection may keep prepared. With 0 each is parsed every time, without a name. */
export function limitPrepared(connection: object, maxStatements: number): void {
  prepared.set(connection, { names: new Set(), maxStatements })
}

function preparedOn(connection: object): PreparedNames {
  const known = prepared.get(connection)
  if (known !== undefined) return known
  limitPrepared(connection, MAX_PREPARED)
  return preparedOn(connection)
}

/**
 * Runs statements in one round trip, one after the other. Outside a transaction each sees what was committed when it began, and either all
 * take effect or none.
 *
 * @returns the rows of each statement
 */
export async function runNamed(
  knex: Knex,
  statements: readonly Statement[],
  signal: AbortSignal | undefined,
): Promise<readonly (readonly TextRow[])[]> {
  const asked = statements.map((statement) => {
    const { sql, bindings } = statement.toSQL()
    return { ...compiled(sql), parameters: bindings.map(toParameter) }
  })
  return withConnection(knex, signal, async (pooled) => {
    const connection = pooled as PooledConnection & PgConnection
    const known = preparedOn(connection)
    if (known.maxStatements === 0) return runUnnamed(connection, asked)
    const inTransaction = connection.getTransactionStatus() !== 'I'
    try {
      return await runPrepared(connection, known, asked)
    } catch (error) {
      if (!isStale(error)) throw error
      // the statements may be gone from the server, or belong to a table that has changed since
      known.names.clear()
      if (inTransaction) throw error
      return runUnnamed(connection, asked)
    }
  })
}

interface Asked {
  readonly name: string
  readonly text: string
  readonly parameters: readonly ParameterText[]
}

async function runPrepared(connection: PgConnection, known: PreparedNames, asked: readonly Asked[]) {
  const seen = new Set<string>()
  const batch = asked.map((each): WireStatement => {
    const isParsed = known.names.has(each.name) || seen.has(each.name)
    seen.add(each.name)
    return { ...each, parse: !isParsed }
  })
  const closed = [...batch.filter(({ parse }) => parse).map(({ name }) => name), ...makeSpace(known, seen)]
  const results = await sendBatch(connection, batch, closed)
  for (const name of seen) {
    known.names.delete(name)
    known.names.add(name)
  }
  return results
}

/** Evicts the least recently used statements until `coming` fits; the caller closes them on the server. */
function makeSpace({ names, maxStatements }: PreparedNames, coming: ReadonlySet<string>): string[] {
  const added = [...coming].filter((name) => !names.has(name)).length
  const surplus = Math.max(0, names.size + added - maxStatements)
  const leaving = [...names].filter((name) => !coming.has(name)).slice(0, surplus)
  for (const name of leaving) names.delete(name)
  return leaving
}

function runUnnamed(connection: PgConnection, asked: readonly Asked[]) {
  return sendBatch(
    connection,
    asked.map((each) => ({ ...each, name: '', parse: true })),
    [],
  )
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
