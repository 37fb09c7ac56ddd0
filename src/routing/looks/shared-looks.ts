import { type ContractRead, createReadSet, type ReadSet } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { RpcFailure } from '../../nodes/json-rpc.ts'
import type { Ask, Reading } from './look-reader.ts'
import type { ChainState } from './wallet-state.ts'

/** Looks at one chain for all who ask, in as few requests as may be. */
export interface SharedLooks {
  /**
   * Joins a look for the same wallet that is under way where that reads as much, else goes with all others of the same turn of the event
   * loop. Nobody who leaves ends what others wait for.
   *
   * @param timeoutMs - how long the caller waits at most; whoever waits least decides when a second URL is asked
   * @param signal - fires when the caller no longer waits; what nobody waits for is ended
   * @throws RpcFailure; the signal's reason when it fires
   */
  look(ask: Ask, timeoutMs: number, signal: AbortSignal): Promise<ChainState>
  /** Milliseconds after which it is worth looking again, once a look has failed. */
  againInMs(): number
}

/** Where looks are had from. */
interface Source {
  readyInMs(): number
  againInMs(): number
  read(asks: readonly Ask[], timeoutMs: number, signal: AbortSignal): Promise<Reading>
}

/** What goes in one request; gateways limit both the calls of a batch and the gas of one. */
const MOST_WALLETS = 16
const MOST_READS = 600

/** One wallet's part of a request. */
interface Flight {
  readonly wallet: Address
  readonly reads: ReadSet
  readonly state: Promise<ChainState>
  settle(state: ChainState | RpcFailure): void
  reject(error: unknown): void
  waiting: number
  /** Of whoever waits least. */
  timeoutMs: number
  /** The request that it went with; undefined before it has gone. */
  request: Request | undefined
}

interface Request {
  readonly controller: AbortController
  readonly flights: readonly Flight[]
  isOver: boolean
}

/** Makes the looks at one chain. */
export function createSharedLooks(source: Source): SharedLooks {
  /** By wallet, the last one under way. */
  const underWay = new Map<Address, Flight>()
  let boarding: Flight[] = []
  let isScheduled = false

  function board({ wallet, reads }: Ask): Flight {
    const known = underWay.get(wallet)
    if (known !== undefined) {
      if (known.request === undefined) reads.forEach(known.reads.add)
      if (reads.every((read) => known.reads.placeOf(read) !== undefined)) return known
    }
    const flight = createFlight(wallet, reads)
    underWay.set(wallet, flight)
    boarding.push(flight)
    schedule()
    return flight
  }

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    const readyInMs = source.readyInMs()
    if (readyInMs === 0) setImmediate(depart)
    else setTimeout(depart, readyInMs)
  }

  function depart(): void {
    isScheduled = false
    const wanted = boarding.filter(({ waiting }) => waiting > 0)
    for (const flight of boarding) if (flight.waiting === 0) forget(flight)
    boarding = []
    for (const flights of divide(wanted)) void send(flights)
  }

  async function send(flights: readonly Flight[]): Promise<void> {
    const controller = new AbortController()
    const request: Request = { controller, flights, isOver: false }
    for (const flight of flights) flight.request = request
    const asks = flights.map(({ wallet, reads }) => ({ wallet, reads: reads.list }))
    try {
      const timeoutMs = Math.min(...flights.map((flight) => flight.timeoutMs))
      const { states } = await source.read(asks, timeoutMs, controller.signal)
      flights.forEach((flight, i) => flight.settle(states[i] ?? new RpcFailure('INCONSISTENT', 'an answer is missing')))
    } catch (error) {
      for (const flight of flights) flight.reject(error)
    } finally {
      request.isOver = true
      flights.forEach(forget)
    }
  }

  function forget(flight: Flight): void {
    if (underWay.get(flight.wallet) === flight) underWay.delete(flight.wallet)
  }

  function leave(flight: Flight): void {
    flight.waiting -= 1
    if (flight.waiting > 0 || flight.request === undefined) return
    // Whoever comes now must not join what ends.
    forget(flight)
    const { flights, controller, isOver } = flight.request
    if (!isOver && flights.every(({ waiting }) => waiting === 0)) controller.abort()
  }

  return {
    againInMs: () => source.againInMs(),
    look(ask, timeoutMs, signal) {
      const flight = board(ask)
      flight.timeoutMs = Math.min(flight.timeoutMs, timeoutMs)
      flight.waiting += 1
      return new Promise<ChainState>((resolve, reject) => {
        let isHere = true
        const go = () => {
          if (!isHere) return
          isHere = false
          signal.removeEventListener('abort', go)
          leave(flight)
          reject(signal.reason as Error)
        }
        const stay =
          <T>(then: (value: T) => void) =>
          (value: T) => {
            if (!isHere) return
            isHere = false
            signal.removeEventListener('abort', go)
            leave(flight)
            then(value)
          }
        if (signal.aborted) return go()
        signal.addEventListener('abort', go)
        flight.state.then(stay(resolve), stay(reject))
      })
    },
  }
}

function createFlight(wallet: Address, reads: readonly ContractRead[]): Flight {
  const { promise, resolve, reject } = Promise.withResolvers<ChainState>()
  // Whoever waits learns of it; there may be nobody any more.
  promise.catch(() => {})
  const set = createReadSet()
  reads.forEach(set.add)
  return {
    wallet,
    reads: set,
    state: promise,
    settle: (state) => (state instanceof RpcFailure ? reject(state) : resolve(state)),
    reject,
    waiting: 0,
    timeoutMs: Number.POSITIVE_INFINITY,
    request: undefined,
  }
}

/** In requests of bounded size; a single wallet goes whatever it reads. */
function divide(flights: readonly Flight[]): Flight[][] {
  const groups: Flight[][] = []
  let reads = 0
  for (const flight of flights) {
    const last = groups.at(-1)
    reads += flight.reads.list.length
    if (last !== undefined && last.length < MOST_WALLETS && reads <= MOST_READS) last.push(flight)
    else {
      groups.push([flight])
      reads = flight.reads.list.length
    }
  }
  return groups
}
