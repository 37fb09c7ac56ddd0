import pg from 'pg'
import { NoAnswerError } from './database-error.ts'
import type { StatementWatch } from './watch-statements.ts'
import { sendBatch, type WireStatement } from './wire-batch.ts'

/** A setting that results or answers depend on. */
interface RequiredSetting {
  readonly name: string
  /** What a session gets where it may be set, and what the role has to have behind a pooler. */
  readonly value: string
  readonly accepts: (value: string) => boolean
}

const isValue = (value: string) => (given: string) => given === value

/** Sent with the startup message. Poolers keep these for each of their clients; they refuse others there. */
const STARTUP_SETTINGS: readonly RequiredSetting[] = [
  // times are parsed from the server's text
  { name: 'TimeZone', value: 'UTC', accepts: (zone) => /^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal)$/i.test(zone) },
  { name: 'DateStyle', value: 'ISO, YMD', accepts: (style) => style.startsWith('ISO') },
  { name: 'standard_conforming_strings', value: 'on', accepts: isValue('on') },
]

/** Set after connecting, on direct connections alone: behind a pooler they would reach other clients, and not every statement of ours. */
const SESSION_SETTINGS: readonly RequiredSetting[] = [
  // bytes are parsed from the server's text
  { name: 'bytea_output', value: 'hex', accepts: isValue('hex') },
  // without it a null in an array parameter would become the word NULL
  { name: 'array_nulls', value: 'on', accepts: isValue('on') },
  // conflicts of stricter levels are not tried again
  { name: 'default_transaction_isolation', value: 'read committed', accepts: isValue('read committed') },
]

const REQUIRED = [...STARTUP_SETTINGS, ...SESSION_SETTINGS]

/** The parts of a pg client that its types leave out. */
interface UntypedClient {
  getStartupConf(): Record<string, string>
  query(...asked: unknown[]): unknown
  end(done?: () => void): Promise<void> | undefined
}

const inherited = pg.Client.prototype as unknown as UntypedClient

/** How much later than the server's own limit an answer may come. */
const GRACE_MS = 5_000

/** The limit where the server has none: a statement of a command may read a whole table before it has a row to send. */
const LONGEST_SILENCE_MS = 3_600_000

/** A prepared statement with a generic plan takes some 100 KB of the backend's memory. */
const MAX_PREPARED = 100

/** How long the server may take to close a connection. */
const END_TIMEOUT_MS = 1_000

/** How long the server may owe an answer without sending anything, where its own limit for a statement is `statementTimeoutMs`; 0 for none. */
export function silenceLimitOf(statementTimeoutMs: number): number {
  return statementTimeoutMs > 0 ? statementTimeoutMs + GRACE_MS : LONGEST_SILENCE_MS
}

/**
 * A pg client that sends the settings of the startup message, and that breaks off a connection whose server is silent for too long while it owes an
 * answer. So every statement has a limit on our side: the server's own limit does not hold when the server hangs.
 */
export class SessionClient extends pg.Client {
  /** Whether the server has answered everything that was sent. */
  declare readonly readyForQuery: boolean
  declare readonly processID: number
  declare readonly secretKey: number
  declare readonly sslNegotiation: string
  /** The names of the prepared statements, the least recently used first. With a maximum of 0 each is parsed every time, without a name. */
  readonly prepared = { names: new Set<string>(), maxStatements: MAX_PREPARED }
  /** Set on a connection, it keeps Knex's pool from handing it out again. */
  __knex__disposed?: unknown
  readonly #watch: StatementWatch | undefined
  /** End what has begun, the first one first. */
  readonly #begun: ((error?: string) => void)[] = []
  #silenceLimitMs: number
  #alarm: NodeJS.Timeout | undefined

