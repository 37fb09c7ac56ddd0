import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'

/** A rate in requests or calls a second. */
export interface NodeRate {
  readonly perSecond: number
  /** What the node counts: HTTP requests, or each call of a batch. */
  readonly unit: 'REQUESTS' | 'CALLS'
  /** Whether the chains file states it; otherwise it was learned from refusals. */
  readonly isDeclared: boolean
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

/**
 * Keeps the requests to a URL below a rate. The rate is that of the chains file, or is learned as the sizes of requests are: the first refusal
 * cuts it to what was served in the last second, and each quarter of a second without a refusal counts as a success. No I/O, no timers.
 */
export class Pacing {
  readonly #declared: number | undefined
  readonly #clock: () => number
  /** Absent: nothing was refused, and no rate is declared. */
  #perMinute: LearnedSize | undefined
  #unit: NodeRate['unit'] = 'REQUESTS'
  /** Tokens of a token bucket: requests or calls that may be sent at once. Negative where more were sent than was allowed. */
  #left: number
  /** When `#left` was last computed. */
  #countedAtMs: number
  #pausedUntilMs = 0
  /** Requests so far. */
  #requests = 0
  /** The number of the last request that was sent before the last refusal was learned from. */
  #refusedAt = -1
  #refusalsInRow = 0
  /** Until when successes of the rate are counted. */
  #succeededUntilMs: number
  #refusedAtMs: number
  /** Whether the node has ever served a call. */
  #hasServed = false
  /** Of batches that were refused as a whole, to find out whether the node counts calls. */
  #trial: BatchTrial | undefined
  /** Requests that were served since the last cut. */
  #served: { atMs: number; calls: number }[] = []

  /**
   * @param perSecond - requests; undefined where it is to be learned
   * @param clock - milliseconds since 1970
   */
  constructor(perSecond: number | undefined, clock: () => number) {
    this.#declared = perSecond
    this.#clock = clock
    this.#perMinute = perSecond === undefined ? undefined : startRate(perSecond)
    this.#left = perSecond ?? 0
    this.#countedAtMs = this.#succeededUntilMs = this.#refusedAtMs = clock()
  }

