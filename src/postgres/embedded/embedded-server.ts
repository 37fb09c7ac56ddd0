import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
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
  chooseWay,
  findTools,
  identityCommand,
  type LaunchTools,
  type LaunchWay,
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

/** A server that this process started. It ends with this process, however that ends. */
export interface EmbeddedServer {
  /** makes the settings of a new connection; valid again after a restart on the same folder */
  readonly connection: ConnectionFactory
  readonly pid: number
  /** Ends all connections and the server, and waits until it is gone. May be called again. */
  stop(): Promise<void>
  /** resolves when the server has ended, for whatever reason */
  readonly exited: Promise<ServerExit>
}

export interface StartOptions {
  /** DATA_DIR; made if missing */
  readonly dataDir: string
  readonly logger?: Logger | undefined
  /** further settings of the server, by name; `fsync: 'off'` makes the first start quicker as well */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /** gives up the start */
  readonly signal?: AbortSignal | undefined
  /** how long to wait for a server that is just stopping, in seconds */
  readonly lockWaitSec?: number | undefined
}

/** An immediate restart may meet the server before, still writing its last checkpoint. */
const LOCK_WAIT_SEC = 5

/** How long a fast shutdown may take before the server is told to drop everything, in ms. */
const FAST_STOP_MS = 30_000

/** What an operator should see; connections that end and statements that fail are their users' matter. */
const ALARMING = / PANIC: |terminated by signal|could not |No space left/

/** A server that follows another says that it takes reads alone. */
const READY = /database system is ready to accept (?:read-only )?connections$/

/** How many of the server's last words go into an error. */
const LAST_WORDS = 20

/**
 * Starts PostgreSQL on `dataDir`/pg, making the database files at the first start. It listens on no network, only on a
 * socket in its own folder, and writes to no folder but its own.
 *
 * Must be called from the main thread: the server is told to end with the thread that started it.
 *
 * @throws EmbeddedServerError with a message for the operator
 */
export async function startEmbeddedServer(options: StartOptions): Promise<EmbeddedServer> {
  return (await launchServer(options)).server
}

async function launchServer(options: StartOptions): Promise<{ server: EmbeddedServer; child: ChildProcess }> {
  options.signal?.throwIfAborted()
  requireMainThread()
  const folder = serverFolder(options.dataDir)
  const tools = findTools(process.env.PATH ?? '')
  const binaries = await findBinaries()
  await prepareFolder(folder, binaries)
  const way = await findWay(folder, tools, binaries)
  const command = launchCommand({
    tools,
    way,
    folder,
    binaries,
    lockWaitSec: options.lockWaitSec ?? LOCK_WAIT_SEC,
    parentPid: process.pid,
    settings: options.settings ?? {},
  })
  const child = launch(command, folder)
  const words = collectWords(child, options.logger)
  await untilReady({ child, folder, words, signal: options.signal })
  return { server: runningServer(child, folder), child }
}

function requireMainThread(): void {
  if (isMainThread) return
  const message =
    'The embedded PostgreSQL must be started from the main thread: it ends with the thread that starts it.'
  throw new EmbeddedServerError('NOT_MAIN_THREAD', message)
}