  constructor(config: pg.ClientConfig & { readonly watch?: StatementWatch | undefined }) {
    super(config)
    this.#watch = config.watch
    if (this.#watch !== undefined) this.#listen(this.#watch)
    // until the pool hands the connection out for the first time
    this.#silenceLimitMs = config.connectionTimeoutMillis ?? 0
    this.once('connect', () => this.connection.stream.on('data', () => this.#alarm?.refresh()))
    this.once('end', () => clearTimeout(this.#alarm))
  }

  #listen(watch: StatementWatch): void {
    let failed: string | undefined
    this.connection.on('errorMessage', ({ code }: { readonly code?: string }) => {
      failed = code
    })
    this.connection.on('readyForQuery', () => {
      this.#begun.shift()?.(failed)
      failed = undefined
    })
    // A connection that could not be opened, or was lost.
    this.connection.on('error', (error: Error) => watch.failed(error))
    this.once('end', () => {
      for (const end of this.#begun.splice(0)) end(failed)
    })
  }

  getStartupConf(): Record<string, string> {
    const settings = STARTUP_SETTINGS.map(({ name, value }) => [name, value])
    return { ...inherited.getStartupConf.call(this), ...Object.fromEntries(settings) }
  }

  /** Sets how long the server may be silent from now on, in milliseconds; undefined for any time. */
  limitSilence(limitMs: number | undefined): void {
    if (limitMs === this.#silenceLimitMs) return
    this.#silenceLimitMs = limitMs ?? 0
    clearTimeout(this.#alarm)
    this.#alarm = undefined
  }

  // @ts-expect-error the types have an overload for each kind of query
  override query(...asked: unknown[]): unknown {
    if (this.#watch !== undefined) {
      const [statement] = asked as [string | { readonly text?: string }]
      const text = typeof statement === 'string' ? statement : statement.text
      // The path of a socket differs from start to start.
      const server = this.host.startsWith('/') ? 'socket' : this.host
      this.#begun.push(this.#watch.begin(server, text ?? ''))
    }
    const result = inherited.query.apply(this, asked)
    if (this.#alarm !== undefined) this.#alarm.refresh()
    else if (this.#silenceLimitMs > 0) {
      this.#alarm = setTimeout(() => this.#breakOffIfSilent(), this.#silenceLimitMs)
      this.#alarm.unref()
    }
    return result
  }

  #breakOffIfSilent(): void {
    if (this.readyForQuery) return
    // what has come while this process did not run is read first
    setImmediate(() => {
      if (!this.readyForQuery) this.breakOff(new NoAnswerError(this.#silenceLimitMs))
    })
  }

  /** Ends the connection without the server's help: what is asked on it rejects with the reason, and the pool replaces it. */
  breakOff(reason: Error): void {
    this.__knex__disposed = reason
    this.connection.stream.destroy(reason)
  }

  override end(): Promise<void>
  override end(done: (error?: Error) => void): void
  override end(done?: () => void): Promise<void> | undefined {
    const forced = setTimeout(() => this.connection.stream.destroy(), END_TIMEOUT_MS).unref()
    this.once('end', () => clearTimeout(forced))
    const ending = inherited.end.call(this, done)
    // pg waits for an answer that was only announced
    if (!this.readyForQuery) this.connection.stream.destroy()
    return ending
  }
}

export interface SessionOptions {
  /** The server cancels a statement after this time; default 0: never. Behind a pooler the role's own limit holds. */
  readonly statementTimeoutMs?: number | undefined
  /** Prepared statements to keep on each connection; default 100, or 0 behind a pooler that does not keep them apart. */
  readonly maxPrepared?: number | undefined
}

/** The name of the first statement of each connection. A pooler that supports prepared statements gives it another one. */
const PROBE = 'waybill_session'

/**
 * A server process tells its own number when a client connects; a pooler tells one that it made up, since it gives each transaction another
 * process.
 */
const OPEN_SQL = `select pg_backend_pid() = $1, exists (select from pg_prepared_statements where name = '${PROBE}'),
  case when pg_backend_pid() = $1 then (select count(set_config(key, value, false)) from json_each_text($2)) end`

const READ_SQL = `select name, current_setting(name), current_user from unnest($1::text[]) with ordinality as s (name, place) order by place`

/**
 * Prepares a new connection in one round trip: sets what results depend on, and finds out whether a pooler is between.
 *
 * @throws Error when a pooler is between and a setting is not as needed
 */
export async function openSession(
  session: SessionClient,
  { statementTimeoutMs = 0, maxPrepared }: SessionOptions,
): Promise<void> {
  const settings = Object.fromEntries(SESSION_SETTINGS.map(({ name, value }) => [name, value]))
  const values = JSON.stringify({ ...settings, statement_timeout: Math.trunc(statementTimeoutMs) })
  const names = `{${REQUIRED.map(({ name }) => name).join(',')}}`
  const batch: WireStatement[] = [
    { name: PROBE, text: OPEN_SQL, parameters: [String(session.processID), values], parse: true },
    { name: '', text: READ_SQL, parameters: [names], parse: true },
  ]
  const [opened, read] = await sendBatch(session, batch, [PROBE])
  const [isDirect, keepsName] = opened?.[0] ?? []
  const isShared = isDirect !== 't' && keepsName === 't'
  session.prepared.maxStatements = maxPrepared ?? (isShared ? 0 : MAX_PREPARED)
  for (const [at, [, value, user]] of (read ?? []).entries()) {
    const required = REQUIRED[at] as RequiredSetting
    if (!required.accepts(value ?? '')) throw settingError(required, value ?? '', user ?? '')
  }
}

function settingError({ name, value }: RequiredSetting, found: string, user: string): Error {
  return new Error(
    `${name} is "${found}" and has to be "${value}". A pooler is between, so Waybill cannot set it for its connections alone. ` +
      `Run: alter role "${user}" set ${name} = '${value}'; then let the pooler open new connections to the server.`,
  )
}
