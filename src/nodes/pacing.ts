import type { LearnedRate } from './learned-limits.ts'
import type { NodeRate } from './node-figures.ts'

/**
 * Keeps what a URL is sent below its rate. The rate is that of the chains file, or is learned: after a refusal it is cut to what was served in
 * the last second, and recovers slowly. No I/O, no timers.
 */
export interface Pacing {
  /** Milliseconds until the rate allows the next request; 0 when it allows it now. */
  readyInMs(): number
  /**
   * Counts a request, allowed or not.
   *
   * @param calls - in it
   * @returns its place in the order of requests, for `refuse`
   */
  take(calls?: number): number
  /** Counts calls that were served. */
  serve(calls: number): void
  /** Learns from a refusal for the rate. */
  refuse(refusal: RateRefusal): void
  /** The most calls that may go in one request. */
  maxCalls(): number
  rate(): NodeRate | undefined
  /** Until when the node asked to be left alone, milliseconds since 1970; undefined where that is over. */
  pausedUntilMs(): number | undefined
  /** The rate, if it was learned from refusals. */
  learned(): LearnedRate | undefined
  /** Goes on from a rate that was learned before a restart. A lower rate of the chains file counts instead. */
  recall(rate: LearnedRate): void
}

export interface RateRefusal {
  /** What `take` gave for the request. */
  readonly request: number
  /** Calls in the request. */
  readonly calls: number
  /** How many of them were refused. */
  readonly refused: number
  /** How long the node asks to be left alone. */
  readonly waitMs?: number | undefined
}

/** A pause where the node does not say how long: the first, doubled with each refusal in a row, and at most. */
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
/** A rate is learned from what was served in this time. */
const WINDOW_MS = 1_000
const MIN_PER_SECOND = 0.05
/** A refusal although the rate was kept to: the rate becomes this part of itself. */
const CUT = 0.8
/**
 * After some time without a refusal a higher rate is tried: soon and much higher at first, since a node that was in trouble for a moment taught a rate that
 * is far too low; after a refused try later and a little higher. The time doubles with each try that is refused, and halves with each that is not.
 */
const FIRST_GROW_AFTER_MS = 2_500
const FIRST_GROWTH = 1.5
const GROW_AFTER_MS = 10_000
const GROWTH = 1.1
/** Without a refusal for so long, what refused tries have taught is forgotten. */
const FORGET_TRIES_AFTER_MS = 60_000
const MAX_GROW_AFTER_MS = 600_000
const MAX_LEARNED_PER_SECOND = 10_000

interface PacingState {
  readonly declared: number | undefined
  readonly clock: () => number
  perSecond: number | undefined
  unit: NodeRate['unit']
  /** Requests or calls that may go at once; negative where more went than was allowed. */
  left: number
  countedAtMs: number
  pausedUntilMs: number
  /** Requests so far, and when the rate was last cut, in requests. */
  requests: number
  cutAt: number
  refusalsInRow: number
  growAfterMs: number
  changedAtMs: number
  refusedAtMs: number
  /** Whether the rate was raised since it was last cut. */
  hasGrown: boolean
  hasServed: boolean
  served: { atMs: number; calls: number }[]
}

/**
 * Makes the pacing of one URL.
 *
 * @param perSecond - requests; undefined where it is to be learned
 * @param clock - milliseconds since 1970
 */
export function createPacing(perSecond: number | undefined, clock: () => number): Pacing {
  const state: PacingState = {
    declared: perSecond,
    clock,
    perSecond,
    unit: 'REQUESTS',
    left: perSecond ?? 0,
    countedAtMs: clock(),
    pausedUntilMs: 0,
    requests: 0,
    cutAt: -1,
    refusalsInRow: 0,
    growAfterMs: FIRST_GROW_AFTER_MS,
    changedAtMs: clock(),
    refusedAtMs: clock(),
    hasGrown: false,
    hasServed: false,
    served: [],
  }
  return {
    readyInMs: () => readyInMs(state),
    take: (calls = 1) => take(state, calls),
    serve: (calls) => serve(state, calls),
    refuse: (refusal) => refuse(state, refusal),
    maxCalls: () =>
      state.unit === 'CALLS' && state.perSecond !== undefined
        ? Math.max(1, Math.floor(state.perSecond))
        : Number.POSITIVE_INFINITY,
    rate() {
      grow(state)
      const { perSecond, unit, declared } = state
      return perSecond === undefined ? undefined : { perSecond, unit, isDeclared: perSecond === declared }
    },
    pausedUntilMs: () => (state.pausedUntilMs > clock() ? state.pausedUntilMs : undefined),
    learned: () => learnedRate(state),
    recall: (rate) => recall(state, rate),
  }
}

function learnedRate({ perSecond, declared, unit, growAfterMs }: PacingState): LearnedRate | undefined {
  const isLearned = perSecond !== undefined && (perSecond !== declared || unit === 'CALLS')
  return isLearned ? { perSecond, unit, growAfterMs } : undefined
}

