/**
 * Runs one anvil process, a real Ethereum node for development: a private chain of the demo or of a test.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { NotInstalledError } from '../../src/errors/not-installed-error.ts'
import { createRpc } from './rpc.ts'

/** Ends the node with this process where there is no `setpriv`. */
const KEEPER = join(import.meta.dirname, '../../src/postgres/embedded/keep-child.ts')

/** Large, because automatic mining strands transactions whose gas limits do not fit into one block. */
const BLOCK_GAS_LIMIT = 2_000_000_000
const KEPT_STATES = 32
const START_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 5_000
const HANDLER_CHECK_MS = 5
const LOCK_HELD_EXIT_CODE = 75
const STDERR_TAIL_CHARS = 2_000

export interface AnvilOptions {
  chainId: number
  /** The mnemonic from which the node derives its unlocked accounts. */
  mnemonic: string
  accounts: number
  /** false: only `evm_mine` mines. */
  automine: boolean
  /** A loopback address; 127.0.0.1 by default. */
  host?: string
  /** 0: a free port. */
  port?: number
  /**
   * Time of the genesis block. A continued chain needs the same value again: the node creates a genesis block before it loads a state,
   * and with another one it would have both and answer with either. It also sets the node's clock back, so that the next block must be
   * given its time.
   */
  genesisTimeSec?: number
  /** The system to start it for, for tests; this one by default. */
  platform?: NodeJS.Platform
  /** How many old states stay in memory; 32 by default. */
  keptStates?: number
  /** A state that `anvil_dumpState` or an earlier process wrote, which the chain continues. */
  loadFile?: string
  state?: {
    /** Written at each interval and when the process ends by SIGTERM; not atomically. */
    dumpFile: string
    dumpIntervalSec: number
    /** Locked while the process lives, so that two processes never write one state. */
    lockFile: string
  }
}

export interface AnvilExit {
  code: number | null
  signal: NodeJS.Signals | null
  /** Whether `stop` ended it. */
  expected: boolean
  stderr: string
}

export class AnvilStartError extends Error {
  /** Whether the state to continue cannot be parsed, so that only a new chain can start. */
  readonly stateUnreadable: boolean

  constructor(message: string, { stateUnreadable = false } = {}) {
    super(message)
    this.name = 'AnvilStartError'
    this.stateUnreadable = stateUnreadable
  }
}

export type Anvil = Awaited<ReturnType<typeof startAnvil>>

/**
 * Starts anvil on loopback and resolves when it accepts calls. When this process dies, even by SIGKILL, anvil writes its state and ends.
 *
 * @throws AnvilStartError that names the platform without a binary, the port in use, the unreadable state, or the state that another
 *   process has locked
 */
export async function startAnvil(options: AnvilOptions) {
  const child = spawnAnvil(options)
  const output = { stdout: '', stderr: '' }
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    output.stderr = (output.stderr + chunk).slice(-STDERR_TAIL_CHARS)
  })

  let stopping = false
  const exited = new Promise<AnvilExit>((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, expected: false, stderr: error.message }))
    child.once('close', (code, signal) => resolve({ code, signal, expected: stopping, stderr: output.stderr.trim() }))
  })
  const rpcUrl = await waitForListening(child, exited, options)
  return {
    rpcUrl,
    rpc: createRpc(rpcUrl),
    pid: child.pid as number,
    /** Resolves when the process has ended, for any reason; never rejects. */
    exited,
    /** Makes the process write its state and end; resolves when it has ended. */
    async stop(): Promise<void> {
      stopping = true
      await endProcess(child, { writesState: options.state !== undefined })
      await exited
    },
  }
}

