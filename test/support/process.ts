/** Runs the service or a command in a process of its own, as `npm start` does. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const ROOT = resolve(import.meta.dirname, '../..')

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface WaybillProcess {
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Resolves with the first match in the output, past or future. @throws Error when the process ends without a match */
  says(pattern: RegExp, stream?: 'stdout' | 'stderr'): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): void
  readonly ended: Promise<Ended>
}

/** What every process gets beside what a test gives it. The configuration of the tests sets the folder of compiled code. Demos import little, and stops do not wait. */
const inherited = () => {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return { PATH, NODE_COMPILE_CACHE, DEMO_DAYS: '2', SHUTDOWN_DELAY_SECONDS: '0' }
}

/**
 * @param environment - the only variables beside PATH and the folder of compiled code
 * @param input - standard input; empty by default
 * @param root - the folder of the code; this one by default
 */
export function startWaybill(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  input: Readable = Readable.from([]),
  root: string = ROOT,
): WaybillProcess {
  const child = spawn(`${root}/tools/with-node`, ['node', `${root}/src/main.ts`, ...words], {
    env: { ...inherited(), ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // The process may end before it has read everything.
  pipeline(input, child.stdin).catch(() => {})
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  }
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, ...said }))
  return {
    pid: child.pid ?? 0,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    says: (pattern, stream = 'stdout') =>
      untilSaid(child, () => pattern.exec(said[stream]), { pattern, ended, stream }),
    kill: (signal) => void child.kill(signal),
    ended,
  }
}

/**
 * Has every import of packages fail, as where npm left them out.
 *
 * @returns the NODE_OPTIONS of a process
 */
export function withoutPackages(names: RegExp): string {
  const hook = `import { registerHooks } from 'node:module'
registerHooks({ resolve(name, context, next) {
  if (!${String(names)}.test(name)) return next(name, context)
  throw Object.assign(new Error("Cannot find package '" + name + "' imported from it"), { code: 'ERR_MODULE_NOT_FOUND' })
} })`
  return `--import data:text/javascript,${encodeURIComponent(hook)}`
}

/** Runs a TypeScript program of this project to its end. @param path - from the project's root */
export async function runProgram(path: string, words: readonly string[]): Promise<Ended> {
  const child = spawn(`${ROOT}/tools/with-node`, ['node', `${ROOT}/${path}`, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  }
  const [code, signal] = await once(child, 'close')
  return { code, signal, ...said }
}

/** Runs a command to its end. */
export function runWaybill(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Ended> {
  return startWaybill(words, environment).ended
}

function untilSaid(
  child: ChildProcess,
  match: () => RegExpExecArray | null,
  { pattern, ended, stream }: { pattern: RegExp; ended: Promise<Ended>; stream: 'stdout' | 'stderr' },
): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const check = () => {
      const found = match()
      if (found === null) return
      child[stream]?.off('data', check)
      resolve(found)
    }
    child[stream]?.on('data', check)
    check()
    void ended.then(({ code, signal, stdout, stderr }) => {
      reject(new Error(`ended with ${signal ?? code} without output that matches ${pattern}:\n${stdout}\n${stderr}`))
    })
  })
}

export interface Descendant {
  readonly pid: number
  /** The kernel's name of the process, cut after 15 characters. */
  readonly name: string
}

/** The children of a process, their children, and so on. */
export function descendantsOf(pid: number): Descendant[] {
  const children = Map.groupBy(readProcesses(), (each) => each.parent)
  const found: Descendant[] = []
  const queue = [pid]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const child of children.get(next) ?? []) {
      found.push({ pid: child.pid, name: child.name })
      queue.push(child.pid)
    }
  }
  return found
}

/** Whether a process runs; a zombie does not. */
export function isAlive({ pid, name }: Descendant): boolean {
  const now = readProcess(pid)
  return now !== undefined && now.name === name && now.state !== 'Z'
}

function readProcesses() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
}

function readProcess(pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [, name = '', state = '', parent = ''] = /\((.*)\) (\S) (\d+)/s.exec(stat) ?? []
    return { pid, name, state, parent: Number(parent) }
  } catch {
    return undefined
  }
}
