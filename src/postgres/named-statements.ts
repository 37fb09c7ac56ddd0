import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { rememberByKey } from '../domain/collections.ts'
import { withConnection } from './cancellable.ts'
import type { SessionClient } from './session.ts'
import type { Statement } from './statement.ts'
import { sendBatch, type TextRow, toParameter, type WireStatement } from './wire-batch.ts'

/**
 * The fast path of pages of payments. All other SQL goes through Knex.
 *
 * A page of payments takes about a millisecond; by Knex it took twice as long. A connection parses each text once, and PostgreSQL keeps a plan where
 * one plan serves all parameters. Several statements go in one round trip, and columns stay texts, since few of them are looked at. pg's own
 * named queries have neither, nor a limit on how many statements a connection keeps.
 *
 * Cancelling and timeouts work as in cancellable.ts; given a transaction, statements run inside it.
 */

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
  return withConnection(knex, signal, async (connection) => {
    if (connection.prepared.maxStatements === 0) return runUnnamed(connection, asked)
    const inTransaction = connection.getTransactionStatus() !== 'I'
    try {
      return await runPrepared(connection, asked)
    } catch (error) {
      if (!isStale(error)) throw error
      // the statements may be gone from the server, or belong to a table that has changed since
      connection.prepared.names.clear()
      if (inTransaction) throw error
      return runUnnamed(connection, asked)
    }
  })
}

type Asked = Omit<WireStatement, 'parse'>

async function runPrepared(connection: SessionClient, asked: readonly Asked[]) {
  const { names } = connection.prepared
  const seen = new Set<string>()
  const batch = asked.map((each): WireStatement => {
    const isParsed = names.has(each.name) || seen.has(each.name)
    seen.add(each.name)
    return { ...each, parse: !isParsed }
  })
  const closed = [...batch.filter(({ parse }) => parse).map(({ name }) => name), ...makeSpace(connection, seen)]
  const results = await sendBatch(connection, batch, closed)
  for (const name of seen) {
    names.delete(name)
    names.add(name)
  }
  return results
}

/** Evicts the least recently used statements until `coming` fits; the caller closes them on the server. */
function makeSpace({ prepared: { names, maxStatements } }: SessionClient, coming: ReadonlySet<string>): string[] {
  const added = [...coming].filter((name) => !names.has(name)).length
  const surplus = Math.max(0, names.size + added - maxStatements)
  const leaving = [...names].filter((name) => !coming.has(name)).slice(0, surplus)
  for (const name of leaving) names.delete(name)
  return leaving
}

function runUnnamed(connection: SessionClient, asked: readonly Asked[]) {
  const batch = asked.map((each) => ({ ...each, name: '', parse: true }))
  return sendBatch(connection, batch, [])
}

/**
 * Whether the server no longer has the statement as it was prepared: its result columns have changed (0A000), its name is unknown (26000)
 * or taken (42P05). The last two come from poolers that share server connections among clients without tracking prepared statements.
 */
function isStale(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown }
  return code === '26000' || code === '42P05' || (code === '0A000' && routine === 'RevalidateCachedQuery')
}

/** Its text has `$1`, `$2`, … */
type Compiled = Pick<WireStatement, 'name' | 'text'>

/** Texts whose compiled form is remembered. A service has few, apart from combinations of filters. */
const MAX_TEXTS = 5_000
const compiled = rememberByKey(MAX_TEXTS, (sql): Compiled => {
  const text = numberPlaces(sql)
  return { name: `w_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`, text }
})

/** The last step from Knex's notation to PostgreSQL's: `?` becomes `$1`, and `\?` a question mark. */
function numberPlaces(sql: string): string {
  let places = 0
  return sql.replace(/(\\*)\?/g, (_, escapes: string) => (escapes.length % 2 === 1 ? '?' : `$${++places}`))
}
