import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Connection } from '../../../src/postgres/embedded/embedded-connection.ts'
import { makeTempFolder } from '../temp-folder.ts'
import { findFreePort } from './free-port.ts'
import { testedServer } from './tested-server.ts'

/** A PgBouncer in transaction mode in front of a server, with the server's users. */
export interface Pooler {
  readonly host: string
  readonly port: number
  /** Whether it supports prepared statements in transaction mode. */
  readonly keepsPrepared: boolean
  stop(): Promise<void>
}

/** The program of `npm run test:postgres -- --pgbouncer`, or that of the system. */
export function findPgBouncer(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  const candidates = [testedServer.pgbouncer ?? '', ...folders.map((folder) => join(folder, 'pgbouncer'))]
  return candidates.find((path) => existsSync(path))
}

/** The first version that knows prepared statements in transaction mode. */
const PREPARES_SINCE = 1.21

/**
 * Starts PgBouncer as a careful operator would, and each transaction may meet another server connection: settings that a session leaves
 * behind reach other clients.
 *
 * @param program - its path
 * @param server - a folder of a socket, or a host
 */
export async function startPgBouncer(
  program: string,
  server: Connection,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pooler> {
  const folder = await makeTempFolder('pgbouncer')
  const port = await findFreePort()
  const keepsPrepared = versionOf(program) >= PREPARES_SINCE
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: join(folder, 'users'),
    pool_mode: 'transaction',
    server_round_robin: '1',
    default_pool_size: '20',
    max_client_conn: '1000',
    ...(keepsPrepared && { max_prepared_statements: '200' }),
    ...settings,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`)
  await writeFile(join(folder, 'users'), `"${server.user}" "${server.password}"\n`)
  await writeFile(
    join(folder, 'ini'),
    `[databases]\n* = host=${server.host} port=${server.port}\n[pgbouncer]\n${lines.join('\n')}\n`,
  )
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...asOrdinaryUser(program), join(folder, 'ini')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await untilListening(child)
  return {
    host: '127.0.0.1',
    port,
    keepsPrepared,
    async stop() {
      const ended = once(child, 'exit')
      if (child.exitCode === null && child.kill('SIGKILL')) await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function versionOf(program: string): number {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return Number(/PgBouncer (\d+\.\d+)/.exec(stdout)?.[1] ?? 0)
}

/** It refuses to run as root; in a namespace of users it may still open the files of root. */
function asOrdinaryUser(program: string): string[] {
  if (process.geteuid?.() !== 0) return [program]
  return ['unshare', '-U', '--map-user=65534', '--map-group=65534', 'setpriv', '--pdeathsig', 'KILL', program]
}

async function untilListening(child: ChildProcess): Promise<void> {
  const log: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('error', reject)
  child.once('exit', (code) => reject(new Error(`PgBouncer ended with ${code}:\n${log.join('\n')}`)))
  if (child.stderr === null) throw new Error('PgBouncer has no log')
  createInterface(child.stderr).on('line', (line) => {
    log.push(line)
    if (line.includes('process up')) resolve()
  })
  await promise
}
