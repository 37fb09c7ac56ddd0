import { type ContractRead, createReadSet, type ReadSet } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { untilAborted } from '../../domain/within.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainSources } from './chain-sources.ts'
import type { Ask, Reading } from './scan-reader.ts'
import type { ChainState } from './wallet-state.ts'

/** Scans one chain for all callers, in as few requests as possible. */
export type SharedScans = ReturnType<typeof createSharedScans>

/** The most in one request: gateways limit the calls of a batch and the gas of a call. */
const MAX_WALLETS = 16
const MAX_READS = 600

/** A scan for one wallet, for all its callers. */
interface QueuedScan {
  readonly wallet: Address
  readonly reads: ReadSet
  readonly state: PromiseWithResolvers<ChainState>
  /** Callers who wait. */
  waiting: number
  /** The shortest of the callers'. */
  timeoutMs: number
  /** The request that it is part of; undefined while it is queued. */
  request: Request | undefined
}

interface Request {
  readonly controller: AbortController
  readonly scans: readonly QueuedScan[]
}

interface State {
  readonly source: ChainSources
  /** The newest scan for each wallet that is queued or under way. */
  readonly current: Map<Address, QueuedScan>
  queue: QueuedScan[]
  isScheduled: boolean
}

/** Makes the scans at one chain. */
export function createSharedScans(source: ChainSources) {
  const state: State = { source, current: new Map(), queue: [], isScheduled: false }
  return {
    /**
     * Joins a scan for the same wallet that is under way and reads as much; else goes together with all others of the same pass of the event
     * loop. A caller who leaves ends nothing that others wait for.
     *
     * @param timeoutMs - how long the caller waits at most; the shortest decides when a second URL is asked
     * @param signal - fires when the caller no longer waits; a request for which nobody waits is ended
     * @throws RpcError; the signal's reason when it fires
     */
    scan(ask: Ask, timeoutMs: number, signal: AbortSignal): Promise<ChainState> {
      const scan = joinOrQueue(state, ask)
      scan.timeoutMs = Math.min(scan.timeoutMs, timeoutMs)
      scan.waiting += 1
      return untilAborted(scan.state.promise, signal).finally(() => leave(state, scan))
    },
  }
}

function joinOrQueue(state: State, { wallet, reads }: Ask): QueuedScan {
  const known = state.current.get(wallet)
  if (known !== undefined) {
    if (known.request === undefined) reads.forEach(known.reads.add)
    if (reads.every((read) => known.reads.placeOf(read) !== undefined)) return known
  }
  const scan = createScan(wallet, reads)
  state.current.set(wallet, scan)
  state.queue.push(scan)
  schedule(state)
  return scan
}

function createScan(wallet: Address, reads: readonly ContractRead[]): QueuedScan {
  const state = Promise.withResolvers<ChainState>()
  // A failure reaches every caller who waits; when all have left, it must not count as unhandled.
  state.promise.catch(() => {})
  const set = createReadSet()
  reads.forEach(set.add)
  return { wallet, reads: set, state, waiting: 0, timeoutMs: Number.POSITIVE_INFINITY, request: undefined }
}

/** Sends the queue at the end of this pass of the event loop, or when the source's pacing allows it. */
function schedule(state: State): void {
  if (state.isScheduled) return
  state.isScheduled = true
  const readyInMs = state.source.readyInMs()
  if (readyInMs === 0) setImmediate(sendQueue, state)
  else setTimeout(sendQueue, readyInMs, state)
}

function sendQueue(state: State): void {
  const { queue } = state
  state.isScheduled = false
  state.queue = []
  for (const scan of queue) if (scan.waiting === 0) forget(state, scan)
  for (const scans of groupBySize(queue.filter(({ waiting }) => waiting > 0))) void send(state, scans)
}

async function send(state: State, scans: readonly QueuedScan[]): Promise<void> {
  const controller = new AbortController()
  const request: Request = { controller, scans }
  for (const scan of scans) scan.request = request
  const asks = scans.map(({ wallet, reads }) => ({ wallet, reads: reads.list }))
  try {
    const timeoutMs = Math.min(...scans.map((scan) => scan.timeoutMs))
    const { states } = await state.source.read(asks, timeoutMs, controller.signal)
    for (const [i, scan] of scans.entries()) {
      const outcome = states[i] as Reading['states'][number]
      if (outcome instanceof RpcError) scan.state.reject(outcome)
      else scan.state.resolve(outcome)
    }
  } catch (error) {
    for (const scan of scans) scan.state.reject(error)
  } finally {
    for (const scan of scans) forget(state, scan)
  }
}

/** Why a request ends early. One error for all, because making one takes longer than most of a call's work. */
const LEFT = new Error('nobody waits any more')

/** One caller less. The request ends when nobody waits for any of its scans. */
function leave(state: State, scan: QueuedScan): void {
  scan.waiting -= 1
  if (scan.waiting > 0 || scan.request === undefined) return
  // New callers must not join a scan that ends.
  forget(state, scan)
  const { scans, controller } = scan.request
  if (scans.every(({ waiting }) => waiting === 0)) controller.abort(LEFT)
}

function forget({ current }: State, scan: QueuedScan): void {
  if (current.get(scan.wallet) === scan) current.delete(scan.wallet)
}

/** Groups scans into requests of bounded size. A single scan goes whatever it reads. */
function groupBySize(scans: readonly QueuedScan[]): QueuedScan[][] {
  const groups: QueuedScan[][] = []
  let reads = 0
  for (const scan of scans) {
    const last = groups.at(-1)
    reads += scan.reads.list.length
    if (last !== undefined && last.length < MAX_WALLETS && reads <= MAX_READS) last.push(scan)
    else {
      groups.push([scan])
      reads = scan.reads.list.length
    }
  }
  return groups
}
