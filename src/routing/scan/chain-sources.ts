import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Admission } from '../../nodes/breaker.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type GasAnswer, type GasQuestion, isComplete } from '../gas/steps.ts'
import { ANOTHER_ANSWERED, type ChainSource, NOT_NEEDED } from './chain-source.ts'
import type { Ask, Reading } from './scan-reader.ts'

/** All URLs of a chain. */
export type ChainSources = ReturnType<typeof createChainSources>

interface ChainSourcesOptions {
  readonly chain: ChainConfig
  /** In order of preference; at least one. */
  readonly sources: readonly ChainSource[]
  /** For everything that one answer takes. */
  readonly timeoutMs: number
  /** A URL without an answer for this long is slow. */
  readonly softMs: number
  readonly clock: () => number
}

/** A head is behind when another URL has reported one that is newer by more than this, and by more than this many usual blocks. */
const BEHIND_SECONDS = 60
const BEHIND_BLOCKS = 10

/** A head further in the future than this is a wrong clock, and no proof that another is behind. */
const FUTURE_HEAD_SECONDS = 60

/** Once a second URL has confirmed an old head, old heads need no confirmation for this long. */
const CONFIRMED_MS = 30_000

interface State extends ChainSourcesOptions {
  readonly behindSeconds: number
  confirmedUntilMs: number
}

/** Makes the sources of a chain. */
export function createChainSources(options: ChainSourcesOptions) {
  const { chain, sources, timeoutMs } = options
  const behindSeconds = Math.max(BEHIND_SECONDS, BEHIND_BLOCKS * chain.blockTimeSeconds)
  const state: State = { ...options, behindSeconds, confirmedUntilMs: 0 }
  return {
    /** Milliseconds until the pacing of any URL allows a request; 0 when one does now. */
    readyInMs: () => Math.min(...sources.map((source) => source.readyInMs())),
    /** Milliseconds until any URL may be asked again, if all have just failed. */
    againInMs: () => Math.min(...sources.map((source) => source.againInMs())),
    /**
     * Asks the URLs in order of preference until one gives a good answer. The next is asked when one fails, and in parallel when one is slow.
     *
     * @param waitMs - how long the caller waits
     * @param signal - fires when nobody waits any more
     * @throws the first failure when all fail, at once while all are left alone; the signal's reason when it fires
     */
    read: (asks: readonly Ask[], waitMs: number, signal: AbortSignal) => read(state, asks, waitMs, signal),
    /**
     * Measures the gas of transactions through the URL that does it best; through the next where that leaves any out.
     *
     * @returns undefined where nothing could be measured in time
     * @throws the signal's reason when it fires
     */
    measure: (question: GasQuestion, waitMs: number, signal: AbortSignal) => measure(sources, question, waitMs, signal),
    /** Finds out how each URL measures gas, one after the other. Never rejects but by the signal. */
    async learn(signal: AbortSignal): Promise<void> {
      for (const source of sources) await source.learn(timeoutMs, signal)
    },
  }
}

async function read(state: State, asks: readonly Ask[], waitMs: number, signal: AbortSignal): Promise<Reading> {
  const { sources, softMs, timeoutMs, clock } = state
  const { queue, limitMs } = choose(state, asks)
  if (queue.length === 0) throw leftAlone(sources)
  const asked = new Set<ChainSource>()
  try {
    return await raceInOrder(queue, {
      hedgeMs: Math.min(softMs, Math.ceil((softMs * waitMs) / timeoutMs)),
      signal,
      start({ source, admission }, elapsedMs, raceSignal) {
        asked.add(source)
        const check = (reading: Reading) => checkHead(state, source, reading)
        return source.read(asks, { admission, timeoutMs: Math.max(1, limitMs - elapsedMs), signal: raceSignal, check })
      },
      isDoubtful: (reading) => isOld(state, reading),
      onConfirmed: () => {
        state.confirmedUntilMs = clock() + CONFIRMED_MS
      },
    })
  } finally {
    for (const { source, admission } of queue) if (!asked.has(source)) source.release(admission)
  }
}

/** A URL that may be asked. */
interface Candidate {
  readonly source: ChainSource
  readonly admission: Admission
}

/** The URLs to ask, in order, and the time for all of them. URLs to be probed are asked beside those that work, or one after the other where none works. */
function choose(state: State, asks: readonly Ask[]): { queue: readonly Candidate[]; limitMs: number } {
  const { sources, timeoutMs, softMs } = state
  const admitted = sources.map((source): Candidate => ({ source, admission: source.admit() }))
  const working = admitted.filter(({ admission }) => admission === 'YES')
  const probes = admitted.filter(({ admission }) => admission === 'PROBE')
  if (working.length === 0) return { queue: probes, limitMs: softMs }
  for (const { source, admission } of probes) {
    const { signal } = new AbortController()
    const check = (reading: Reading) => checkHead(state, source, reading)
    source.read(asks.slice(0, 1), { admission, timeoutMs, signal, check }).catch(() => {
      // Its breaker has counted the failure.
    })
  }
  const ready = working.filter(({ source }) => source.readyInMs() === 0)
  return { queue: ready.length > 0 ? ready : working, limitMs: timeoutMs }
}

