/** Starts the service, its attackers and its other client for bench:hostile. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { AttackerReport } from './hostile-attacks.ts'
import { paymentLines } from './hostile-payments.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CALL_EVERY_MS = 5
const NEWLINE = 10

/** A service with some payments and two API keys of one account: one for the attackers, one for the other client. */
export interface Service {
  readonly port: number
  readonly key: string
  /** A publishable key and four secret ones, separated by commas. */
  readonly attackerKeys: string
  /** How many lines the service has logged. */
  readonly logLines: () => number
  readonly process: ChildProcess
  readonly stop: () => Promise<void>
}

/**
 * @param attackerRate - calls a minute of the attackers' key; 0 for no limit. The other client's key has none
 * @param nodeOptions - options of Node for the process of the service
 */
export async function startService(attackerRate: string, nodeOptions: readonly string[] = []): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-hostile-'))
  const env = {
    PATH: process.env.PATH,
    DATA_DIR: join(folder, 'data'),
    PORT: '0',
    CHAINS_FILE: 'none',
    LOG_LEVEL: 'info',
  }
  const run = async (words: readonly string[], input = '') => {
    const child = spawn(process.execPath, ['src/main.ts', ...words], {
      cwd: ROOT,
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    child.stdin.end(input)
    const said = await textOf(child)
    if (child.exitCode !== 0) throw new Error(`waybill ${words.join(' ')} ended with ${child.exitCode}`)
    return said.trim()
  }
  const issue = (rate: string) => run(['keys', 'create', '--account', 'a', '--scopes', 'payments:read', '--rate', rate])
  const key = await issue('0')
  const secret = [attackerRate, attackerRate, attackerRate, attackerRate]
  const origins = ['--publishable', '--origins', 'https://shop.example']
  const attackerKeys = [await run(['keys', 'create', '--account', 'a', ...origins])]
  for (const rate of secret) attackerKeys.push(await issue(rate))
  await run(['import', 'payments', '-', '--account', 'a'], paymentLines())
  const served = spawn(process.execPath, ['--max-semi-space-size=8', ...nodeOptions, 'src/main.ts', 'serve'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let lines = 0
  served.stderr.on('data', (chunk: Buffer) => {
    for (const byte of chunk) if (byte === NEWLINE) lines += 1
  })
  return {
    port: await portOf(served),
    key,
    attackerKeys: attackerKeys.join(','),
    logLines: () => lines,
    process: served,
    async stop() {
      const ended = once(served, 'exit')
      served.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true })
    },
  }
}

/** A running attacker. */
export interface Attacker {
  readonly stop: () => Promise<AttackerReport>
}

/** Starts an attacker; resolves when the attack runs. */
export async function startAttacker(
  name: string,
  { port, keys, localAddress }: { readonly port: number; readonly keys: string; readonly localAddress: string },
): Promise<Attacker> {
  const child = spawn(process.execPath, ['bench/hostile/hostile-attacks.ts', name, String(port), keys, localAddress], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return {
    async stop() {
      const said = textOf(child)
      child.kill('SIGTERM')
      return JSON.parse(await said) as AttackerReport
    },
  }
}

/** Starts a process that reads and discards everything: the cost of an attack that is not handled at all. */
export async function startSink(): Promise<{ readonly port: number; readonly stop: () => void }> {
  const child = spawn(process.execPath, ['bench/hostile/hostile-sink.ts'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  return { port: Number(String(said)), stop: () => void child.kill() }
}

/** What the other client measured in a window of time. */
export interface Window {
  readonly p99Ms: number
  /** How many calls it made. */
  readonly calls: number
  /** CPU time of the service, in ms. */
  readonly cpuMs: number
  readonly peakMib: number
}

/** Makes calls at a fixed rate over its own connections, whether or not the last call was answered. */
export async function watch({ port, key, process: served }: Service, forMs: number): Promise<Window> {
  const agent = new Agent({ keepAlive: true })
  const calls: Promise<number>[] = []
  const startedMs = performance.now()
  const cpuBeforeMs = cpuMs(served)
  let peakMib = 0
  let n = 0
  for (let elapsedMs = 0; elapsedMs < forMs; elapsedMs = performance.now() - startedMs) {
    for (; n * CALL_EVERY_MS <= elapsedMs; n++) calls.push(call(port, key, agent))
    if (n % 40 === 0) peakMib = Math.max(peakMib, residentMib(served))
    await wait(CALL_EVERY_MS)
  }
  const sorted = (await Promise.all(calls)).toSorted((a, b) => a - b)
  const spentMs = cpuMs(served) - cpuBeforeMs
  agent.destroy()
  peakMib = Math.max(peakMib, residentMib(served))
  return {
    calls: sorted.length,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    cpuMs: spentMs,
    peakMib,
  }
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

/** @returns the CPU time of the service during an attack without other clients, in ms */
export async function watchAlone({ process: served }: Service, forMs: number): Promise<number> {
  const beforeMs = cpuMs(served)
  await wait(forMs)
  return cpuMs(served) - beforeMs
}

export function residentMib({ pid }: ChildProcess): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

/** A clock tick of /proc, in ms. */
const TICK_MS = 10

function cpuMs({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // After the name, which may contain any character: state is the third field, user and system time the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

async function textOf(child: ChildProcess): Promise<string> {
  let said = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await once(child, 'close')
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
