import { callbackify } from 'node:util'
import knexModule, { type Knex } from 'knex'
import { types } from 'pg'
import type { Logger } from '../domain/logger.ts'
import { parseTimestamp } from './parse-timestamp.ts'
import { limitPrepared } from './prepared.ts'

/** Where a PostgreSQL is: the settings of an embedded server, or a `postgres://` URL. */
export type DatabaseConnection =
  | string
  | {
      readonly host: string
      readonly port: number
      readonly user: string
      readonly password: string
      readonly database: string
    }

export interface DatabaseOptions {
  /** connections kept when idle; default 0 */
  readonly poolMin?: number | undefined
  /** most connections at once; default 8 */
  readonly poolMax?: number | undefined
  /** after which the server ends a statement; default 0, without end */
  readonly statementTimeoutMs?: number | undefined
  /** how long to wait for a free connection, and for a new one to be made; default 5,000 */
  readonly acquireTimeoutMs?: number | undefined
  /** statements that a connection keeps prepared by name; default 100, 0 for a pooler that does not know of them */
  readonly mostPrepared?: number | undefined
  /** refuses a connection that was just made, by rejecting; what it asks comes as text */
  readonly checkConnection?: ((ask: AskConnection) => Promise<void>) | undefined
  /** shown in pg_stat_activity; default `waybill` */
  readonly applicationName?: string | undefined
  readonly logger?: Logger | undefined
}

/** Asks a connection for one row. */
type AskConnection = (sql: string) => Promise<readonly (string | null)[]>

const { builtins } = types
/** array types, which pg's list of names lacks */
const TEXT_ARRAY = 1009
const INT8_ARRAY = 1016
const TIMESTAMPTZ_ARRAY = 1185

const asText = (text: string) => text
const parseBigint = (text: string) => BigInt(text)

const parseTextArray = types.getTypeParser(TEXT_ARRAY as number) as (text: string) => NestedTexts

type NestedTexts = (string | null | NestedTexts)[]

function arrayOf(parse: (text: string) => unknown) {
  const each = (entries: NestedTexts): unknown[] =>
    entries.map((entry) => (Array.isArray(entry) ? each(entry) : entry === null ? null : parse(entry)))
  return (text: string) => each(parseTextArray(text))
}

const PARSERS = new Map<number, (text: string) => unknown>([
  [builtins.INT8, parseBigint],
  [INT8_ARRAY, arrayOf(parseBigint)],
  [builtins.TIMESTAMPTZ, parseTimestamp],
  [TIMESTAMPTZ_ARRAY, arrayOf(parseTimestamp)],
  [builtins.NUMERIC, asText],
  [builtins.DATE, asText],
  [builtins.TIMESTAMP, asText],
])

/**
 * How columns become values, beside pg's own ways (int4 and float8 are numbers, bytea a Buffer, json parsed):
 *
 * - int8, and so `count(*)`, is a bigint: counts of base units and block numbers lose nothing
 * - numeric is a string, with the zeros of its scale
 * - timestamptz is a Date, in milliseconds: finer digits are cut, so a column that is compared with what was read is timestamptz(3)
 * - date and timestamp without zone stay text, since a Date would put them in this machine's zone
 */
const TYPE_PARSERS = {
  getTypeParser(oid: number, format?: string): (text: string) => unknown {
    const parser = format === 'binary' ? undefined : PARSERS.get(oid)
    return parser ?? (types.getTypeParser(oid, format as 'text') as (text: string) => unknown)
  },
}

/**
 * Opens a pool on a database; connects at the first query. The pool outlives restarts of the server: connections that broke
 * are replaced when next asked for. Close it with `destroy()`.
 */
export function createDatabase(connection: DatabaseConnection, options: DatabaseOptions = {}): Knex {
  const acquireTimeoutMs = options.acquireTimeoutMs ?? 5_000
  const where = typeof connection === 'string' ? { connectionString: connection } : connection
  return knexModule({
    client: 'pg',
    connection: {
      ...where,
      application_name: options.applicationName ?? 'waybill',
      connectionTimeoutMillis: acquireTimeoutMs,
      keepAlive: true,
      types: TYPE_PARSERS,
    },
    pool: {
      min: options.poolMin ?? 0,
      max: options.poolMax ?? 8,
      acquireTimeoutMillis: acquireTimeoutMs,
      afterCreate: sessionSetup(options),
    },
    log: knexLog(options.logger),
  })
}

/** What this file uses of a connection of pg. */
interface RawConnection {
  query(query: string | object): Promise<{ readonly rows: readonly (readonly (string | null)[])[] }>
  end(done: () => void): void
  readonly connection: { on(event: 'errorMessage', listener: (message: ServerMessage) => void): void }
  /** Knex's mark of a connection that the pool is not to hand out again */
  __knex__disposed?: unknown
}

interface ServerMessage {
  readonly severity?: string
  readonly code?: string
}

/** How many connections a pool has at most. */
export function connectionsOf(knex: Knex): number {
  return (knex.client as { pool: { max: number } }).pool.max
}

/** Settings go by SET and not with the start of the connection, where poolers such as PgBouncer refuse them. */
function sessionSetup({ statementTimeoutMs = 0, mostPrepared, checkConnection }: DatabaseOptions) {
  // whatever reads texts relies on the forms of times and bytes
  const statement = `set timezone = 'UTC'; set bytea_output = hex; set statement_timeout = ${Math.trunc(statementTimeoutMs)}`
  return callbackify(async (connection: RawConnection) => {
    if (mostPrepared !== undefined) limitPrepared(connection, mostPrepared)
    // the end of the connection follows the server's last message, but the pool may hand it out in between
    connection.connection.on('errorMessage', (message) => {
      if (isLastMessage(message)) connection.__knex__disposed = message
    })
    try {
      await connection.query(statement)
      await checkConnection?.((sql) => askRow(connection, sql))
    } catch (error) {
      connection.end(() => {})
      throw error
    }
    return connection
  })
}

async function askRow(connection: RawConnection, sql: string): Promise<readonly (string | null)[]> {
  const { rows } = await connection.query({ text: sql, rowMode: 'array', types: { getTypeParser: () => asText } })
  return rows[0] ?? []
}

/** Severities are in the server's language, so the states of a server that goes are looked at as well. */
function isLastMessage({ severity, code }: ServerMessage): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || (code?.startsWith('57P') ?? false)
}

function knexLog(logger: Logger | undefined): Knex.Logger {
  // a connection that broke is reported by whoever meets the error; Knex warns of it once more
  const debug = (message: unknown) => logger?.debug({ knex: message }, 'database pool')
  return { debug, warn: debug, deprecate: debug, error: (message) => logger?.error({ knex: message }, 'database pool') }
}
