import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'
import type { NodeRate } from './node-figures.ts'

/** A rate that was learned from refusals. */
export interface LearnedRate {
  readonly perMinute: LearnedSize
  readonly unit: NodeRate['unit']
}

/**
 * Keeps the requests to a URL below a rate. The rate is that of the chains file, or is learned as the sizes of requests are: the first refusal
 * cuts it to what was served in the last second, and each quarter of a second without a refusal counts as a success. No I/O, no timers.
 */
export interface Pacing {
  /** Milliseconds until the rate allows a request; 0 when it does now. A pause that the node asked for is not included. */
  readyInMs(): number
  /**
   * Counts a request, allowed or not.
   *
   * @param calls - in the request
   * @returns its number, for `noteRefusal`
   */
  take(calls?: number): number
  /** Counts calls that the node answered without refusing them for its rate. */
  noteServed(calls: number): void
  /** Learns from a refusal for the rate. */
  noteRefusal(refusal: RateRefusal): void
  /** The most calls that may go in one request. */
  maxCalls(): number
  rate(): NodeRate | undefined
  /** The end of the pause that the node asked for, in milliseconds since 1970; undefined where it is over. */
  pausedUntilMs(): number | undefined
  /** The rate, if it was learned from refusals. */
  learned(): LearnedRate | undefined
  /** Continues with a rate that was learned before a restart, or with that of the chains file where it is lower. */
  recall(rate: LearnedRate): void
}

export interface RateRefusal {
  /** The number that `take` returned. */
  readonly request: number
  /** Calls in the request. */
  readonly calls: number
  /** How many of them were refused. */
  readonly refused: number
  /** The pause that the node asks for. */
  readonly waitMs?: number | undefined
}

/** The pause after a refusal where the node names none: the first, and at most. It doubles with each refusal in a row. */
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
/** The first rate is learned from what was served in this time before a refusal. */
const WINDOW_MS = 1_000
const MIN_PER_MINUTE = 3
/** A refusal although the rate was kept multiplies it by this. */
const CUT = 0.8
/** So long without a refusal is a success of the rate. */
const SUCCESS_MS = 250
/** What was tried so long ago no longer tells why a batch is refused. */
const FORGET_TRIAL_AFTER_MS = 60_000
const MAX_LEARNED_PER_MINUTE = 600_000

/** Two refusals of a whole batch may mean that the node counts its calls, or that it refuses everything for a while. So half of it is sent. */
interface BatchTrial {
  /** Calls of the smallest batch that was refused. */
  readonly refused: number
  /** Whether half as many were served since. Then a batch of that size is sent again. */
  readonly isHalfServed: boolean
}

interface PacingState {
  readonly declared: number | undefined
  readonly clock: () => number
  /** Absent: nothing was refused, and no rate is declared. */
  perMinute: LearnedSize | undefined
  unit: NodeRate['unit']
  /** Tokens of a token bucket: requests or calls that may be sent at once. Negative where more were sent than was allowed. */
  left: number
  /** When `left` was last computed. */
  countedAtMs: number
  pausedUntilMs: number
  /** Requests so far. */
  requests: number
  /** The number of the last request that was sent before the last refusal was learned from. */
  refusedAt: number
  refusalsInRow: number
  /** Until when successes of the rate are counted. */
  succeededUntilMs: number
  refusedAtMs: number
  /** Whether the node has ever served a call. */
  hasServed: boolean
  /** Of batches that were refused as a whole, to find out whether the node counts calls. */
  trial: BatchTrial | undefined
  /** Requests that were served since the last cut. */
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
    perMinute: perSecond === undefined ? undefined : startRate(perSecond),
    unit: 'REQUESTS',
    left: perSecond ?? 0,
    countedAtMs: clock(),
    pausedUntilMs: 0,
    requests: 0,
    refusedAt: -1,
    refusalsInRow: 0,
    succeededUntilMs: clock(),
    refusedAtMs: clock(),
    hasServed: false,
    trial: undefined,
    served: [],
  }
  return {
    readyInMs: () => readyInMs(state),
    take: (calls = 1) => take(state, calls),
    noteServed: (calls) => noteServed(state, calls),
    noteRefusal: (refusal) => noteRefusal(state, refusal),
    maxCalls: () => maxCalls(state),
    rate() {
      grow(state)
      const { unit, declared } = state
      const perSecond = perSecondOf(state)
      return perSecond === undefined
        ? undefined
        : { perSecond, unit, isDeclared: unit === 'REQUESTS' && perSecond === declared }
    },
    pausedUntilMs: () => (state.pausedUntilMs > clock() ? state.pausedUntilMs : undefined),
    learned: () => learnedRate(state),
    recall: (rate) => recall(state, rate),
  }
}