  /** Milliseconds until the rate allows a request; 0 when it does now. A pause that the node asked for is not included. */
  readyInMs(): number {
    this.#grow()
    const perSecond = this.#perSecond()
    if (perSecond === undefined) return 0
    this.#refill()
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) * 1_000) / perSecond)
  }

  /**
   * Counts a request, allowed or not.
   *
   * @param calls - in the request
   * @returns its number, for `noteRefusal`
   */
  take(calls = 1): number {
    if (this.#perMinute !== undefined) {
      this.#refill()
      this.#left -= this.#unit === 'CALLS' ? calls : 1
    }
    this.#requests += 1
    return this.#requests
  }

  /** Counts calls that the node answered without refusing them for its rate. */
  noteServed(calls: number): void {
    const nowMs = this.#clock()
    this.#refusalsInRow = 0
    this.#hasServed = true
    const trial = this.#currentTrial()
    if (trial !== undefined && calls >= halfOf(trial)) {
      this.#trial = calls < trial.refused ? { ...trial, isHalfServed: true } : undefined
    }
    const last = this.#served.at(-1)
    // Only the last second is looked at, so older entries are dropped.
    if (last !== undefined && nowMs - last.atMs >= WINDOW_MS) this.#served = []
    this.#served.push({ atMs: nowMs, calls })
    if (this.#served.length > 1_024) this.#served.splice(0, 512)
    this.#grow()
  }

  /** Learns from a refusal for the rate. */
  noteRefusal({ request, calls, refused, waitMs }: RateRefusal): void {
    const nowMs = this.#clock()
    // Of requests that were under way together, only the first refusal is learned from.
    const isNew = request > this.#refusedAt
    if (isNew) {
      this.#refusalsInRow += 1
      this.#learnUnit(calls, refused)
      // Where nothing was served since the last cut, a lower rate would not help either: only the pause grows.
      if (this.#served.length > 0) this.#cut()
      this.#refusedAt = this.#requests
    }
    const usualMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, this.#refusalsInRow - 1))
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + (waitMs ?? (isNew ? usualMs : 0)))
    // Nothing is sent during the pause, so it says nothing for a higher rate.
    this.#succeededUntilMs = this.#refusedAtMs = Math.max(nowMs, this.#pausedUntilMs)
  }

  /** The most calls that may go in one request. */
  maxCalls(): number {
    const perSecond = this.#perSecond()
    if (this.#unit === 'CALLS' && perSecond !== undefined) return Math.max(1, Math.floor(perSecond))
    const trial = this.#currentTrial()
    if (trial === undefined) return Number.POSITIVE_INFINITY
    return trial.isHalfServed ? trial.refused : halfOf(trial)
  }

  rate(): NodeRate | undefined {
    this.#grow()
    const perSecond = this.#perSecond()
    if (perSecond === undefined) return undefined
    const unit = this.#unit
    return { perSecond, unit, isDeclared: unit === 'REQUESTS' && perSecond === this.#declared }
  }

  /** The end of the pause that the node asked for, in milliseconds since 1970; undefined where it is over. */
  pausedUntilMs(): number | undefined {
    return this.#pausedUntilMs > this.#clock() ? this.#pausedUntilMs : undefined
  }

  /** Milliseconds left of that pause; 0 when it is over. */
  pauseMs(): number {
    return Math.max(0, this.#pausedUntilMs - this.#clock())
  }

  #perSecond(): number | undefined {
    return this.#perMinute && this.#perMinute.size / 60
  }

  #currentTrial(): BatchTrial | undefined {
    return this.#clock() - this.#refusedAtMs < FORGET_TRIAL_AFTER_MS ? this.#trial : undefined
  }

  /** The most tokens: a second's worth of a declared rate. Over which time a node counts a learned rate is unknown, so its requests go evenly. */
  #burst(): number {
    const perSecond = this.#perSecond() ?? 1
    return this.#declared === undefined || perSecond < this.#declared ? 1 : Math.max(1, perSecond)
  }

  #refill(): void {
    const nowMs = this.#clock()
    const gained = (Math.max(0, nowMs - this.#countedAtMs) * (this.#perSecond() ?? 0)) / 1_000
    this.#left = Math.min(this.#burst(), this.#left + gained)
    this.#countedAtMs = nowMs
  }

  /** Raises a learned rate as time passes, also while the URL is not asked: a URL that is avoided for its low rate would keep that rate otherwise. */
  #grow(): void {
    const nowMs = this.#clock()
    while (this.#perMinute !== undefined && nowMs - this.#succeededUntilMs >= SUCCESS_MS) {
      this.#succeededUntilMs += SUCCESS_MS
      this.#perMinute = sizeAfterTaken(this.#perMinute, this.#perMinute.size)
      if (this.#perMinute.size === this.#perMinute.max) this.#succeededUntilMs = nowMs
    }
  }

  /**
   * Finds out whether the node counts calls instead of requests. It does where it refuses only a part of a batch, and where it serves half of a
   * batch that it refused and then refuses the whole again.
   */
  #learnUnit(calls: number, refused: number): void {
    const trial = this.#currentTrial()
    this.#trial = trial
    if (calls === 1) return
    if (refused < calls) {
      if (this.#unit === 'REQUESTS') this.#countCalls(this.#servedInWindow('CALLS'))
    } else if (this.#unit === 'CALLS') {
      // A batch that alone exceeds the rate would be refused for ever.
      if (this.#refusalsInRow > 1) this.#cutTo(calls / 2)
    } else if (trial?.isHalfServed === true && calls >= trial.refused) this.#countCalls(calls / 2)
    else if (this.#refusalsInRow > 1 && this.#hasServed) {
      this.#trial = { refused: Math.min(calls, trial?.refused ?? calls), isHalfServed: false }
    }
  }

  /** From now on the rate is one of calls: what was learned of requests says nothing about it. */
  #countCalls(perSecond: number): void {
    this.#unit = 'CALLS'
    this.#perMinute = undefined
    this.#trial = undefined
    this.#cutTo(perSecond)
  }

  #cut(): void {
    const rate = this.#perSecond()
    this.#cutTo(rate === undefined ? this.#servedInWindow(this.#unit) : rate * CUT)
  }

  #cutTo(perSecond: number): void {
    const known = this.#perMinute ?? startRate(this.#declared)
    const perMinute = Math.max(this.#perMinute === undefined ? 60 : MIN_PER_MINUTE, Math.floor(perSecond * 60))
    if (perMinute < known.size) this.#perMinute = sizeAfterRefused(known, known.size, perMinute)
    this.#left = Math.min(this.#left, 0)
    this.#served = []
  }

  #servedInWindow(unit: NodeRate['unit']): number {
    const recent = this.#served.filter(({ atMs }) => this.#clock() - atMs < WINDOW_MS)
    return unit === 'CALLS' ? recent.reduce((sum, { calls }) => sum + calls, 0) : recent.length
  }
}

function startRate(perSecond = MAX_LEARNED_PER_MINUTE / 60): LearnedSize {
  const perMinute = Math.max(1, Math.round(perSecond * 60))
  return startSize(perMinute, perMinute)
}

const halfOf = ({ refused }: BatchTrial) => Math.floor(refused / 2)
