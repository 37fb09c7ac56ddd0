import type { Knex } from 'knex'
import pg from 'pg'
import type { SessionClient } from './session.ts'

/** A value of a column for COPY; of a JSON column an object or a list. */
export type CopyValue = string | number | bigint | boolean | Date | Buffer | object | null

/** The table that rows are copied into. Names come from the program, never from a request. */
export interface CopyTarget {
  readonly table: string
  readonly columns: readonly string[]
}

/** Bytes of one CopyData message. */
const CHUNK_BYTES = 256 * 1024

/**
 * Copies rows into a table by COPY, several times as fast as INSERT.
 *
 * @param trx - the rows become visible when it commits
 */
export async function copyRows(
  trx: Knex.Transaction,
  { table, columns }: CopyTarget,
  rows: Iterable<readonly CopyValue[]>,
): Promise<void> {
  await copyText(trx, { table, columns }, encodeRows(rows))
}

function* encodeRows(rows: Iterable<readonly CopyValue[]>): Generator<Buffer> {
  let text = ''
  for (const row of rows) {
    text += encodeCopyRow(row)
    if (text.length < CHUNK_BYTES) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

/** The same as {@link copyRows} for rows that are already in COPY's text format. */
export async function copyText(
  trx: Knex.Transaction,
  { table, columns }: CopyTarget,
  chunks: Iterable<Buffer>,
): Promise<void> {
  // the client of a transaction gives its own connection, which must not be released
  const connection: SessionClient = await trx.client.acquireConnection()
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const statement = `copy ${table} (${columns.join(', ')}) from stdin`
  connection.query(new CopyQuery(statement, chunks, (error) => (error ? reject(error) : resolve())))
  return done
}

class CopyQuery extends pg.Query {
  readonly #chunks: Iterable<Buffer>

  constructor(statement: string, chunks: Iterable<Buffer>, done: (error: Error | null) => void) {
    super(statement)
    this.#chunks = chunks
    // pg calls it when the query ends; its types leave it out
    Object.assign(this, { callback: done })
  }

  /** pg calls this when the server is ready for rows. */
  handleCopyInResponse(connection: { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void }): void {
    for (const chunk of this.#chunks) connection.sendCopyFromChunk(chunk)
    connection.endCopyFrom()
  }
}

/**
 * One row in the text format of COPY.
 *
 * @see https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-FILE-FORMATS
 */
export function encodeCopyRow(row: readonly CopyValue[]): string {
  let text = ''
  for (const [at, value] of row.entries()) text += (at === 0 ? '' : '\t') + encodeValue(value)
  return `${text}\n`
}

function encodeValue(value: CopyValue): string {
  if (value === null) return '\\N'
  if (typeof value === 'string') return escapeCopyText(value)
  if (typeof value !== 'object') return String(value)
  if (Buffer.isBuffer(value)) return `\\\\x${value.toString('hex')}`
  if (value instanceof Date) return value.toISOString()
  return escapeCopyText(JSON.stringify(value))
}

const SPECIAL = /[\\\n\r\t]/
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Escapes a text for a column in COPY's text format. */
function escapeCopyText(text: string): string {
  return SPECIAL.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character] ?? character) : text
}
