import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, type TestContext, test, vi } from 'vitest'
import {
  type EmbeddedServer,
  joinEmbeddedServer,
  openEmbeddedServer,
  type StartOptions,
  startEmbeddedServer,
} from '../../src/postgres/embedded/embedded-server.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const CHILD = fileURLToPath(new URL('./embedded-child.ts', import.meta.url))
const NOBODY = 65534
const isRoot = process.getuid?.() === 0

let folder: string
let dataDir: string
const servers: EmbeddedServer[] = []
const children: ChildProcess[] = []

/** A data folder after a first start; tests that are not about the first start copy it. */
let prepared: string

beforeAll(async () => {
  prepared = await makeTempFolder('db-prepared')
  const server = await startEmbeddedServer({ dataDir: prepared, settings: { fsync: 'off' } })
  await server.stop()
})

afterAll(() => rm(prepared, { recursive: true, force: true }))

const usePrepared = () => spawnSync('cp', ['-a', prepared, dataDir])

beforeEach(async () => {
  folder = await makeTempFolder('db-embedded')
  dataDir = join(folder, 'data')
})

afterEach(async () => {
  const ended = children.splice(0).map(async (child) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  })
  await Promise.all([...ended, ...servers.splice(0).map((server) => server.stop())])
  // a server whose starter was killed holds the lock until it has ended
  const lock = join(dataDir, 'pg', 'lock')
  if (spawnSync('test', ['-e', lock]).status === 0) spawnSync('flock', ['-w', '20', lock, 'true'])
  await rm(folder, { recursive: true, force: true })
})

async function start(options: Partial<StartOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' }, ...options })
  servers.push(server)
  return server
}

