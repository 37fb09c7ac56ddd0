import { join } from 'node:path'
import { EmbeddedServerError, type ServerBinaries, type ServerFolder } from './embedded-files.ts'

/** A user of the system. */
export interface Identity {
  readonly uid: number
  readonly gid: number
}

/**
 * How the server gets a user that PostgreSQL accepts: it refuses to run as root, and initdb needs a passwd entry.
 *
 * - `plain`: as the caller
 * - `namespace`: in a user namespace that maps the caller to another uid; outside it the files belong to the caller
 * - `switch`: root becomes another user, keeping the right to enter folders of mode 0700
 */
export type LaunchMode =
  | { readonly kind: 'plain' }
  | ({ readonly kind: 'namespace' } & Identity)
  | ({ readonly kind: 'switch' } & Identity)

/** What the choice depends on. */
export interface LaunchFacts {
  /** effective uid of this process */
  readonly uid: number
  readonly hasPasswdEntry: boolean
  /** owner of the database files; undefined before they exist */
  readonly owner: Identity | undefined
  /** unprivileged users with a passwd entry */
  readonly users: readonly Identity[]
  /** whether a user namespace can be created and can access the folder and the programs; probed only for a new folder as root */
  readonly namespaceWorks: boolean
  /** of the database files, for messages */
  readonly path: string
}

const NOBODY = 65534

/**
 * Chooses by the owner of the database files: a server does not start on files that were created in another mode.
 *
 * @throws EmbeddedServerError FAILED when the files belong to another user and the caller is not root, or the system has no unprivileged user
 */
export function chooseLaunchMode(facts: LaunchFacts): LaunchMode {
  const { uid, hasPasswdEntry, owner, path } = facts
  if (owner !== undefined && owner.uid !== uid) {
    if (uid === 0) return { kind: 'switch', ...owner }
    const message = `${path} belongs to the user with uid ${owner.uid}, and this process runs as uid ${uid}. Start as that user or choose another DATA_DIR.`
    throw new EmbeddedServerError('FAILED', message)
  }
  if (uid !== 0 && hasPasswdEntry) return { kind: 'plain' }
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

/** Parses /etc/passwd; lines that are no entries are skipped. */
export function parsePasswd(text: string): Identity[] {
  return text.split('\n').flatMap((line) => {
    const [, , uid, gid] = line.split(':')
    return /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '') ? [{ uid: Number(uid), gid: Number(gid) }] : []
  })
}

/** A program of ours that does on other systems what `flock` and `setpriv` do on Linux. */
const KEEPER = join(import.meta.dirname, 'keep-child.ts')

/** What the programs of a start see of the environment. PATH leads to those of util-linux also where it does not for this process. */
export const launchEnvironment = { PATH: `${process.env.PATH ?? ''}:/usr/bin:/bin:/usr/sbin:/sbin`, LC_ALL: 'C' }

/** The beginning of a command line that runs the rest as the chosen user, to be killed by SIGINT when the parent ends. */
export function identityCommand(mode: LaunchMode): string[] {
  const endsWithParent = ['--pdeathsig', 'INT']
  switch (mode.kind) {
    case 'plain':
      return ['setpriv', ...endsWithParent]
    case 'namespace':
      return ['unshare', '-U', `--map-user=${mode.uid}`, `--map-group=${mode.gid}`, 'setpriv', ...endsWithParent]
    case 'switch':
      return [
        'setpriv',
        `--reuid=${mode.uid}`,
        `--regid=${mode.gid}`,
        '--clear-groups',
        '--securebits=+no_setuid_fixup',
        '--inh-caps=+dac_override',
        '--ambient-caps=+dac_override',
        ...endsWithParent,
      ]
  }
}

/** The exit code of flock when the lock is held. */
export const LOCK_HELD = 75

/** Everything that a start needs to know. */
export interface LaunchPlan {
  readonly isLinux: boolean
  readonly mode: LaunchMode
  readonly folder: ServerFolder
  readonly binaries: ServerBinaries
  /** how long to wait for a lock that is held, in seconds */
  readonly lockWaitSec: number
  /** the process with which the server is to end */
  readonly parentPid: number
  readonly settings: Readonly<Record<string, string>>
}

/** The superuser that initdb creates. */
export const SUPERUSER = 'waybill'

/**
 * The start is one process; each program replaces the one before by exec: flock, setpriv (user and parent-death signal), this script,
 * postgres. All processes of the server inherit the lock's file descriptor, so the lock is free only when the last of them has ended, and a
 * pid file or socket that is found while holding the lock is stale. The script checks its parent after the parent-death signal was set: had
 * the parent died before, the signal would never come.
 */
const START_SCRIPT = `
set -eu
parent=$1 initdb=$2 postgres=$3 libraries=$4 password=$5 options=$6
shift 6
[ "$parent" = none ] || [ "$PPID" = "$parent" ] || exit 0
if [ ! -d data ]; then
  rm -rf data.new
  LD_LIBRARY_PATH=$libraries DYLD_LIBRARY_PATH=$libraries "$initdb" -D data.new -U ${SUPERUSER} -E UTF8 -A scram-sha-256 --pwfile="$password" \\
    --no-instructions $options >&2
  mv data.new data
fi
rm -f data/postmaster.pid data/.s.PGSQL.*
export LD_LIBRARY_PATH=$libraries DYLD_LIBRARY_PATH=$libraries
exec "$postgres" -D data -k . "$@"
`

/** The command line of a start. Its process becomes the server and keeps its pid. */
export function launchCommand(plan: LaunchPlan): string[] {
  const { isLinux, folder, binaries, settings } = plan
  const values = {
    listen_addresses: '',
    port: '5432',
    unix_socket_permissions: '0700',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...settings,
  }
  return [
    ...(isLinux ? lockCommand(plan) : keeperCommand(plan)),
    'sh',
    '-c',
    START_SCRIPT,
    'start-postgres',
    // The keeper is the script's parent, and notices itself when ours is gone.
    isLinux ? String(plan.parentPid) : 'none',
    binaries.initdb,
    binaries.postgres,
    `${folder.libraries}:${binaries.libraries}`,
    folder.password,
    // a sync by initdb takes 0.3 s and protects nothing where the server runs without fsync
    [settings.fsync === 'off' ? '--no-sync' : '--sync-method=fsync', ...binaries.locale].join(' '),
    ...Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

function lockCommand({ mode, folder, lockWaitSec }: LaunchPlan): string[] {
  return ['flock', '-F', `-w${lockWaitSec}`, `-E${LOCK_HELD}`, folder.lock, ...identityCommand(mode)]
}

function keeperCommand({ folder, lockWaitSec }: LaunchPlan): string[] {
  return [process.execPath, KEEPER, 'SIGINT', folder.lock, String(lockWaitSec)]
}
