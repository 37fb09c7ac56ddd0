/** How a connection to a database is protected, read from its URL. */
export interface ConnectionUrl {
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