/** @throws RpcError BEHIND when another URL has reported a much newer head */
function checkHead({ sources, clock, behindSeconds }: State, source: ChainSource, { timestampSec }: Reading): void {
  const horizonSec = clock() / 1_000 + FUTURE_HEAD_SECONDS
  const heads = sources.filter((each) => each !== source).map((each) => each.headSec())
  const behind = Math.max(0, ...heads.filter((headSec) => headSec <= horizonSec)) - timestampSec
  if (behind <= behindSeconds) return
  throw new RpcError('BEHIND', `its newest block is ${behind} seconds older than that of another node`)
}

/** Whether a second URL is to confirm that the head is as old as this one says. */
function isOld({ clock, confirmedUntilMs, behindSeconds }: State, { timestampSec }: Reading): boolean {
  const nowMs = clock()
  return nowMs > confirmedUntilMs && nowMs / 1_000 - timestampSec > behindSeconds
}

async function measure(
  sources: readonly ChainSource[],
  question: GasQuestion,
  waitMs: number,
  signal: AbortSignal,
): Promise<GasAnswer | undefined> {
  const startedAt = performance.now()
  const queue = sources.filter((source) => !source.isLeftAlone()).toSorted((a, b) => a.gasRank() - b.gasRank())
  let best: GasAnswer | undefined
  for (const [place, source] of queue.entries()) {
    const leftMs = Math.floor(waitMs - (performance.now() - startedAt))
    if (leftMs < 1) break
    // A node that does not answer must leave time for the others.
    const limitMs = place < queue.length - 1 ? Math.ceil(leftMs / 2) : leftMs
    const answer = await source.measure(question, limitMs, signal)
    if (answer !== undefined && isComplete(answer)) return answer
    best ??= answer
  }
  return best
}

function leftAlone(sources: readonly ChainSource[]): RpcError {
  const failure = sources.map((source) => source.lastFailure()).find((each) => each !== undefined)
  const detail = `${failure?.detail ?? 'it failed'}, and it is left alone for a moment`
  return new RpcError(failure?.kind ?? 'UNREACHABLE', detail, { refusal: failure?.refusal })
}

interface Race {
  /** A URL without an answer for this long gets the next one beside it. */
  readonly hedgeMs: number
  readonly signal: AbortSignal
  readonly start: (candidate: Candidate, elapsedMs: number, signal: AbortSignal) => Promise<Reading>
  /** Whether a second URL is to confirm a reading. */
  readonly isDoubtful: (reading: Reading) => boolean
  readonly onConfirmed: () => void
}

/**
 * Starts with the first URL, goes on to the next when one fails, is slow or gives a doubtful reading, and takes the first good reading. A
 * doubtful one counts once the next URL has failed, is slow or says the same.
 */
function raceInOrder(queue: readonly Candidate[], race: Race): Promise<Reading> {
  const attempts: { readonly controller: AbortController; isRunning: boolean }[] = []
  const startedAt = performance.now()
  let timer: NodeJS.Timeout | undefined
  let doubtful: Reading | undefined
  let winner = 0
  let firstError: Error | undefined
  const isAnyRunning = () => attempts.some(({ isRunning }) => isRunning)
  const onAbort = () => {
    for (const { controller } of attempts) controller.abort(race.signal.reason)
  }

  return new Promise<Reading>((resolve, reject) => {
    const launch = () => {
      clearTimeout(timer)
      const candidate = queue[attempts.length]
      if (candidate === undefined || race.signal.aborted) {
        if (isAnyRunning()) return
        if (doubtful === undefined) reject(firstError ?? new RpcError('UNREACHABLE', 'there is no URL to ask'))
        else resolve(doubtful)
        return
      }
      const attempt = { controller: new AbortController(), isRunning: true }
      const place = attempts.push(attempt) - 1
      const elapsedMs = Math.round(performance.now() - startedAt)
      race.start(candidate, elapsedMs, attempt.controller.signal).then(
        (reading) => {
          attempt.isRunning = false
          take(reading, place)
        },
        (error: Error) => {
          attempt.isRunning = false
          firstError ??= error
          if (error instanceof RpcError || race.signal.aborted) launch()
          else reject(error)
        },
      )
      if (attempts.length < queue.length) timer = setTimeout(launch, race.hedgeMs)
    }
    const take = (reading: Reading, place: number) => {
      if (doubtful !== undefined) race.onConfirmed()
      else if (race.isDoubtful(reading) && (isAnyRunning() || attempts.length < queue.length)) {
        doubtful = reading
        if (!isAnyRunning()) launch()
        clearTimeout(timer)
        timer = setTimeout(() => take(reading, place), race.hedgeMs)
        return
      }
      winner = place
      resolve(reading)
    }
    race.signal.addEventListener('abort', onAbort, { once: true })
    launch()
  }).finally(() => {
    clearTimeout(timer)
    race.signal.removeEventListener('abort', onAbort)
    for (const [place, { controller, isRunning }] of attempts.entries()) {
      if (isRunning) controller.abort(place < winner ? ANOTHER_ANSWERED : NOT_NEEDED)
    }
  })
}
