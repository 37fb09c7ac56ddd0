import type { ChainConfig } from '../../chains/chains-file.ts'
import { RpcFailure } from '../../nodes/json-rpc.ts'
import { type GasAnswer, type GasQuestion, isComplete } from '../measuring/question.ts'
import { ANOTHER_ANSWERED, type ChainSource, NOT_NEEDED } from './chain-source.ts'
import type { Ask, Reading } from './look-reader.ts'

/** All URLs of a chain. */
export interface ChainSources {
  /** Milliseconds until any URL's budget allows a request; 0 when one does now. */
  readyInMs(): number
  /** Milliseconds after which any URL may be asked again, once all have failed. */
  againInMs(): number
  /**
   * Asks the URLs in order of preference until one gives a good answer: the next one when one fails, or as well when one takes long.
   *
   * @param waitMs - how long the answer is waited for
   * @param signal - fires when nobody waits any more
   * @throws the first failure when all fail, at once while all are left alone; the signal's reason when it fires
   */
  read(asks: readonly Ask[], waitMs: number, signal: AbortSignal): Promise<Reading>
  /**
   * Measures the gas of transactions through the URL that does it best; through the next one where that leaves any out.
   *
   * @returns undefined where nothing could be measured in time
   * @throws the signal's reason when it fires
   */
  measure(question: GasQuestion, waitMs: number, signal: AbortSignal): Promise<GasAnswer | undefined>
  /** Finds out how each URL measures gas, one after the other. Never rejects but by the signal. */
  learn(signal: AbortSignal): Promise<void>
}

export interface ChainSourcesOptions {
  readonly chain: ChainConfig
  /** In order of preference; at least one. */
  readonly sources: readonly ChainSource[]
  /** For all that is asked for one answer. */
  readonly timeoutMs: number
  /** After so long without an answer a URL is slow. */
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
    againInMs: () => Math.min(...sources.map((source) => source.againInMs())),
    async read(asks, waitMs, signal) {
      const { queue, timeoutMs: limitMs } = choose(asks)
      if (queue.length === 0) throw leftAlone(sources)
      return raceInTurn(queue, {
        hedgeMs: Math.min(softMs, Math.ceil((softMs * waitMs) / timeoutMs)),
        signal,
        start: (source, elapsedMs, raceSignal) =>
          source.read(asks, Math.max(1, limitMs - elapsedMs), raceSignal, (reading) => checkHead(source, reading)),
        isDoubtful: looksOld,
        onConfirmed: () => {
          confirmedUntilMs = clock() + CONFIRMED_MS
        },
      })
    },
    async measure(question, waitMs, signal) {
      const startedAt = performance.now()
      const queue = sources.filter((source) => !source.isLeftAlone()).toSorted((a, b) => a.gasRank() - b.gasRank())
      let best: GasAnswer | undefined
      for (const [i, source] of queue.entries()) {
        const leftMs = Math.floor(waitMs - (performance.now() - startedAt))
        if (leftMs < 1) break
        // One that does not answer must leave time for the others.
        const limitMs = i < queue.length - 1 ? Math.ceil(leftMs / 2) : leftMs
        const answer = await source.measure(question, limitMs, signal)
        if (answer !== undefined && isComplete(answer)) return answer
        best = better(best, answer)
      }
      return best
    },
    async learn(signal) {
      for (const source of sources) await source.learn(timeoutMs, signal)
    },
  }
}

/** The answer that measured more. */
function better(a: GasAnswer | undefined, b: GasAnswer | undefined): GasAnswer | undefined {
  const measured = (answer: GasAnswer | undefined) =>
    answer !== undefined && 'steps' in answer ? answer.steps.filter((step) => step !== undefined).length : 0
  return measured(b) > measured(a) ? b : (a ?? b)
}

function leftAlone(sources: readonly ChainSource[]): RpcFailure {
  const failure = sources.map((source) => source.lastFailure()).find((each) => each !== undefined)
  const detail = failure?.message ?? 'it failed'
  return new RpcFailure(failure?.kind ?? 'UNREACHABLE', `${detail}, and it is left alone for a moment`)
}

interface Race {
  /** After so long without an answer the next URL is asked as well. */
  readonly hedgeMs: number
  readonly signal: AbortSignal
  readonly start: (source: ChainSource, elapsedMs: number, signal: AbortSignal) => Promise<Reading>
  /** Whether a second opinion is wanted on an answer. */
  readonly isDoubtful: (reading: Reading) => boolean
  readonly onConfirmed: () => void
}

/** One URL's turn in a race. */
interface Attempt {
  readonly controller: AbortController
  isRunning: boolean
}

/**
 * Starts with the first, goes on to the next when one fails, takes long or is doubtful, and takes the first good answer. A doubtful one is
 * taken once the next has failed, takes long or has the same to say.
 */
function raceInTurn(queue: readonly ChainSource[], race: Race): Promise<Reading> {
  const attempts: Attempt[] = []
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
      const source = queue[attempts.length]
      if (source === undefined || race.signal.aborted) {
        if (isAnyRunning()) return
        if (doubtful === undefined) reject(firstError ?? new RpcFailure('UNREACHABLE', 'there is no URL to ask'))
        else resolve(doubtful)
        return
      }
      const attempt: Attempt = { controller: new AbortController(), isRunning: true }
      const place = attempts.push(attempt) - 1
      const elapsedMs = Math.round(performance.now() - startedAt)
      race.start(source, elapsedMs, attempt.controller.signal).then(
        (reading) => {
          attempt.isRunning = false
          take(reading, place)
        },
        (error: Error) => {
          attempt.isRunning = false
          firstError ??= error
          if (error instanceof RpcFailure || race.signal.aborted) launch()
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