async function query(server: Pick<EmbeddedServer, 'connection'>, sql: string): Promise<unknown[]> {
  const client = new Client(server.connection())
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

interface Child {
  readonly process: ChildProcess
  readonly report: Promise<{ pid?: number; started?: boolean; reason?: string; message?: string }>
}

/** Starts embedded-child.ts, optionally by a command that changes its user. */
function startChild(mode: 'start' | 'open', behind: string[] = [], more: { detached?: boolean } = {}): Child {
  const child = spawn('env', [...behind, process.execPath, CHILD, mode, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...more,
  })
  children.push(child)
  const report = once(createInterface({ input: child.stdout }), 'line').then(([line]) => JSON.parse(line))
  return { process: child, report }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const untilGone = (pid: number) => vi.waitFor(() => expect(isAlive(pid)).toBe(false), 15_000)

describe('a server', () => {
  test('runs in a deep folder below one of mode 0700, on a socket without a port, and keeps its data', async () => {
    const deep = join(folder, 'a'.repeat(60), 'b'.repeat(60))
    await mkdir(deep, { recursive: true })
    await chmod(folder, 0o700)
    dataDir = join(deep, 'data')
    const first = await start()
    await query(first, 'create table kept (n int)')
    const settings = await query(
      first,
      `select name, setting from pg_settings where name in ('listen_addresses', 'TimeZone', 'server_encoding') order by lower(name)`,
    )
    expect(settings).toEqual([
      { name: 'listen_addresses', setting: '' },
      { name: 'server_encoding', setting: 'UTF8' },
      { name: 'TimeZone', setting: 'UTC' },
    ])
    await first.stop()
    expect(await first.exited).toEqual({ code: 0, signal: null })
    const second = await start()
    expect(await query(second, 'select count(*)::int as tables from kept')).toEqual([{ tables: 0 }])
  })

  test('makes its password and files readable by the owner alone, and changes no mode of existing folders', async () => {
    await mkdir(dataDir)
    await chmod(dataDir, 0o755)
    await start()
    const mode = async (path: string) => ((await stat(join(dataDir, path))).mode & 0o777).toString(8)
    expect(await mode('.')).toBe('755')
    expect(await mode('pg')).toBe('700')
    expect(await mode('pg/data')).toBe('700')
    expect(await mode('pg/data/.s.PGSQL.5432')).toBe('700')
    expect(await mode('pg/password')).toBe('600')
    expect((await readdir(join(dataDir, 'pg'))).toSorted()).toEqual(['data', 'lib', 'lock', 'password'])
  })

  test('refuses a wrong password', async () => {
    usePrepared()
    const server = await start()
    const client = new Client({ ...server.connection(), password: 'guess' })
    await expect(client.connect()).rejects.toMatchObject({ code: '28P01' })
  })

  test('is the only one of its folder: a second start fails with the pid of the first', async () => {
    usePrepared()
    const server = await start()
    await expect(start({ lockWaitSec: 0 })).rejects.toMatchObject({
      reason: 'FOLDER_HELD',
      message: expect.stringContaining(`The process with pid ${process.pid} runs the database in ${dataDir}/pg`),
    })
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('starts while the previous one is still stopping', async () => {
    usePrepared()
    const first = await start()
    const stopping = first.stop()
    const second = await start()
    await stopping
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('ignores Ctrl-C in a terminal; its process stops it', async () => {
    usePrepared()
    const child = startChild('start', [], { detached: true })
    const { pid = 0 } = await child.report
    process.kill(-(child.process.pid ?? 0), 'SIGINT')
    expect(await query(await joinEmbeddedServer(dataDir), 'select 1 as one')).toEqual([{ one: 1 }])
    const exit = once(child.process, 'exit')
    child.process.stdin?.end()
    expect(await exit).toEqual([0, null])
    expect(isAlive(pid)).toBe(false)
  })

  test('aborts its start when the signal fires, and the folder can be used again', async () => {
    const controller = new AbortController()
    const reason = new Error('never mind')
    const logger = { info() {}, warn() {}, error() {}, debug: () => controller.abort(reason) }
    await expect(start({ signal: controller.signal, logger })).rejects.toBe(reason)
    await expect(start({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(await query(await start(), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('fails with the reason when it cannot start', async () => {
    usePrepared()
    await expect(start({ settings: { fsync: 'perhaps' } })).rejects.toMatchObject({
      reason: 'FAILED',
      message: expect.stringContaining('parameter "fsync" requires a Boolean value'),
    })
  })

  test('does not create a new password for existing data', async () => {
    usePrepared()
    await (await start()).stop()
    await rm(join(dataDir, 'pg', 'password'))
    await expect(start()).rejects.toThrow('/pg/password is missing')
  })
})

describe('a server dies with its process', () => {
  test('even by kill -9, with a clean shutdown, and the folder starts again', async () => {
    usePrepared()
    const child = startChild('start')
    const { pid = 0 } = await child.report
    await query(await joinEmbeddedServer(dataDir), 'create table kept (n int)')
    child.process.kill('SIGKILL')
    await untilGone(pid)
    const lines: string[] = []
    const collect = (fields: object) => void lines.push((fields as { postgres: string }).postgres)
    const server = await start({ logger: { debug: collect, info: collect, warn: collect, error: collect } })
    expect(await query(server, 'select * from kept')).toEqual([])
    expect(lines.join('\n')).toContain('database system was shut down at')
  })

  test('killed by -9 during initdb, and the next start creates the database files', async () => {
    const child = startChild('start')
    await vi.waitFor(async () => expect(await readdir(join(dataDir, 'pg'))).toContain('data.new'), {
      timeout: 5_000,
      interval: 5,
    })
    child.process.kill('SIGKILL')
    expect(await query(await start(), 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await readdir(join(dataDir, 'pg'))).not.toContain('data.new')
  })

  test('and when both are killed by -9 the next start recovers', async () => {
    usePrepared()
    const child = startChild('start')
    const { pid = 0 } = await child.report
    await query(await joinEmbeddedServer(dataDir), 'create table kept (n int)')
    process.kill(pid, 'SIGKILL')
    child.process.kill('SIGKILL')
    const server = await start()
    expect(await query(server, 'select * from kept')).toEqual([])
  })

  test('and reports its exit when it is killed itself', async () => {
    usePrepared()
    const server = await start()
    process.kill(server.pid, 'SIGKILL')
    expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' })
    await server.stop()
    // the next server frees the shared memory of the killed one
    await start()
  })
})

describe('a second process', () => {
  test('joins the running server', async () => {
    usePrepared()
    const server = await start()
    const child = startChild('open')
    expect(await child.report).toEqual({ started: false })
    const exit = once(child.process, 'exit')
    child.process.stdin?.end()
    await exit
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('cannot join where no server runs, or none ever ran', async () => {
    await expect(joinEmbeddedServer(dataDir)).rejects.toMatchObject({ reason: 'NOT_RUNNING' })
    await (await start()).stop()
    await expect(joinEmbeddedServer(dataDir)).rejects.toMatchObject({ reason: 'NOT_RUNNING' })
  })

  test('of four processes that open a new folder at once, one starts a server and three join', async () => {
    const reports = await Promise.all(Array.from({ length: 4 }, () => startChild('open').report))
    expect(reports.filter(({ started }) => started === true)).toHaveLength(1)
    expect(reports.filter(({ started }) => started === false)).toHaveLength(3)
  })

  test('opens a server while the previous one is stopping', async () => {
    usePrepared()
    const first = await start()
    const stopping = first.stop()
    const opened = await openEmbeddedServer({ dataDir })
    await stopping
    expect(opened.started).toBe(true)
    expect(await query(opened, 'select 1 as one')).toEqual([{ one: 1 }])
    await opened.release()
  })

  test('that joined keeps its connection when the first releases the server', async () => {
    usePrepared()
    const starter = startChild('open')
    expect(await starter.report).toEqual({ started: true })
    const joined = await openEmbeddedServer({ dataDir })
    const client = new Client(joined.connection())
    await client.connect()
    const exit = once(starter.process, 'exit')
    starter.process.stdin?.end()
    const refused = () => expect(joinEmbeddedServer(dataDir)).rejects.toMatchObject({ reason: 'NOT_RUNNING' })
    await vi.waitFor(refused, 5_000)
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await client.end()
    expect(await exit).toEqual([0, null])
  })
})

const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

/** The user has to have access to Node and this checkout. */
function skipUnlessNobodyCanRun(context: TestContext): void {
  if (!isRoot) context.skip('only root can become another user')
  if (spawnSync('env', [...AS_NOBODY, process.execPath, '--check', CHILD]).status !== 0)
    context.skip('this checkout stands in a folder that other users cannot read')
}

describe('other users', () => {
  test('a user runs a server in their own folder', async (context) => {
    skipUnlessNobodyCanRun(context)
    await chown(folder, NOBODY, NOBODY)
    const child = startChild('start', AS_NOBODY)
    const { pid } = await child.report
    expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(/^Uid:\t65534\t65534/m)
    const exit = once(child.process, 'exit')
    child.process.stdin?.end()
    expect(await exit).toEqual([0, null])
  })

  test('a user without a passwd entry runs one as well', async (context) => {
    skipUnlessNobodyCanRun(context)
    const unnamed = ['setpriv', '--reuid=12345', '--regid=12345', '--clear-groups']
    const namespaces = spawnSync('env', [...unnamed, 'unshare', '-U', '--map-user=1', '--map-group=1', 'true'])
    if (namespaces.status !== 0) context.skip('this system lets no plain user make a user namespace')
    await chown(folder, 12_345, 12_345)
    const child = startChild('start', unnamed)
    const { pid } = await child.report
    expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(/^Uid:\t12345\t12345/m)
  })

  test('root starts the folder of another user as that user, who can start it afterwards', async (context) => {
    skipUnlessNobodyCanRun(context)
    await chown(folder, NOBODY, NOBODY)
    const before = startChild('start', AS_NOBODY)
    await before.report
    const gone = once(before.process, 'exit')
    before.process.stdin?.end()
    await gone

    const server = await start()
    expect(await readFile(`/proc/${server.pid}/status`, 'utf8')).toMatch(/^Uid:\t65534\t65534/m)
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()

    const after = startChild('start', AS_NOBODY)
    expect(await after.report).toMatchObject({ started: true })
  })

  test('root creates a folder that a user namespace cannot access as nobody, and the server ends with its process', async (context) => {
    skipUnlessNobodyCanRun(context)
    // in a namespace root may not enter this folder
    await chown(folder, 12_345, 12_345)
    await chmod(folder, 0o700)
    const child = startChild('start')
    const { pid = 0 } = await child.report
    expect((await stat(join(dataDir, 'pg', 'data'))).uid).toBe(NOBODY)
    expect(await query(await joinEmbeddedServer(dataDir), 'select 1 as one')).toEqual([{ one: 1 }])
    child.process.kill('SIGKILL')
    await untilGone(pid)
    expect(await query(await start(), 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('a user cannot start the folder of another user', async (context) => {
    usePrepared()
    skipUnlessNobodyCanRun(context)
    await (await start()).stop()
    expect(await startChild('start', AS_NOBODY).report).toMatchObject({
      message: expect.stringMatching(/EACCES|belongs to the user/),
    })
  })
})

test('a full disk is reported as such', async (context) => {
  const mounted = spawnSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs none /mnt'])
  if (mounted.status !== 0) context.skip('only root can make a small disk')
  await mkdir(dirname(dataDir), { recursive: true })
  const behind = ['unshare', '-m', 'sh', '-c', `mount -t tmpfs -o size=8m none "$0" && exec "$@"`, folder]
  expect(await startChild('start', behind).report).toMatchObject({
    message: expect.stringContaining('No space left on device'),
  })
})
