/**
 * What a failure of the database means to the caller:
 *
 * - `unavailable`: no server, no connection, no room; worth another try later
 * - `timeout`: the statement was ended by its time limit, a lock's, or a cancel
 * - `serialization`: the transaction met another; worth another try at once
 * - `unique`: a row with that key is there already
 * - `other`: anything else, a mistake of this program included
 */
export type DatabaseErrorKind = 'unavailable' | 'timeout' | 'serialization' | 'unique' | 'other'

/** By SQLSTATE, the five characters that stay the same across versions and languages. */
const KIND_BY_STATE = new Map<string, DatabaseErrorKind>([
  ['23505', 'unique'],
  ['40001', 'serialization'],
  ['40P01', 'serialization'], // deadlock
  ['57014', 'timeout'], // statement timeout, or a cancel
  ['55P03', 'timeout'], // lock not available
  ['25P03', 'timeout'], // idle in transaction for too long
  ['25P04', 'timeout'], // transaction timeout
  ['57P01', 'unavailable'], // admin shutdown
  ['57P02', 'unavailable'], // crash shutdown
  ['57P03', 'unavailable'], // starting up, or shutting down
  ['57P05', 'unavailable'], // idle session timeout
  ['25006', 'unavailable'], // read-only: the primary has moved
  ['58030', 'unavailable'], // I/O error
])

/** Whole classes: connection exceptions, and insufficient resources (connections, memory, disk). */
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

/** pg and Knex say these in words alone; Knex puts the statement before them. */
const UNAVAILABLE_WORDS = [
  'Connection terminated', // "… unexpectedly", "… due to connection timeout"
  'timeout expired', // pg, connecting
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Unable to acquire a connection', // the pool was closed
  'aborted', // tarn, of those who waited when the pool was closed
]

/** Classifies whatever a query was rejected with, by SQLSTATE where the server sent one. */
export function classifyDatabaseError(error: unknown): DatabaseErrorKind {
  if (!(error instanceof Error)) return 'other'
  const { code } = error as { code?: unknown }
  if (typeof code === 'string') {
    if (UNAVAILABLE_SYSTEM_CODES.has(code)) return 'unavailable'
    if (/^[0-9A-Z]{5}$/.test(code)) {
      return KIND_BY_STATE.get(code) ?? (UNAVAILABLE_CLASSES.has(code.slice(0, 2)) ? 'unavailable' : 'other')
    }
  }
  const words = lastWords(error.message)
  if (error.name === 'KnexTimeoutError') return words.startsWith('Knex: Timeout acquiring') ? 'unavailable' : 'timeout'
  return UNAVAILABLE_WORDS.some((start) => words.startsWith(start)) ? 'unavailable' : 'other'
}

/** What follows the statement and its " - ". */
function lastWords(message: string): string {
  const at = message.lastIndexOf(' - ')
  return at < 0 ? message : message.slice(at + 3)
}
