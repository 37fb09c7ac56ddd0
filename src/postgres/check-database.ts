import type { Knex } from 'knex'
import type { Logger } from '../domain/logger.ts'
import { withConnection } from './cancellable.ts'

const MS_OF = (name: string) => `(select setting::float8 from pg_settings where name = '${name}')`

const FACTS_SQL = `select current_setting('server_version_num')::int as version, current_setting('server_version') as "versionName",
  (select pg_encoding_to_char(encoding) from pg_database where datname = current_database()) as encoding,
  current_database() as database, current_user as role, pg_backend_pid() as pid,
  pg_is_in_recovery() as "isReplica", current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
  current_schema() as schema, current_setting('search_path') as "searchPath",
  (select string_agg(n.nspname, ', ') from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.relname = 'payment_statistics' and c.relkind in ('r', 'p')) as "schemasWithTables",
  to_regclass('payment_statistics') is not null as "findsTables",
  ${MS_OF('statement_timeout')} as "statementMs", ${MS_OF('lock_timeout')} as "lockMs",
  ${MS_OF('idle_in_transaction_session_timeout')} as "idleMs", ${MS_OF('transaction_timeout')} as "transactionMs"`

/**
 * Checks that the database answers and that Waybill can work on it, so that a start fails with a clear message.
 *
 * @param url - its password does not appear in the message
 * @param logger - gets what the operator should know beside
 * @throws Error with the database's host and name; its cause is what is wrong
 */
export async function checkDatabase(knex: Knex, url: string, logger?: Logger): Promise<void> {
  const place = placeOf(url)
  const { faults, warnings } = readConnectionUrl(url)
  const found = faults.length > 0 ? { faults, warnings } : await inspect(knex, place)
  for (const warning of [...warnings, ...found.warnings]) logger?.warn({ database: place }, warning)
  if (found.faults.length > 0) {
    throw new Error(`the database at ${place} cannot be used; see DATABASE_URL: ${found.faults.join('; ')}`)
  }
}

async function inspect(knex: Knex, place: string): ReturnType<typeof judge> {
  try {
    return await judge(knex)
  } catch (cause) {
    const remedy = REMEDIES.get(String((cause as { code?: unknown }).code))
    const advice = remedy === undefined ? '' : ` (${remedy})`
    throw new Error(`the database at ${place} cannot be used; see DATABASE_URL${advice}`, { cause })
  }
}

function judge(knex: Knex) {
  return withConnection(knex, undefined, async (connection) => {
    const { rows } = await knex.raw<{ rows: DatabaseFacts[] }>(FACTS_SQL).connection(connection)
    const facts = rows[0] as DatabaseFacts & { readonly pid: number }
    return judgeDatabase({ ...facts, isPooled: facts.pid !== connection.processID })
  })
}

const PRIVATE_AUTHORITY = 'name the authority that signed its certificate: sslrootcert=FILE'

/** What to do, by the code of the error. */
const REMEDIES = new Map([
  ['SELF_SIGNED_CERT_IN_CHAIN', PRIVATE_AUTHORITY],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', PRIVATE_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', PRIVATE_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', PRIVATE_AUTHORITY],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'connect by a name that its certificate has'],
  ['28000', 'where the server demands TLS, add sslmode=verify-full'],
])

/** Host and name of a database, without user and password. */
export function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  return `${searchParams.get('host') ?? host}${pathname}`
}

/** What a server, a database and a role say about themselves; times in milliseconds, 0 for no limit. */
export interface DatabaseFacts {
  /** 180004 for 18.4 */
  readonly version: number
  readonly versionName: string
  readonly encoding: string
  readonly database: string
  readonly role: string
  /** Whether a pooler is between, so that Waybill sets nothing. */
  readonly isPooled: boolean
  readonly isReplica: boolean
  readonly isReadOnly: boolean
  /** The schema that new tables get; null where the search path has none. */
  readonly schema: string | null
  readonly searchPath: string
  /** Schemas that have Waybill's tables; null for none. */
  readonly schemasWithTables: string | null
  /** Whether the search path leads to them. */
  readonly findsTables: boolean
  readonly statementMs: number
  readonly lockMs: number
  readonly idleMs: number
  /** null before PostgreSQL 17 */
  readonly transactionMs: number | null
}

const OLDEST = 15
const NEWEST = 18

/** Searches, imports and detection take less; a reader of an export may pause for 30 seconds. */
const STATEMENT_MS = 60_000
const LOCK_MS = 5_000
const IDLE_MS = 60_000

/** Says why Waybill cannot work on a database, and what the operator should change. */
export function judgeDatabase(facts: DatabaseFacts): { readonly faults: string[]; readonly warnings: string[] } {
  const major = Math.trunc(facts.version / 10_000)
  const newer = `the server is PostgreSQL ${facts.versionName}; Waybill was tried on ${OLDEST} to ${NEWEST}`
  return { faults: faultsOf(facts, major), warnings: [...(major > NEWEST ? [newer] : []), ...warningsOf(facts)] }
}