function spawnAnvil(options: AnvilOptions): ChildProcess {
  const { platform = process.platform } = options
  if (platform !== 'linux') {
    const kept = [KEEPER, 'SIGTERM', options.state?.lockFile ?? '', '0', anvilBinary(), ...anvilArguments(options)]
    return spawn(process.execPath, kept, { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  }
  const args = ['--pdeathsig', 'TERM', '--', anvilBinary(), ...anvilArguments(options)]
  const locked = options.state && ['-n', '-F', '-E', String(LOCK_HELD_EXIT_CODE), options.state.lockFile, 'setpriv']
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe']
  // In a session of its own, Ctrl-C in a terminal does not end the node before its users have stopped.
  const asChild = { stdio, detached: true }
  return locked ? spawn('flock', [...locked, ...args], asChild) : spawn('setpriv', args, asChild)
}

/**
 * The package with anvil for a machine; npm installs the one that fits.
 *
 * @throws NotInstalledError where there is none
 */
export function anvilPackage(platform: string = process.platform, arch: string = process.arch): string {
  const cpu = new Map([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ]).get(arch)
  if (cpu !== undefined && (platform === 'linux' || platform === 'darwin'))
    return `@foundry-rs/anvil-${platform}-${cpu}`
  throw notInstalled('which is published for Linux and macOS on x64 and arm64')
}

function notInstalled(why: string): NotInstalledError {
  return new NotInstalledError(
    `there is no chain for the demo on ${process.platform}-${process.arch}: its node comes with an optional package, ${why}. ` +
      'Set DATABASE_URL and CHAINS_FILE to use chains of your own.',
  )
}

function anvilBinary(): string {
  const name = anvilPackage()
  try {
    const binary = join(createRequire(import.meta.url).resolve(`${name}/package.json`), '../bin/anvil')
    if (existsSync(binary)) return binary
  } catch {
    // The error below says so.
  }
  throw notInstalled(`${name}, which is not installed: run npm ci without --omit=optional`)
}

function anvilArguments(options: AnvilOptions): string[] {
  const args = ['--no-cors', '--host', options.host ?? '127.0.0.1', '--port', String(options.port ?? 0)]
  args.push('--chain-id', String(options.chainId), '--gas-limit', String(BLOCK_GAS_LIMIT))
  // Without a number no old state stays; without the flag each is written to disk.
  args.push('--slots-in-an-epoch', '1', '--prune-history', String(options.keptStates ?? KEPT_STATES))
  args.push('--mnemonic', options.mnemonic, '--accounts', String(options.accounts))
  if (!options.automine) args.push('--no-mining')
  if (options.genesisTimeSec !== undefined) args.push('--timestamp', String(options.genesisTimeSec))
  if (options.state) {
    args.push('--dump-state', options.state.dumpFile, '--state-interval', String(options.state.dumpIntervalSec))
  }
  if (options.loadFile) args.push('--load-state', options.loadFile)
  return args
}

async function waitForListening(
  child: ChildProcess,
  exited: Promise<AnvilExit>,
  options: AnvilOptions,
): Promise<string> {
  const listening = new Promise<string>((resolve) => {
    let seen = ''
    const read = (chunk: string): void => {
      seen += chunk
      const address = /Listening on (\S+)/.exec(seen)?.[1]
      if (address === undefined) return
      child.stdout?.off('data', read).resume()
      resolve(`http://${address}`)
    }
    child.stdout?.setEncoding('utf8').on('data', read)
  })
  const ended = exited.then((exit) => Promise.reject(explainExit(exit, options)))
  const url = await Promise.race([listening, ended, wait(START_TIMEOUT_MS, undefined, { ref: false })])
  if (url !== undefined) return url
  child.kill('SIGKILL')
  throw new AnvilStartError(`chain ${options.chainId} did not listen within ${START_TIMEOUT_MS} ms`)
}

function explainExit(exit: AnvilExit, options: AnvilOptions): AnvilStartError {
  const chain = `chain ${options.chainId} did not start`
  if (exit.code === LOCK_HELD_EXIT_CODE) {
    return new AnvilStartError(`${chain}: another process holds ${options.state?.lockFile}. Stop it first.`)
  }
  if (/ENOENT/.test(exit.stderr)) {
    return new AnvilStartError(`${chain}: setpriv and flock are needed (package util-linux): ${exit.stderr}`)
  }
  if (/address already in use/i.test(exit.stderr)) {
    return new AnvilStartError(`${chain}: port ${options.port} is in use. Free it, or choose 0 for any free port.`)
  }
  if (options.loadFile && /load-state|parse json|deserialize/i.test(exit.stderr)) {
    const message = `${chain}: its state in ${options.loadFile} cannot be read: ${exit.stderr}`
    return new AnvilStartError(message, { stateUnreadable: true })
  }
  return new AnvilStartError(`${chain}: anvil ended with ${exit.signal ?? exit.code}: ${exit.stderr}`)
}

async function endProcess(child: ChildProcess, { writesState }: { writesState: boolean }): Promise<void> {
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  if (hasEnded() || child.pid === undefined) return
  const closed = once(child, 'close')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  // The node prints its address shortly before it handles SIGTERM; a SIGTERM in between would end it without writing its state.
  if (writesState && process.platform === 'linux') {
    while (!hasEnded() && !catchesSigterm(child.pid)) await wait(HANDLER_CHECK_MS)
  }
  child.kill('SIGTERM')
  await closed
  clearTimeout(timer)
}

function catchesSigterm(pid: number): boolean {
  try {
    const caught = /^SigCgt:\s*(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
    return ((BigInt(`0x${caught}`) >> BigInt(constants.signals.SIGTERM - 1)) & 1n) === 1n
  } catch {
    return false
  }
}
