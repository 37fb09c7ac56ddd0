/**
 * Measures the running demo: memory of the service, its database and the nodes of its chains, and disk space of its folder. Starts to
 * count after five minutes, when caches are warm and the first requests have been paid.
 *
 *   npm run bench:soak-demo -- --minutes 60
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { report } from './report.ts'

const ROOT = resolve(import.meta.dirname, '..')
const MIB = 1024 * 1024
const WARM_UP_MINUTES = 5

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } })
const minutes = Number(values.minutes)
if (!(minutes > WARM_UP_MINUTES)) {
  console.error(`--minutes takes a number above ${WARM_UP_MINUTES}`)
  process.exit(2)
}

interface Sample {
  readonly serviceMiB: number
  readonly nodesMiB: number
  readonly databaseMiB: number
  readonly diskMiB: number
}

const folder = await mkdtemp(join(tmpdir(), 'waybill-soak-'))
const env = {
  ...process.env,
  DATA_DIR: join(folder, 'data'),
  PORT: '0',
  LOG_LEVEL: 'warn',
  DATABASE_URL: '',
  CHAINS_FILE: '',
}
const service = spawn(process.execPath, ['--max-semi-space-size=8', 'src/main.ts', 'serve'], {
  cwd: ROOT,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = once(service, 'exit')
await once(service.stdout, 'data')
service.stdout.resume()

try {
  await sleep(WARM_UP_MINUTES * 60_000)
  const first = await sample()
  let last = first
  for (let minute = WARM_UP_MINUTES + 1; minute <= minutes && service.exitCode === null; minute++) {
    await sleep(60_000)
    last = await sample()
    console.error(
      `minute ${minute}: ${Object.entries(last)
        .map(([name, value]) => `${name} ${value.toFixed(0)}`)
        .join(', ')}`,
    )
  }
  const hours = (minutes - WARM_UP_MINUTES) / 60
  const perHour = (name: keyof Sample) => (last[name] - first[name]) / hours
  await report('soak-demo', [
    { name: 'service.memory', value: last.serviceMiB, unit: 'MiB' },
    { name: 'service.memory.growth', value: perHour('serviceMiB'), unit: 'MiB/h' },
    { name: 'nodes.memory', value: last.nodesMiB, unit: 'MiB' },
    { name: 'nodes.memory.growth', value: perHour('nodesMiB'), unit: 'MiB/h' },
    { name: 'database.memory', value: last.databaseMiB, unit: 'MiB' },
    { name: 'database.memory.growth', value: perHour('databaseMiB'), unit: 'MiB/h' },
    { name: 'disk', value: last.diskMiB, unit: 'MiB' },
    { name: 'disk.growth', value: perHour('diskMiB'), unit: 'MiB/h' },
  ])
} finally {
  service.kill('SIGTERM')
  await ended
  await rm(folder, { recursive: true })
}

async function sample(): Promise<Sample> {
  const processes = await descendants(service.pid ?? 0)
  const of = (word: string) => processes.filter(({ command }) => command.includes(word))
  const sum = (list: readonly { bytes: number }[]) => list.reduce((total, { bytes }) => total + bytes, 0) / MIB
  return {
    serviceMiB: sum(processes.filter(({ pid }) => pid === service.pid)),
    nodesMiB: sum(of('anvil')),
    databaseMiB: sum(of('postgres')),
    diskMiB: (await sizeOf(folder)) / MIB,
  }
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly command: string
  /** Anonymous memory only: shared buffers would count once for each process of PostgreSQL, and program code is mapped from files. */
  readonly bytes: number
}

/** The process and its descendants, from /proc. */
async function descendants(root: number): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const all = (await Promise.all(pids.map((pid) => readProcess(pid).catch(() => undefined)))).filter(
    (each) => each !== undefined,
  )
  const found = new Set([root])
  for (let before = 0; before !== found.size; ) {
    before = found.size
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
  }
  return all.filter(({ pid }) => found.has(pid))
}

async function readProcess(pid: number): Promise<Process> {
  const [status, command] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8'),
    readFile(`/proc/${pid}/cmdline`, 'utf8'),
  ])
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  return { pid, parent: field('PPid'), command, bytes: field('RssAnon') * 1024 }
}

async function sizeOf(path: string): Promise<number> {
  const info = await stat(path).catch(() => undefined)
  if (info === undefined) return 0
  if (!info.isDirectory()) return info.blocks * 512
  const names = await readdir(path).catch(() => [])
  const sizes = await Promise.all(names.map((name) => sizeOf(join(path, name))))
  return sizes.reduce((total, size) => total + size, 0)
}