function recall(state: PacingState, { perSecond, unit, growAfterMs }: LearnedRate): void {
  state.perSecond = Math.min(perSecond, state.declared ?? MAX_LEARNED_PER_SECOND)
  state.unit = unit
  state.growAfterMs = Math.min(growAfterMs, MAX_GROW_AFTER_MS)
  state.changedAtMs = state.clock()
  state.refusedAtMs = state.clock()
  state.left = Math.min(state.left, burstOf(state))
}

/** A second's worth may go at once where the rate is declared. Of a learned one it is not known how the node counts, so it goes evenly. */
function burstOf({ declared, perSecond = 1 }: PacingState): number {
  return declared === undefined || perSecond < declared ? 1 : Math.max(1, perSecond)
}

function refill(state: PacingState): void {
  const nowMs = state.clock()
  const gained = (Math.max(0, nowMs - state.countedAtMs) * (state.perSecond ?? 0)) / 1_000
  state.left = Math.min(burstOf(state), state.left + gained)
  state.countedAtMs = nowMs
}

function readyInMs(state: PacingState): number {
  if (state.perSecond === undefined) return 0
  grow(state)
  refill(state)
  return state.left >= 1 ? 0 : Math.ceil(((1 - state.left) * 1_000) / state.perSecond)
}

function take(state: PacingState, calls: number): number {
  if (state.perSecond !== undefined) {
    refill(state)
    state.left -= state.unit === 'CALLS' ? calls : 1
  }
  state.requests += 1
  return state.requests
}

function serve(state: PacingState, calls: number): void {
  const nowMs = state.clock()
  state.refusalsInRow = 0
  state.hasServed = true
  const last = state.served.at(-1)
  // Only the last second is looked at; what is older goes when there is something new.
  if (last !== undefined && nowMs - last.atMs >= WINDOW_MS) state.served = []
  state.served.push({ atMs: nowMs, calls })
  if (state.served.length > 1_024) state.served.splice(0, 512)
  grow(state)
}

/** Raises a learned rate as time passes, also while the URL is not asked: otherwise one that is left for its low rate would keep it. */
function grow(state: PacingState): void {
  const most = state.declared ?? MAX_LEARNED_PER_SECOND
  const nowMs = state.clock()
  while (
    state.perSecond !== undefined &&
    state.perSecond < most &&
    nowMs - state.changedAtMs >= state.growAfterMs &&
    state.pausedUntilMs <= nowMs
  ) {
    const growth = state.growAfterMs < GROW_AFTER_MS ? FIRST_GROWTH : GROWTH
    state.perSecond = Math.min(state.perSecond * growth, most)
    state.changedAtMs += state.growAfterMs
    if (state.changedAtMs - state.refusedAtMs >= FORGET_TRIES_AFTER_MS) state.growAfterMs = FIRST_GROW_AFTER_MS
    else if (state.hasGrown)
      state.growAfterMs = Math.min(state.growAfterMs, Math.max(GROW_AFTER_MS, state.growAfterMs / 2))
    state.hasGrown = true
  }
}

function refuse(state: PacingState, { request, calls, refused, waitMs }: RateRefusal): void {
  const nowMs = state.clock()
  // Requests that were under way together teach once.
  const isNew = request > state.cutAt
  if (isNew) {
    state.refusalsInRow += 1
    learnUnit(state, { calls, refused })
    // Where nothing was served since the last cut, the rate is not the reason.
    if (state.served.length > 0) cut(state, nowMs)
    state.cutAt = state.requests
  }
  const usualMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, state.refusalsInRow - 1))
  state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + (waitMs ?? (isNew ? usualMs : 0)))
  // Nothing is sent during the pause, so it says nothing for a higher rate.
  state.changedAtMs = Math.max(state.changedAtMs, state.pausedUntilMs)
  state.refusedAtMs = Math.max(nowMs, state.pausedUntilMs)
}

/** A node that refuses a part of a batch counts its calls; so does one that refuses a batch again after a pause. */
function learnUnit(state: PacingState, { calls, refused }: { readonly calls: number; readonly refused: number }): void {
  if (calls === 1 || state.unit === 'CALLS') {
    // A batch that alone is above the rate would never be taken.
    if (calls > 1 && refused === calls && state.refusalsInRow > 1)
      state.perSecond = Math.min(state.perSecond ?? calls, calls / 2)
    return
  }
  if (refused === calls && (state.refusalsInRow < 2 || !state.hasServed)) return
  state.unit = 'CALLS'
  state.perSecond = refused < calls ? undefined : calls / 2
}

function cut(state: PacingState, nowMs: number): void {
  const recent = state.served.filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
  const seen = state.unit === 'CALLS' ? recent.reduce((sum, { calls }) => sum + calls, 0) : recent.length
  const cutTo = state.perSecond === undefined ? Math.max(seen, 1) : state.perSecond * CUT
  state.perSecond = Math.max(MIN_PER_SECOND, cutTo)
  if (state.hasGrown) state.growAfterMs = Math.min(MAX_GROW_AFTER_MS, Math.max(GROW_AFTER_MS, state.growAfterMs * 2))
  state.hasGrown = false
  state.changedAtMs = nowMs
  state.left = Math.min(state.left, 0)
  state.served = []
}