function startRate(perSecond = MAX_LEARNED_PER_MINUTE / 60): LearnedSize {
  const perMinute = Math.max(1, Math.round(perSecond * 60))
  return startSize(perMinute, perMinute)
}

function perSecondOf({ perMinute }: PacingState): number | undefined {
  return perMinute === undefined ? undefined : perMinute.size / 60
}

function maxCalls(state: PacingState): number {
  const { unit } = state
  const perSecond = perSecondOf(state)
  if (unit === 'CALLS' && perSecond !== undefined) return Math.max(1, Math.floor(perSecond))
  const trial = trialOf(state)
  if (trial === undefined) return Number.POSITIVE_INFINITY
  return trial.isHalfServed ? trial.refused : halfOf(trial)
}

function trialOf({ trial, clock, refusedAtMs }: PacingState): BatchTrial | undefined {
  return clock() - refusedAtMs < FORGET_TRIAL_AFTER_MS ? trial : undefined
}

const halfOf = ({ refused }: BatchTrial) => Math.floor(refused / 2)

function learnedRate({ perMinute, unit }: PacingState): LearnedRate | undefined {
  const isLearned = perMinute !== undefined && (perMinute.size < perMinute.max || unit === 'CALLS')
  return isLearned ? { perMinute, unit } : undefined
}

function recall(state: PacingState, { perMinute, unit }: LearnedRate): void {
  state.perMinute = perMinute
  state.unit = unit
  state.trial = undefined
  state.succeededUntilMs = state.clock()
  state.refusedAtMs = state.clock()
  state.left = Math.min(state.left, burstOf(state))
}

/** The most tokens: a second's worth of a declared rate. Over which time a node counts a learned rate is unknown, so its requests go evenly. */
function burstOf(state: PacingState): number {
  const { declared } = state
  const perSecond = perSecondOf(state) ?? 1
  return declared === undefined || perSecond < declared ? 1 : Math.max(1, perSecond)
}

function refill(state: PacingState): void {
  const nowMs = state.clock()
  const gained = (Math.max(0, nowMs - state.countedAtMs) * (perSecondOf(state) ?? 0)) / 1_000
  state.left = Math.min(burstOf(state), state.left + gained)
  state.countedAtMs = nowMs
}

function readyInMs(state: PacingState): number {
  grow(state)
  const perSecond = perSecondOf(state)
  if (perSecond === undefined) return 0
  refill(state)
  return state.left >= 1 ? 0 : Math.ceil(((1 - state.left) * 1_000) / perSecond)
}

function take(state: PacingState, calls: number): number {
  if (state.perMinute !== undefined) {
    refill(state)
    state.left -= state.unit === 'CALLS' ? calls : 1
  }
  state.requests += 1
  return state.requests
}

