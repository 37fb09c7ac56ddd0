import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { EmbeddedServerError } from './embedded-error.ts'
import type { ServerBinaries, ServerFolder } from './embedded-files.ts'

/** A user of the system. */
export interface Identity {
  readonly uid: number
  readonly gid: number
}

/**
 * How the server gets an identity that PostgreSQL accepts (it refuses to run as root, and initdb wants a passwd entry):
 *
 * - `plain`: as the caller
 * - `namespace`: in a user namespace in which the caller bears another uid; outside it the files stay the caller's
 * - `switch`: root becomes another user, keeping the right to pass folders of mode 0700
 */
export type LaunchWay =
  | { readonly kind: 'plain' }
  | ({ readonly kind: 'namespace' } & Identity)
  | ({ readonly kind: 'switch' } & Identity)

/** What the choice of a way depends on. */
export interface LaunchFacts {
  /** effective uid of this process */
  readonly uid: number
  /** whether that uid has a passwd entry */
  readonly named: boolean
  /** owner of the database files; undefined before they are made */
  readonly owner: Identity | undefined
  /** unprivileged users with a passwd entry */
  readonly users: readonly Identity[]
  /** whether a user namespace can be made and reaches the folder and the programs; asked only for a new folder as root */
  readonly namespaceWorks: boolean
  /** for messages */
  readonly path: string
}

const NOBODY = 65534

/**
 * Chooses by the owner of the database files, since files made in one way do not start in another.
 *
 * @throws EmbeddedServerError OTHER_OWNER when the files are another user's and the caller is not root; FAILED when
 *   the system lists no unprivileged user
 */
export function chooseWay(facts: LaunchFacts): LaunchWay {
  const { uid, named, owner, path } = facts
  if (owner !== undefined && owner.uid !== uid) {
    if (uid === 0) return { kind: 'switch', ...owner }
    const message = `${path} belongs to the user with uid ${owner.uid}, and this process runs as uid ${uid}. Start as that user or choose another DATA_DIR.`
    throw new EmbeddedServerError('OTHER_OWNER', message)
  }
  if (uid !== 0 && named) return { kind: 'plain' }
  if (uid === 0 && owner === undefined && !facts.namespaceWorks) return { kind: 'switch', ...unprivileged(facts.users) }
  return { kind: 'namespace', ...unprivileged(facts.users) }
}

/** `nobody` where there is one, else any user but root. */
export function unprivileged(users: readonly Identity[]): Identity {
  const chosen = users.find((user) => user.uid === NOBODY) ?? users.find((user) => user.uid !== 0)
  if (chosen !== undefined) return chosen
  throw new EmbeddedServerError(
    'FAILED',
    'PostgreSQL does not run as root, and /etc/passwd lists no other user to run it as. Add one.',
  )
}

/** Reads the users out of the text of /etc/passwd; lines that are none are passed over. */
export function parsePasswd(text: string): Identity[] {
  return text.split('\n').flatMap((line) => {
    const [, , uid, gid] = line.split(':')
    return /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '') ? [{ uid: Number(uid), gid: Number(gid) }] : []
  })
}

/** Absolute paths of the system's programs that a start needs. */
export interface LaunchTools {
  readonly flock: string
  readonly setpriv: string
  readonly unshare: string
  readonly sh: string
}

/**
 * Finds the system's programs.
 *
 * @param searchPath - as in PATH; the usual system folders are looked at besides
 * @throws EmbeddedServerError TOOL_MISSING
 */
export function findTools(searchPath: string): LaunchTools {
  const folders = [...searchPath.split(':').filter(Boolean), '/usr/bin', '/bin', '/usr/sbin', '/sbin']
  const find = (name: string) => {
    const folder = folders.find((candidate) => existsSync(join(candidate, name)))
    if (folder !== undefined) return join(folder, name)
    const message = `The embedded PostgreSQL needs the program ${name}, which is not installed. Install util-linux, or set DATABASE_URL to a PostgreSQL of your own.`
    throw new EmbeddedServerError('TOOL_MISSING', message)
  }
  return { flock: find('flock'), setpriv: find('setpriv'), unshare: find('unshare'), sh: find('sh') }
}

/** The words that run what follows them under the chosen identity, with the death signal armed. */
export function identityCommand(tools: LaunchTools, way: LaunchWay): string[] {
  switch (way.kind) {
    case 'plain':
      return [tools.setpriv, '--pdeathsig', 'INT']
    case 'namespace':
      return [
        tools.unshare,
        '-U',
        `--map-user=${way.uid}`,
        `--map-group=${way.gid}`,
        tools.setpriv,
        '--pdeathsig',
        'INT',
      ]
    case 'switch':
      return [
        tools.setpriv,
        `--reuid=${way.uid}`,
        `--regid=${way.gid}`,
        '--clear-groups',
        '--securebits=+no_setuid_fixup',
        '--inh-caps=+dac_override',
        '--ambient-caps=+dac_override',
        '--pdeathsig',
        'INT',
      ]
  }
}

/** The exit code by which flock says that the lock is held. */
export const LOCK_HELD = 75

/** What a launch is made of. */
export interface LaunchPlan {
  readonly tools: LaunchTools
  readonly way: LaunchWay
  readonly folder: ServerFolder
  readonly binaries: ServerBinaries
  /** how long to wait for a lock that is held, in seconds */
  readonly lockWaitSec: number
  /** the process that is to outlive the server */
  readonly parentPid: number
  readonly settings: Readonly<Record<string, string>>
}

/** The superuser that initdb makes. */
export const SUPERUSER = 'waybill'

/**
 * The whole start as one process, each step replacing the one before: lock, identity and death signal, then this
 * script, then the server. The lock's descriptor passes on to every process of the server, so it is free only when the last
 * of them has ended, and a pid file or socket found under the lock is stale. The parent is looked at once the death
 * signal is armed: had it died before, the signal would never come.
 */
const START_SCRIPT = `
set -eu
parent=$1 initdb=$2 postgres=$3 libraries=$4 password=$5 sync=$6
shift 6
[ "$PPID" = "$parent" ] || exit 0
if [ ! -d data ]; then
  rm -rf data.new
  LD_LIBRARY_PATH=$libraries "$initdb" -D data.new -U ${SUPERUSER} -E UTF8 -A scram-sha-256 --pwfile="$password" $sync \\
    --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8 --no-instructions >&2
  mv data.new data
fi
rm -f data/postmaster.pid data/.s.PGSQL.*
export LD_LIBRARY_PATH=$libraries
exec "$postgres" -D data -k . "$@"
`

/** The command line of a start; its process becomes the server, keeping its pid. */
export function launchCommand(plan: LaunchPlan): string[] {
  const { tools, way, folder, binaries, settings } = plan
  const values = {
    listen_addresses: '',
    port: '5432',
    unix_socket_permissions: '0700',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...settings,
  }
  return [
    tools.flock,
    '-F',
    `-w${plan.lockWaitSec}`,
    `-E${LOCK_HELD}`,
    folder.lock,
    ...identityCommand(tools, way),
    tools.sh,
    '-c',
    START_SCRIPT,
    'start-postgres',
    String(plan.parentPid),
    binaries.initdb,
    binaries.postgres,
    `${folder.libraries}:${binaries.libraries}`,
    folder.password,
    // initdb's own sync is worth 0.3 s, for nothing where the server is told not to sync either
    settings.fsync === 'off' ? '--no-sync' : '--sync-method=fsync',
    ...Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}
