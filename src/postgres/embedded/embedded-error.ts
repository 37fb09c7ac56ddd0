/**
 * Why an embedded PostgreSQL could not be started or joined.
 *
 * - `UNSUPPORTED_PLATFORM`: there are no PostgreSQL binaries for this system (macOS, Windows, musl)
 * - `TOOL_MISSING`: `flock`, `setpriv` or `unshare` is not installed
 * - `NOT_MAIN_THREAD`: started from a worker thread; the server would stop when that thread ends
 * - `FOLDER_HELD`: another process runs a server in the folder
 * - `OTHER_OWNER`: the folder belongs to another user
 * - `PASSWORD_LOST`: the database files exist, but not their password file
 * - `DISK_FULL`: no space left
 * - `OTHER_VERSION`: the database files are of another major version of PostgreSQL
 * - `NOT_RUNNING`: asked to join, but no server runs in the folder
 * - `FAILED`: anything else; the message has the last lines of the server's log
 */
export type EmbeddedServerReason =
  | 'UNSUPPORTED_PLATFORM'
  | 'TOOL_MISSING'
  | 'NOT_MAIN_THREAD'
  | 'FOLDER_HELD'
  | 'OTHER_OWNER'
  | 'PASSWORD_LOST'
  | 'DISK_FULL'
  | 'OTHER_VERSION'
  | 'NOT_RUNNING'
  | 'FAILED'

/** An error for the operator: its message says what was wrong and what to do. */
export class EmbeddedServerError extends Error {
  override readonly name = 'EmbeddedServerError'
  readonly reason: EmbeddedServerReason

  constructor(reason: EmbeddedServerReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
