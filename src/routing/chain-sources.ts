import type { ChainConfig } from '../domain/chains-file.ts'
import type { Ask, Reading } from './chain-reader.ts'
import { ANOTHER_ANSWERED, type ChainSource } from './chain-source.ts'
import { RpcFailure } from './json-rpc.ts'

/** All URLs of a chain. */
export interface ChainSources {
  /** Milliseconds until any URL's budget allows a request; 0 when one does now. */
  readyInMs(): number
  /**
   * Asks the URLs in order of preference until one gives a good answer: the next one when one fails, or as well when one takes long.
   *
   * @param signal - fires when nobody waits any more
   * @throws the first failure when all fail, at once while all are left alone; the signal's reason when it fires
   */
  read(asks: readonly Ask[], signal: AbortSignal): Promise<Reading>
}

export interface ChainSourcesOptions {
  readonly chain: ChainConfig
  /** In order of preference; at least one. */
  readonly sources: readonly ChainSource[]
  /** For all that is asked for one answer. */
  readonly timeoutMs: number
  /** After so long without an answer the next URL is asked as well. */
  readonly softMs: number
  readonly clock: () => number
}

/** A head is behind when another URL has told of one that is newer by this and by as many usual blocks. */
const BEHIND_SECONDS = 60
const BEHIND_BLOCKS = 10

/** Heads further in the future than this prove nothing. */
const FUTURE_HEAD_SECONDS = 60

/** A head that seems old and is the other URL's too is taken for what it is for so long. */
const CONFIRMED_MS = 30_000

/** Makes the sources of a chain. */
export function createChainSources({ chain, sources, timeoutMs, softMs, clock }: ChainSourcesOptions): ChainSources {
  const behindSeconds = Math.max(BEHIND_SECONDS, BEHIND_BLOCKS * chain.blockTimeSeconds)
  let confirmedUntilMs = 0

  /** Whose turn it is, and with how much time. Those that were left alone are tried beside; alone only where there is no other. */
  function choose(asks: readonly Ask[]): { readonly queue: readonly ChainSource[]; readonly timeoutMs: number } {
    const admitted = sources.map((source) => ({ source, admission: source.admit() }))
    const open = admitted.filter(({ admission }) => admission === 'YES').map(({ source }) => source)
    const probes = admitted.filter(({ admission }) => admission === 'PROBE').map(({ source }) => source)
    if (open.length === 0) return { queue: probes, timeoutMs: softMs }
    for (const probe of probes) {
      probe
        .read(asks.slice(0, 1), timeoutMs, new AbortController().signal, (reading) => checkHead(probe, reading))
        .catch(() => {
          // Its breaker knows.
        })
    }
    const ready = open.filter((source) => source.readyInMs() === 0)
    return { queue: ready.length > 0 ? ready : open, timeoutMs }
  }

  /** @throws RpcFailure when another URL has told of a much newer head */
  function checkHead(source: ChainSource, { timestampSec }: Reading): void {
    const horizon = clock() / 1_000 + FUTURE_HEAD_SECONDS
    const heads = sources.filter((each) => each !== source).map((each) => each.head())
    const behind = Math.max(0, ...heads.filter((head) => head <= horizon)) - timestampSec
    if (behind <= behindSeconds) return
    const detail = `its newest block is ${behind} seconds older than that of another node`
    throw new RpcFailure('INCONSISTENT', detail, { isLie: true })
  }

  function looksOld({ timestampSec }: Reading): boolean {
    const nowMs = clock()
    return nowMs > confirmedUntilMs && nowMs / 1_000 - timestampSec > behindSeconds
  }

  return {
    readyInMs: () => Math.min(...sources.map((source) => source.readyInMs())),
    async read(asks, signal) {
      const { queue, timeoutMs: limitMs } = choose(asks)
      if (queue.length === 0) throw leftAlone(sources)
      return raceInTurn(queue, {
        softMs,
        signal,
        start: (source, elapsedMs, raceSignal) =>
          source.read(asks, Math.max(1, limitMs - elapsedMs), raceSignal, (reading) => checkHead(source, reading)),
        isDoubtful: looksOld,
        onConfirmed: () => {
          confirmedUntilMs = clock() + CONFIRMED_MS
        },
      })
    },
  }
}

function leftAlone(sources: readonly ChainSource[]): RpcFailure {
  const failure = sources.map((source) => source.lastFailure()).find((each) => each !== undefined)
  const detail = failure?.message ?? 'it failed'
  return new RpcFailure(failure?.kind ?? 'UNREACHABLE', `${detail}, and it is left alone for a moment`)
}

interface Race {
  readonly softMs: number
  readonly signal: AbortSignal
  readonly start: (source: ChainSource, elapsedMs: number, signal: AbortSignal) => Promise<Reading>
  /** Whether a second opinion is wanted on an answer. */
  readonly isDoubtful: (reading: Reading) => boolean
  readonly onConfirmed: () => void
}

/**
 * Starts with the first, goes on to the next when one fails, takes long or is doubtful, and takes the first good answer. A doubtful one is
 * taken once the next has failed or has the same to say.
 */
function raceInTurn(queue: readonly ChainSource[], race: Race): Promise<Reading> {
  const controller = new AbortController()
  const startedAt = performance.now()
  let next = 0
  let running = 0
  let timer: NodeJS.Timeout | undefined
  let doubtful: Reading | undefined
  let firstError: Error | undefined
  const onAbort = () => controller.abort(race.signal.reason)

  return new Promise<Reading>((resolve, reject) => {
    const launch = () => {
      clearTimeout(timer)
      const source = queue[next]
      if (source === undefined || controller.signal.aborted) {
        if (running > 0) return
        if (doubtful === undefined) reject(firstError ?? new RpcFailure('UNREACHABLE', 'there is no URL to ask'))
        else resolve(doubtful)
        return
      }
      next += 1
      running += 1
      race.start(source, Math.round(performance.now() - startedAt), controller.signal).then(take, failed)
      if (next < queue.length) timer = setTimeout(launch, race.softMs)
    }
    const take = (reading: Reading) => {
      running -= 1
      if (doubtful !== undefined) race.onConfirmed()
      else if (race.isDoubtful(reading) && (running > 0 || next < queue.length)) {
        doubtful = reading
        if (running === 0) launch()
        return
      }
      resolve(reading)
    }
    const failed = (error: Error) => {
      running -= 1
      firstError ??= error
      if (error instanceof RpcFailure || controller.signal.aborted) launch()
      else reject(error)
    }
    race.signal.addEventListener('abort', onAbort, { once: true })
    if (race.signal.aborted) onAbort()
    launch()
  }).finally(() => {
    clearTimeout(timer)
    race.signal.removeEventListener('abort', onAbort)
    if (running > 0) controller.abort(ANOTHER_ANSWERED)
  })
}
