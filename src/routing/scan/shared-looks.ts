import { type ContractRead, createReadSet, type ReadSet } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainSources } from './chain-sources.ts'
import type { Ask } from './look-reader.ts'
import type { ChainState } from './wallet-state.ts'

/** Looks at one chain for all callers, in as few requests as possible. */
export type SharedLooks = ReturnType<typeof createSharedLooks>

/** The most in one request: gateways limit the calls of a batch and the gas of a call. */
const MAX_WALLETS = 16
const MAX_READS = 600

/** A look for one wallet, for all its callers. */
interface Look {
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
  readonly looks: readonly Look[]
  isOver: boolean
}

interface State {
  readonly source: ChainSources
  /** The newest look for each wallet that is queued or under way. */
  readonly current: Map<Address, Look>
  queue: Look[]
  isScheduled: boolean
}

/** Makes the looks at one chain. */
export function createSharedLooks(source: ChainSources) {
  const state: State = { source, current: new Map(), queue: [], isScheduled: false }
  return {
    /** Milliseconds until it is worth looking again, if a look has just failed. */
    againInMs: () => source.againInMs(),
    /**
     * Joins a look for the same wallet that is under way and reads as much; else goes together with all others of the same turn of the event
     * loop. A caller who leaves ends nothing that others wait for.
     *
     * @param timeoutMs - how long the caller waits at most; the shortest decides when a second URL is asked
     * @param signal - fires when the caller no longer waits; a request for which nobody waits is ended
     * @throws RpcError; the signal's reason when it fires
     */
    look(ask: Ask, timeoutMs: number, signal: AbortSignal): Promise<ChainState> {
      const look = joinOrQueue(state, ask)
      look.timeoutMs = Math.min(look.timeoutMs, timeoutMs)
      look.waiting += 1
      return waitFor(state, look, signal)
    },
  }
}

function joinOrQueue(state: State, { wallet, reads }: Ask): Look {
  const known = state.current.get(wallet)
  if (known !== undefined) {
    if (known.request === undefined) reads.forEach(known.reads.add)
    if (reads.every((read) => known.reads.placeOf(read) !== undefined)) return known
  }
  const look = createLook(wallet, reads)
  state.current.set(wallet, look)
  state.queue.push(look)
  schedule(state)
  return look
}

function createLook(wallet: Address, reads: readonly ContractRead[]): Look {
  const state = Promise.withResolvers<ChainState>()
  // A failure reaches every caller who waits; when all have left, it must not count as unhandled.
  state.promise.catch(() => {})
  const set = createReadSet()
  reads.forEach(set.add)
  return { wallet, reads: set, state, waiting: 0, timeoutMs: Number.POSITIVE_INFINITY, request: undefined }
}

/** Sends the queue at the end of this turn of the event loop, or when the source's pacing allows it. */
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
  for (const look of queue) if (look.waiting === 0) forget(state, look)
  for (const looks of groupBySize(queue.filter(({ waiting }) => waiting > 0))) void send(state, looks)
}

async function send(state: State, looks: readonly Look[]): Promise<void> {
  const controller = new AbortController()
  const request: Request = { controller, looks, isOver: false }
  for (const look of looks) look.request = request
  const asks = looks.map(({ wallet, reads }) => ({ wallet, reads: reads.list }))
  try {
    const timeoutMs = Math.min(...looks.map((look) => look.timeoutMs))
    const { states } = await state.source.read(asks, timeoutMs, controller.signal)
    for (const [i, look] of looks.entries()) settle(look, states[i])
  } catch (error) {
    for (const look of looks) look.state.reject(error)
  } finally {
    request.isOver = true
    for (const look of looks) forget(state, look)
  }
}

function settle({ state }: Look, outcome: ChainState | RpcError | undefined): void {
  if (outcome === undefined) state.reject(new RpcError('INCONSISTENT', 'an answer is missing'))
  else if (outcome instanceof RpcError) state.reject(outcome)
  else state.resolve(outcome)
}

/** Waits for a look, at most until the signal fires. */
function waitFor(state: State, look: Look, signal: AbortSignal): Promise<ChainState> {
  return new Promise((resolve, reject) => {
    let isWaiting = true
    const stopThen =
      <T>(then: (value: T) => void) =>
      (value: T) => {
        if (!isWaiting) return
        isWaiting = false
        signal.removeEventListener('abort', onAbort)
        leave(state, look)
        then(value)
      }
    const onAbort = stopThen(() => reject(signal.reason as Error))
    if (signal.aborted) return onAbort(undefined)
    signal.addEventListener('abort', onAbort)
    look.state.promise.then(stopThen(resolve), stopThen(reject))
  })
}

/** One caller less. The request ends when nobody waits for any of its looks. */
function leave(state: State, look: Look): void {
  look.waiting -= 1
  if (look.waiting > 0 || look.request === undefined) return
  // New callers must not join a look that ends.
  forget(state, look)
  const { looks, controller, isOver } = look.request
  if (!isOver && looks.every(({ waiting }) => waiting === 0)) controller.abort()
}

function forget({ current }: State, look: Look): void {
  if (current.get(look.wallet) === look) current.delete(look.wallet)
}

/** Groups looks into requests of bounded size. A single look goes whatever it reads. */
function groupBySize(looks: readonly Look[]): Look[][] {
  const groups: Look[][] = []
  let reads = 0
  for (const look of looks) {
    const last = groups.at(-1)
    reads += look.reads.list.length
    if (last !== undefined && last.length < MAX_WALLETS && reads <= MAX_READS) last.push(look)
    else {
      groups.push([look])
      reads = look.reads.list.length
    }
  }
  return groups
}
