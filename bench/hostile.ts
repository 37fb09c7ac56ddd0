/**
 * What hostile clients do to somebody else: p99 of a search by another client, and the memory of the service, under each attack
 * and just before it. Service and attacker are processes of their own; loopback alone; each attack lasts a few seconds.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { attacks } from './hostile-attacks.ts'
import { type Figure, report } from './report.ts'

const WINDOW_MS = 3_000
const CALL_EVERY_MS = 8
const ROOT = resolve(import.meta.dirname, '..')

const folder = await mkdtemp(join(tmpdir(), 'waybill-hostile-'))
const env = {
  PATH: process.env.PATH,
  DATA_DIR: join(folder, 'data'),
  PORT: '0',
  CHAINS_FILE: 'none',
  LOG_LEVEL: 'error',
}
try {
  const key = (await run(['keys', 'create', '--account', 'a', '--scopes', 'payments:read', '--rate', '0'])).trim()
  const service = start(['src/main.ts', 'serve'])
  const port = await portOf(service)
  try {
    await report('hostile', await measureAll(service, port, key))
  } finally {
    await stop(service)
  }
} finally {
  await rm(folder, { recursive: true })
}

async function measureAll(service: ChildProcess, port: number, key: string): Promise<Figure[]> {
  await measureP99(port, key)
  const figures: Figure[] = []
  const rows: Record<string, object> = {}
  const startMib = residentMib(service)
  for (const name of Object.keys(attacks)) {
    const calmMs = await measureP99(port, key)
    const attacker = start(['bench/hostile-attacks.ts', name, String(port), key])
    await once(attacker.stdout as Readable, 'data')
    const [attackedMs, peakMib] = await Promise.all([measureP99(port, key), peakOf(service)])
    attacker.kill('SIGKILL')
    await once(attacker, 'exit')
    rows[name] = { 'p99 calm, ms': calmMs, 'p99 attacked, ms': attackedMs, 'memory, MiB': peakMib }
    figures.push(
      { name: `p99.${name}`, value: attackedMs / calmMs, unit: '× calm', target: { atMost: 2 } },
      { name: `memory.${name}`, value: peakMib - startMib, unit: 'MiB more', target: { atMost: 256 } },
    )
    await wait(1_000)
  }
  console.table(rows)
  return figures
}

/** Calls at a steady pace, whether the last call has been answered or not. @returns milliseconds */
async function measureP99(port: number, key: string): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  const calls: Promise<number>[] = []
  const endsAtMs = performance.now() + WINDOW_MS
  while (performance.now() < endsAtMs) {
    calls.push(call(port, key, agent))
    await wait(CALL_EVERY_MS)
  }
  const sorted = (await Promise.all(calls)).toSorted((a, b) => a - b)
  agent.destroy()
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}

async function call(port: number, key: string, agent: Agent): Promise<number> {
  const startedMs = performance.now()
  const request = get({ port, host: '127.0.0.1', path: '/payments?limit=5', agent, headers: { 'x-api-key': key } })
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`the other client was answered with ${response.statusCode}`)
  return performance.now() - startedMs
}

async function peakOf(service: ChildProcess): Promise<number> {
  let peak = 0
  for (let elapsedMs = 0; elapsedMs < WINDOW_MS; elapsedMs += 200) {
    peak = Math.max(peak, residentMib(service))
    await wait(200)
  }
  return peak
}

function residentMib({ pid }: ChildProcess): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

function start(words: readonly string[]): ChildProcess {
  return spawn(process.execPath, words, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] })
}

async function run(words: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['src/main.ts', ...words], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`waybill ${words.join(' ')} ended with ${code}`)
  return said
}

async function portOf({ stdout }: ChildProcess): Promise<number> {
  let said = ''
  for await (const chunk of stdout?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    said += chunk as string
    const [, port] = /Waybill on http:\/\/127\.0\.0\.1:(\d+)/.exec(said) ?? []
    if (port !== undefined) return Number(port)
  }
  throw new Error('the service ended before it listened')
}

async function stop(service: ChildProcess): Promise<void> {
  const ended = once(service, 'exit')
  service.kill('SIGTERM')
  await ended
}