function noteServed(state: PacingState, calls: number): void {
  const nowMs = state.clock()
  state.refusalsInRow = 0
  state.hasServed = true
  const trial = trialOf(state)
  if (trial !== undefined && calls >= halfOf(trial)) {
    state.trial = calls < trial.refused ? { ...trial, isHalfServed: true } : undefined
  }
  const last = state.served.at(-1)
  // Only the last second is looked at, so older entries are dropped.
  if (last !== undefined && nowMs - last.atMs >= WINDOW_MS) state.served = []
  state.served.push({ atMs: nowMs, calls })
  if (state.served.length > 1_024) state.served.splice(0, 512)
  grow(state)
}

/** Raises a learned rate as time passes, also while the URL is not asked: a URL that is avoided for its low rate would keep that rate otherwise. */
function grow(state: PacingState): void {
  const nowMs = state.clock()
  while (state.perMinute !== undefined && nowMs - state.succeededUntilMs >= SUCCESS_MS) {
    state.succeededUntilMs += SUCCESS_MS
    state.perMinute = sizeAfterTaken(state.perMinute, state.perMinute.size)
    if (state.perMinute.size === state.perMinute.max) state.succeededUntilMs = nowMs
  }
}

function noteRefusal(state: PacingState, { request, calls, refused, waitMs }: RateRefusal): void {
  const nowMs = state.clock()
  // Of requests that were under way together, only the first refusal is learned from.
  const isNew = request > state.refusedAt
  if (isNew) {
    state.refusalsInRow += 1
    learnUnit(state, { calls, refused })
    // Where nothing was served since the last cut, a lower rate would not help either: only the pause grows.
    if (state.served.length > 0) cut(state)
    state.refusedAt = state.requests
  }
  const usualMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, state.refusalsInRow - 1))
  state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + (waitMs ?? (isNew ? usualMs : 0)))
  // Nothing is sent during the pause, so it says nothing for a higher rate.
  state.succeededUntilMs = Math.max(nowMs, state.pausedUntilMs)
  state.refusedAtMs = Math.max(nowMs, state.pausedUntilMs)
}

/**
 * Finds out whether the node counts calls instead of requests. It does where it refuses only a part of a batch, and where it serves half of a
 * batch that it refused and then refuses the whole again.
 */
function learnUnit(state: PacingState, { calls, refused }: { readonly calls: number; readonly refused: number }): void {
  const trial = trialOf(state)
  state.trial = trial
  if (calls === 1) return
  if (refused < calls) {
    if (state.unit === 'REQUESTS') countCalls(state, servedInWindow(state, 'CALLS'))
  } else if (state.unit === 'CALLS') {
    // A batch that alone exceeds the rate would be refused for ever.
    if (state.refusalsInRow > 1) cutTo(state, calls / 2)
  } else if (trial?.isHalfServed === true && calls >= trial.refused) countCalls(state, calls / 2)
  else if (state.refusalsInRow > 1 && state.hasServed) {
    state.trial = { refused: Math.min(calls, trial?.refused ?? calls), isHalfServed: false }
  }
}

/** From now on the rate is one of calls: what was learned of requests says nothing about it. */
function countCalls(state: PacingState, perSecond: number): void {
  state.unit = 'CALLS'
  state.perMinute = undefined
  state.trial = undefined
  cutTo(state, perSecond)
}

function cut(state: PacingState): void {
  const rate = perSecondOf(state)
  cutTo(state, rate === undefined ? servedInWindow(state, state.unit) : rate * CUT)
}

function cutTo(state: PacingState, perSecond: number): void {
  const known = state.perMinute ?? startRate(state.declared)
  const perMinute = Math.max(state.perMinute === undefined ? 60 : MIN_PER_MINUTE, Math.floor(perSecond * 60))
  if (perMinute < known.size) state.perMinute = sizeAfterRefused(known, known.size, perMinute)
  state.left = Math.min(state.left, 0)
  state.served = []
}

function servedInWindow({ served, clock }: PacingState, unit: NodeRate['unit']): number {
  const recent = served.filter(({ atMs }) => clock() - atMs < WINDOW_MS)
  return unit === 'CALLS' ? recent.reduce((sum, { calls }) => sum + calls, 0) : recent.length
}
