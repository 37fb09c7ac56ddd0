import { callbackify } from 'node:util'
import knexModule, { type Knex } from 'knex'
import { types } from 'pg'
import type { Logger } from '../domain/logger.ts'
import { untilReady } from './cancellable.ts'
import { readConnectionUrl } from './check-database.ts'
import { parseTimestamp } from './parse-timestamp.ts'
import { openSession, SessionClient, type SessionOptions, silenceLimitOf } from './session.ts'
import type { StatementWatch } from './watch-statements.ts'
import { sendBatch } from './wire-batch.ts'

/** How to reach a PostgreSQL: a `postgres://` URL, or the settings of an embedded server. */
export type DatabaseConnection =
  | string
  | {
      readonly host: string
      readonly port: number
      readonly user: string
      readonly password: string
      readonly database: string
    }

export interface DatabaseOptions extends SessionOptions {
  /** Idle connections to keep; default 0. */
  readonly poolMin?: number | undefined
  /** Connections at most; default 8. */
  readonly poolMax?: number | undefined
  /** How long to wait for a free connection, and for a new one to connect; default 5,000. */
  readonly acquireTimeoutMs?: number | undefined
  /** Runs on each new connection, which is refused when it rejects. `ask` returns one row, its columns as text. */
  readonly checkConnection?: ((ask: AskConnection) => Promise<void>) | undefined
  /** Shown in pg_stat_activity; default `waybill`. */
  readonly applicationName?: string | undefined
  readonly logger?: Logger | undefined
  readonly watch?: StatementWatch | undefined
}

type AskConnection = (sql: string) => Promise<readonly (string | null)[]>

const { builtins } = types
/** OIDs of array types, which pg's list of names lacks. */
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
 * How columns become values, beside pg's defaults (int4 and float8: number, bytea: Buffer, json: parsed):
 *
 * - int8, and so `count(*)`: bigint, so that block numbers and base units stay exact
 * - numeric: string, with the zeros of its scale
 * - timestamptz: Date, cut to milliseconds. A column that is compared with a value read earlier therefore has to be timestamptz(3)
 * - date, and timestamp without time zone: text, because a Date would put them in the time zone of this machine
 */
const TYPE_PARSERS = {
  getTypeParser(oid: number, format?: string): (text: string) => unknown {
    const parser = format === 'binary' ? undefined : PARSERS.get(oid)
    return parser ?? (types.getTypeParser(oid, format as 'text') as (text: string) => unknown)
  },
}

/**
 * Opens a pool on a database; it connects at the first query. It survives restarts of the server: broken connections are replaced when they
 * are needed. Close it with `destroy()`.
 */
export function createDatabase(connection: DatabaseConnection, options: DatabaseOptions = {}): Knex {
  const acquireTimeoutMs = options.acquireTimeoutMs ?? 5_000
  const where = typeof connection === 'string' ? { connectionString: readConnectionUrl(connection).url } : connection
  const { watch } = options
  const settings = {
    ...where,
    application_name: options.applicationName ?? 'waybill',
    connectionTimeoutMillis: acquireTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: TYPE_PARSERS,
    watch,
  }
  const knex = knexModule({
    client: 'pg',
    connection: settings,
    pool: {
      min: options.poolMin ?? 0,
      max: options.poolMax ?? 8,
      acquireTimeoutMillis: acquireTimeoutMs,
      afterCreate: sessionSetup(options),
    },
    log: knexLog(options.logger),
    compileSqlOnError: false,
  })
  knex.client.on('query-error', namePlainly)
  // Knex makes its connections by this class, and asks this before it hands one out
  Object.assign(knex.client, {
    driver: { Client: SessionClient },
    async validateConnection(session: SessionClient) {
      session.limitSilence(silenceLimitOf(options.statementTimeoutMs ?? 0))
      // a statement that failed is over for its caller a moment before the server is ready
      await untilReady(session)
      return session.readyForQuery
    },
  })
  return knex
}

/** Knex puts the statement before the message of an error. Whoever reads it wants to know first what was wrong. */
function namePlainly(error: Error & { statement?: string }, { sql }: { readonly sql: string }): void {
  const start = `${sql} - `
  if (error.message.startsWith(start)) error.message = error.message.slice(start.length)
  error.statement = sql
}

/** A connection that is idle for so long is asked whether it still stands, in milliseconds: a host that is gone sends no word. */
const KEEP_ALIVE_MS = 10_000

interface ServerMessage {
  readonly severity?: string
  readonly code?: string
}

/** The most connections that a pool opens. */
export function connectionsOf(knex: Knex): number {
  return (knex.client as { pool: { max: number } }).pool.max
}

function sessionSetup({ checkConnection, ...options }: DatabaseOptions) {
  return callbackify(async (connection: SessionClient) => {
    // between the server's last message and the end of the connection the pool might still hand it out
    connection.connection.on('errorMessage', (message: ServerMessage) => {
      if (isLastMessage(message)) connection.__knex__disposed = message
    })
    try {
      await openSession(connection, options)
      await checkConnection?.((sql) => askRow(connection, sql))
    } catch (error) {
      connection.end(() => {})
      throw error
    }
    return connection
  })
}

async function askRow(connection: SessionClient, sql: string): Promise<readonly (string | null)[]> {
  const statement = { name: '', text: sql, parameters: [], parse: true }
  const [rows] = await sendBatch(connection, [statement], [])
  return rows?.[0] ?? []
}

/** Whether the server ends the connection. Severities are translated, so the SQLSTATEs of a shutdown are checked as well. */
function isLastMessage({ severity, code }: ServerMessage): boolean {
  return severity === 'FATAL' || severity === 'PANIC' || (code?.startsWith('57P') ?? false)
}

function knexLog(logger: Logger | undefined): Knex.Logger {
  // the caller of a query reports a broken connection; Knex would warn about it once more
  const debug = (message: unknown) => logger?.debug({ knex: message }, 'database pool')
  return { debug, warn: debug, deprecate: debug, error: (message) => logger?.error({ knex: message }, 'database pool') }
}
