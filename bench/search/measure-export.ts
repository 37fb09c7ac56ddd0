import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, realpathSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'

/** Speed of a large export, and the memory of the process that served it. */
export interface MeasuredExport {
  readonly rows: number
  readonly rowsPerSecond: number
  /** The peak of memory during the export, beyond the memory after a smaller export. */
  readonly growthMib: number
  /** The mean memory of the last tenth of the time, beyond that of the fifth: what the second half of the rows adds. */
  readonly driftMib: number
}

export interface ExportOptions {
  readonly connection: Connection
  /** Whose payments. */
  readonly accountName: string
  /** The filter that a million payments match. */
  readonly query: string
  /** A filter that far fewer match, to warm the process up. */
  readonly warmQuery: string
  readonly say: (text: string) => void
}

const ROOT = resolve(import.meta.dirname, '../..')
const CHECK_EVERY_MS = 100
const NEWLINE = 0x0a

/** Exports payments over HTTP from a service of its own, as fast as they come, and watches the memory of the service. */
export async function measureExport(options: ExportOptions): Promise<MeasuredExport> {
  const { connection, accountName, say } = options
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: urlOf(connection),
    CHAINS_FILE: 'none',
    PORT: '0',
    LOG_LEVEL: 'error',
  }
  const key = await createKey(env, accountName)
  const service = spawn(process.execPath, ['--max-semi-space-size=8', 'src/main.ts', 'serve'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(service, 'exit')
  try {
    const baseUrl = await baseUrlOf(service)
    const take = (query: string) => countLines(`${baseUrl}/v1/payments:export?${query}`, key)
    await take(options.warmQuery)
    const beforeMib = residentMib(service)
    const seenMib: number[] = []
    const sampling = setInterval(() => seenMib.push(residentMib(service)), CHECK_EVERY_MS)
    const startedMs = performance.now()
    const rows = await take(options.query).finally(() => clearInterval(sampling))
    const seconds = (performance.now() - startedMs) / 1_000
    const tenths = Array.from({ length: 10 }, (_, at) => mean(tenthOf(seenMib, at)))
    say(
      `export: ${rows} rows in ${seconds.toFixed(1)} s; MiB before: ${beforeMib.toFixed(0)}, in each tenth: ${tenths.map((mib) => mib.toFixed(0)).join(' ')}`,
    )
    return {
      rows,
      rowsPerSecond: rows / seconds,
      growthMib: Math.max(...seenMib) - beforeMib,
      driftMib: (tenths[9] ?? 0) - (tenths[4] ?? 0),
    }
  } finally {
    service.kill('SIGTERM')
    await ended
  }
}

function tenthOf(values: readonly number[], at: number): readonly number[] {
  return values.slice(Math.floor((values.length * at) / 10), Math.floor((values.length * (at + 1)) / 10))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Uncompressed: fetch would ask for gzip. */
async function countLines(url: string, key: string): Promise<number> {
  const [response] = (await once(get(url, { headers: { 'x-api-key': key } }), 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`the export was answered with ${response.statusCode}`)
  let lines = 0
  for await (const chunk of response) {
    for (const byte of chunk as Uint8Array) if (byte === NEWLINE) lines++
  }
  return lines
}

async function createKey(env: NodeJS.ProcessEnv, accountName: string): Promise<string> {
  const args = ['src/main.ts', 'keys', 'create', '--account', accountName, '--scopes', 'payments:read', '--rate', '0']
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the key was not created: exit ${code}`)
  return output.trim()
}

/** Where a service listens, once it does. */
export async function baseUrlOf({ stdout }: ChildProcess): Promise<string> {
  let output = ''
  for await (const chunk of stdout?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    output += chunk as string
    const [, url] = /Waybill on (http:\/\/127\.0\.0\.1:\d+)/.exec(output) ?? []
    if (url !== undefined) return url
  }
  throw new Error('the service ended before it listened')
}

function residentMib({ pid }: ChildProcess): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

/** The address of the database for another process. The host is a file descriptor of this process, so another process gets the path behind it. */
export function urlOf({ host, port, user, password, database }: Connection): string {
  return `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?host=${realpathSync(host)}`
}