function faultsOf(facts: DatabaseFacts, major: number): string[] {
  const { versionName, encoding, database, role, schema, searchPath, schemasWithTables } = facts
  const faults: string[] = []
  if (major < OLDEST) faults.push(`the server is PostgreSQL ${versionName}; use ${OLDEST} to ${NEWEST}`)
  if (encoding !== 'UTF8') {
    faults.push(
      `the encoding of the database "${database}" is ${encoding}, which cannot hold every letter. ` +
        `Use another one: create database NAME encoding 'UTF8' template template0`,
    )
  }
  if (facts.isReplica) faults.push('the server is a replica, which cannot be written: name the primary')
  else if (facts.isReadOnly) {
    faults.push(
      `default_transaction_read_only is on for the role "${role}". Run: alter role "${role}" set default_transaction_read_only = off`,
    )
  }
  if (schemasWithTables !== null && !facts.findsTables) {
    faults.push(
      `its tables are in the schema ${schemasWithTables}, and the search_path of the role "${role}" is ${searchPath}. ` +
        `Run: alter role "${role}" set search_path = ${schemasWithTables}`,
    )
  } else if (schema === null) {
    faults.push(`the search_path of the role "${role}" is ${searchPath}, which names no schema that the role may use`)
  }
  return faults
}

function warningsOf({ role, isPooled, statementMs, lockMs, idleMs, transactionMs }: DatabaseFacts): string[] {
  const warnings: string[] = []
  const isShort = (ms: number | null, enough: number) => ms !== null && ms > 0 && ms < enough
  const advise = (name: string, ms: number | null, why: string, value: string) =>
    warnings.push(
      `${name} is ${ms} ms for the role "${role}": ${why}. Run: alter role "${role}" set ${name} = '${value}'`,
    )
  if (isPooled && statementMs === 0) {
    advise('statement_timeout', 0, 'a statement whose caller is gone may run without end', '60s')
  }
  if (isPooled && isShort(statementMs, STATEMENT_MS)) {
    advise('statement_timeout', statementMs, 'statements that take longer end with DATABASE_TIMEOUT', '60s')
  }
  if (isShort(lockMs, LOCK_MS)) {
    advise('lock_timeout', lockMs, 'writers of one account wait for each other, and fail after that', '0')
  }
  if (isShort(idleMs, IDLE_MS)) {
    advise('idle_in_transaction_session_timeout', idleMs, 'exports whose readers are slow break off', '60s')
  }
  if (isShort(transactionMs, Number.POSITIVE_INFINITY)) {
    advise('transaction_timeout', transactionMs, 'an export is one transaction and breaks off after that', '0')
  }
  return warnings
}

/** How a connection to a database is protected, read from its URL. */
interface ConnectionUrl {
  /** For the driver: a mode that checks more than its name says is written as that. */
  readonly url: string
  /** What the operator should know; without user and password. */
  readonly warnings: readonly string[]
  /** Why it cannot be used. */
  readonly faults: readonly string[]
}

/** The driver's version 8 checks certificate and host name for all of these; its next one checks less. */
const TAKEN_AS_FULL = ['allow', 'prefer', 'require', 'verify-ca']
const MODES = ['disable', 'no-verify', ...TAKEN_AS_FULL, 'verify-full']

const LOCAL = /^(?:|localhost|127(?:\.\d{1,3}){3}|\[::1\]|\/.*|%2f.*)$/i

/**
 * Reads the TLS part of a database's URL.
 *
 * @param text - a postgres:// URL
 */
export function readConnectionUrl(text: string): ConnectionUrl {
  const url = new URL(text)
  const { searchParams } = url
  const host = searchParams.get('host') ?? url.hostname
  // the driver would read a file of that name; without the parameter it trusts the public authorities
  if (searchParams.get('sslrootcert') === 'system') {
    searchParams.delete('sslrootcert')
    if (!searchParams.has('sslmode')) searchParams.set('sslmode', 'verify-full')
  }
  const mode = searchParams.get('sslmode')
  if (mode !== null && !MODES.includes(mode)) {
    return { url: text, warnings: [], faults: [`sslmode is "${mode}": use verify-full, or disable`] }
  }
  const isLibpq = searchParams.get('uselibpqcompat') === 'true'
  if (TAKEN_AS_FULL.includes(mode ?? '') && !isLibpq) searchParams.set('sslmode', 'verify-full')
  const warning = LOCAL.test(host) ? undefined : warningOf(url, mode, isLibpq)
  return { url: searchParams.size > 0 ? url.href : text, warnings: warning === undefined ? [] : [warning], faults: [] }
}

function warningOf({ searchParams }: URL, mode: string | null, isLibpq: boolean): string | undefined {
  const isEncrypted = mode !== null || searchParams.has('ssl') || searchParams.has('sslrootcert')
  if (!isEncrypted || mode === 'disable' || searchParams.get('ssl') === '0') {
    return 'the connection to the database is not encrypted: add sslmode=verify-full to its URL, and sslrootcert=FILE for a private authority'
  }
  const checksNothing =
    mode === 'no-verify' || (isLibpq && (mode === 'prefer' || (mode === 'require' && !searchParams.has('sslrootcert'))))
  if (checksNothing) {
    return `sslmode=${mode} encrypts, but anybody who answers is taken for the database: use sslmode=verify-full`
  }
  if (isLibpq && mode !== 'verify-full') {
    return `sslmode=${mode} does not check the host name, so any server of the authority is taken for the database: use sslmode=verify-full`
  }
  if (TAKEN_AS_FULL.includes(mode ?? '')) {
    return `sslmode=${mode} is taken as verify-full, which checks the certificate and the host name: write that`
  }
  return undefined
}
