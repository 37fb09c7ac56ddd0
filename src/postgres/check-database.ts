import type { Knex } from 'knex'
import type { Logger } from '../domain/logger.ts'
import { withConnection } from './cancellable.ts'
import { readConnectionUrl } from './connection-url.ts'
import { type DatabaseFacts, judgeDatabase } from './judge-database.ts'

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
