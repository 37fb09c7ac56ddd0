import { DatabaseError } from 'pg'

/**
 * What a database error means to the caller:
 *
 * - `unavailable`: no server, no connection, no memory or disk space; retry later
 * - `timeout`: ended by the statement timeout, a lock timeout or a cancel
 * - `serialization`: conflict with another transaction; retry at once
 * - `unique`: a row with that key already exists
 * - `other`: anything else, including errors of this program
 */
export type DatabaseErrorKind = 'unavailable' | 'timeout' | 'serialization' | 'unique' | 'other'

/** By SQLSTATE, which unlike the message is the same in every version and language of PostgreSQL. */
const KIND_BY_STATE = new Map<string, DatabaseErrorKind>([
  ['23505', 'unique'],
  ['40001', 'serialization'],
  ['40P01', 'serialization'], // deadlock
  ['57014', 'timeout'], // statement timeout, or a cancel
  ['55P03', 'timeout'], // lock not available
  ['25P03', 'timeout'], // idle in transaction timeout
  ['25P04', 'timeout'], // transaction timeout
  ['57P01', 'unavailable'], // admin shutdown
  ['57P02', 'unavailable'], // crash shutdown
  ['57P03', 'unavailable'], // starting up or shutting down
  ['57P05', 'unavailable'], // idle session timeout
  ['25006', 'unavailable'], // read-only: a failover made this server a replica
  ['58030', 'unavailable'], // I/O error
])

/** Whole classes: 08 connection exceptions, 53 insufficient resources (connections, memory, disk). */
const UNAVAILABLE_CLASSES = new Set(['08', '53'])

const UNAVAILABLE_SYSTEM_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT', // no socket file
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
])

/** Errors of pg and Knex that have no code. */
const UNAVAILABLE_WORDS = [
  'Connection terminated', // "… unexpectedly", "… due to connection timeout"
  'timeout expired', // pg, connecting
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Unable to acquire a connection', // Knex, the pool was closed
  'aborted', // tarn (Knex's pool), for callers that waited when it was closed
]

/** The server has not answered in time, although it still may: it hangs, or the way to it does. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'

  constructor(limitMs: number) {
    super(`the database has not answered within ${limitMs} ms`)
  }
}

/** Classifies the error of a query, by SQLSTATE where there is one. */
export function classifyDatabaseError(error: unknown): DatabaseErrorKind {
  if (!(error instanceof Error)) return 'other'
  if (error instanceof NoAnswerError) return 'unavailable'
  const { code, routine } = error as { code?: unknown; routine?: unknown }
  // Citus reports what a worker refuses of a COPY, which is nearly always a key that exists, as an internal error.
  if (code === 'XX000' && routine === 'ReportCopyError') return 'unique'
  if (typeof code === 'string') {
    if (UNAVAILABLE_SYSTEM_CODES.has(code)) return 'unavailable'
    if (/^[0-9A-Z]{5}$/.test(code)) {
      return KIND_BY_STATE.get(code) ?? (UNAVAILABLE_CLASSES.has(code.slice(0, 2)) ? 'unavailable' : 'other')
    }
  }
  const { message } = error
  if (error.name === 'KnexTimeoutError')
    return message.startsWith('Knex: Timeout acquiring') ? 'unavailable' : 'timeout'
  return UNAVAILABLE_WORDS.some((start) => message.startsWith(start)) ? 'unavailable' : 'other'
}

const WORDS_OF_KIND: Readonly<Record<DatabaseErrorKind, string>> = {
  unavailable: 'the database cannot be reached',
  timeout: 'the database did not answer in time',
  serialization: 'another transaction was in the way; try again',
  unique: 'a row with that key exists already',
  other: 'the database refused a statement',
}

/**
 * What an operator reads of a database's error: what it means, then the server's own words. No statement, whose text says nothing to them.
 *
 * @returns undefined for an error that does not come from the database
 */
export function explainDatabaseError(error: Error): string | undefined {
  const isOurs = error instanceof NoAnswerError || error instanceof DatabaseError || error.name === 'KnexTimeoutError'
  // an error of a connection has a statement where one was running
  if (!isOurs && !('statement' in error)) return undefined
  return `${WORDS_OF_KIND[classifyDatabaseError(error)]}: ${error.message}`
}