async function findWay(folder: ServerFolder, tools: LaunchTools, binaries: ServerBinaries): Promise<LaunchWay> {
  const uid = process.geteuid?.() ?? 0
  const owner = await dataOwner(folder)
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8').catch(() => ''))
  const namespaceWorks = uid === 0 && owner === undefined && probeNamespace(tools, { users, folder, binaries })
  return chooseWay({ uid, named: hasPasswdEntry(), owner, users, namespaceWorks, path: folder.data })
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

/** In a namespace root loses its right to pass folders of others, so look whether both ends are within reach. */
function probeNamespace(tools: LaunchTools, { users, folder, binaries }: Reach): boolean {
  const [command = '', ...words] = identityCommand(tools, { kind: 'namespace', ...unprivileged(users) })
  const script = '[ -w "$1" ] && [ -x "$2" ]'
  const probe = spawnSync(command, [...words, tools.sh, '-c', script, 'probe', folder.root, binaries.postgres])
  return probe.status === 0
}

/** A session of its own keeps Ctrl-C in a terminal from stopping the server before its users are done. */
function launch([command = '', ...words]: string[], folder: ServerFolder): ChildProcess {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' }
  return spawn(command, words, { cwd: folder.root, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
}

interface Words {
  readonly last: string[]
  onLine: (line: string) => void
}

function collectWords(child: ChildProcess, logger: Logger | undefined): Words {
  const words: Words = { last: [], onLine: () => {} }
  if (child.stderr === null) return words
  createInterface({ input: child.stderr, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    words.last.push(line)
    if (words.last.length > LAST_WORDS) words.last.shift()
    if (ALARMING.test(line)) logger?.warn({ postgres: line }, 'embedded PostgreSQL')
    else logger?.debug({ postgres: line }, 'embedded PostgreSQL')
    words.onLine(line)
  })
  return words
}

interface Starting {
  readonly child: ChildProcess
  readonly folder: ServerFolder
  readonly words: Words
  readonly signal: AbortSignal | undefined
}

async function untilReady({ child, folder, words, signal }: Starting): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // 'close' comes after the last line of stderr, 'exit' may come before
  const onClose = (code: number | null) => {
    explainExit(code, folder, words.last).then(reject, reject)
  }
  const onError = (cause: Error) =>
    reject(new EmbeddedServerError('FAILED', `PostgreSQL did not start: ${cause.message}`, { cause }))
  const onAbort = () => {
    endGroup(child, 'SIGINT')
    child.once('close', () => reject(signal?.reason))
    child.off('close', onClose)
  }
  words.onLine = (line) => {
    if (READY.test(line)) resolve()
  }
  child.once('close', onClose)
  child.once('error', onError)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    await promise
  } finally {
    words.onLine = () => {}
    child.off('close', onClose)
    child.off('error', onError)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function explainExit(code: number | null, folder: ServerFolder, last: string[]): Promise<EmbeddedServerError> {
  const said = last.join('\n')
  if (code === LOCK_HELD) {
    const pid = await holderPid(folder)
    const holder = pid === undefined ? 'Another process' : `The process with pid ${pid}`
    const message = `${holder} runs the database in ${folder.root}, and a folder has one server only. Stop it or choose another DATA_DIR.`
    return new EmbeddedServerError('FOLDER_HELD', message)
  }
  if (/No space left on device|Disk quota exceeded/.test(said)) {
    const message = `The disk that holds ${folder.root} is full. Free some space or choose another DATA_DIR.`
    return new EmbeddedServerError('DISK_FULL', message)
  }
  if (/Permission denied|wrong ownership/.test(said)) {
    const message = `PostgreSQL has no access to its folder ${folder.root} or to its programs:\n${said}`
    return new EmbeddedServerError('OTHER_OWNER', message)
  }
  return new EmbeddedServerError(
    'FAILED',
    `PostgreSQL did not start in ${folder.root} (exit ${code}). It said:\n${said}`,
  )
}

/** initdb runs as a child of its own: signal the whole session. */
function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function runningServer(child: ChildProcess, folder: ServerFolder): EmbeddedServer {
  const exited = new Promise<ServerExit>((resolve) => {
    const done = () => resolve({ code: child.exitCode, signal: child.signalCode })
    if (child.exitCode !== null || child.signalCode !== null) done()
    else child.once('exit', done)
  })
  const stop = async () => {
    // to the postmaster alone: it tells its processes, and a signal to the group would read as a cancel in each of them
    child.kill('SIGINT')
    const forced = setTimeout(() => child.kill('SIGQUIT'), FAST_STOP_MS)
    await exited
    clearTimeout(forced)
  }
  return { connection: folderConnection(folder), pid: child.pid ?? 0, stop, exited }
}

/** A use of the server of a folder, whoever started it. */
export interface OpenedServer {
  readonly connection: ConnectionFactory
  /** whether this process started it, and so whether it ends with this process */
  readonly started: boolean
  /**
   * Gives the use back; close your pool first. A server that this process started stops once other processes that
   * joined it have left.
   */
  release(): Promise<void>
}

/**
 * Joins the server that runs on `dataDir`.
 *
 * @throws EmbeddedServerError NOT_RUNNING when none does or it is just starting or stopping
 */
export async function joinEmbeddedServer(dataDir: string): Promise<OpenedServer> {
  const folder = serverFolder(dataDir)
  if (existsSync(folder.data)) {
    const connection = folderConnection(folder)
    if (await tryConnection(connection)) return { connection, started: false, release: async () => {} }
  }
  throw new EmbeddedServerError('NOT_RUNNING', `No database runs in ${folder.root}.`)
}

/** How long to go between joining and starting while another process starts or stops its server, in ms. */
const OPEN_MS = 30_000

/** How long a release waits for processes that joined, in ms. */
const RELEASE_MS = 60_000

/**
 * Joins the server that runs on `dataDir`, or starts one; never two on one folder. For commands that live beside a
 * service or alone. A service should call {@link startEmbeddedServer}: a server joined ends with its starter.
 *
 * @throws EmbeddedServerError
 */
export async function openEmbeddedServer(options: StartOptions): Promise<OpenedServer> {
  const deadline = Date.now() + OPEN_MS
  for (;;) {
    try {
      return await joinEmbeddedServer(options.dataDir)
    } catch (error) {
      if (!hasReason(error, 'NOT_RUNNING')) throw error
    }
    try {
      // a short wait for the lock is the pause between two attempts
      return releasable(await launchServer({ ...options, lockWaitSec: 0.1 }), options.logger)
    } catch (error) {
      if (!hasReason(error, 'FOLDER_HELD') || Date.now() > deadline) throw error
    }
    await nextTurn()
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
    // a smart shutdown: no new connections, and an end when the last one has gone
    child.kill('SIGTERM')
    logger?.debug({ pid: server.pid }, 'the embedded PostgreSQL stops when no other process uses it')
    const forced = setTimeout(() => child.kill('SIGINT'), RELEASE_MS)
    await server.exited
    clearTimeout(forced)
  }
  return { connection: server.connection, started: true, release }
}
