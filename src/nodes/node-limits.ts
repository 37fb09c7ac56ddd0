import type { Logger } from '../domain/logger.ts'
import type { Tracer } from '../domain/telemetry/telemetry.ts'
import { createDailyBudget, type DailyBudget } from './daily-budget.ts'
import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'
import { currentLane, type Lane } from './node-policy.ts'
import { type NodeRate, Pacing, type RateRefusal } from './pacing.ts'
import { createSlots, type Sleep } from './slots.ts'

/** Limits of a URL that the chains file states. */
export interface DeclaredLimits {
  readonly requestsPerSecond?: number | undefined
  readonly requestsPerDay?: number | undefined
  /** Blocks in one `eth_getLogs`. */
  readonly maxLogRange?: number | undefined
  /** Calls in one HTTP request. */
  readonly maxBatch?: number | undefined
  /** Whether calls carry the header `traceparent` of what they serve. */
  readonly traceparent?: boolean | undefined
}

/** How many blocks one call for logs spans at a node. `detection/follow/read-final-blocks.ts` has its rules. */
export interface LogRange {
  /** The width that the node takes where logs are few. */
  readonly blocks: LearnedSize
  /** The width at which the answers have not too many logs, for the blocks that are read now. Absent: any width has not. */
  readonly denseBlocks?: number | undefined
  /** The most logs in one answer: the number that the node named, or the most that it gave. Absent: no range was refused for its logs. */
  readonly mostLogs?: number | undefined
  /** `blocks` as it was before refusals in unknown words. It counts again if narrower ranges show that they were for the number of logs. */
  readonly before?: LearnedSize | undefined
}

/** `reverted`: the node carried the call out, and the contract reverted it. That is an answer, and no error of the node. */
export type CallOutcome = 'ok' | 'reverted' | 'refused' | 'rate_limited' | 'unanswered'

/** What the limits of a URL need from outside. */
export interface LimitsTools {
  /** Milliseconds since 1970; default that of the machine. */
  readonly clock?: (() => number) | undefined
  /** Default a timer. */
  readonly sleep?: Sleep | undefined
  readonly logger?: Pick<Logger, 'warn'> | undefined
  readonly tracer?: Tracer | undefined
}

/** Calls in one HTTP request where nothing else is known. */
const MAX_BATCH = 100
/** Pause after a quota is used up, where the node does not say how long. */
const QUOTA_PAUSE_MS = 900_000

/** A URL, and where it stands in the configuration. */
interface LimitedUrl {
  /** The chain's name; empty where the URL is not configured. */
  readonly chain: string
  readonly url: string
  /** Its place among the chain's `rpcUrls`. */
  readonly place: number
  readonly declared: DeclaredLimits
}

/** What a process knows of one URL of a chain, for operators. Nothing in it is secret. */
export interface NodeFigures {
  /** The chain's name. */
  readonly chain: string
  /** The host of the URL; the rest may hold a key. Two URLs of a chain may have the same host. */
  readonly host: string
  /** Its place among the chain's `rpcUrls`, from 0. */
  readonly place: number
  /** Calls that were sent, and how many of them failed, by method, since the process began. A call that the contract reverted has not failed. */
  readonly calls: Readonly<Record<string, { readonly calls: number; readonly errors: number }>>
  /** HTTP requests since the process began. */
  readonly requests: number
  /** Requests are kept below this rate. Absent: none is known. */
  readonly rate?: NodeRate | undefined
  /** What is left of the daily budget, in `rate.unit`. Absent: the chains file sets none. */
  readonly budgetLeft?: number | undefined
  /** Until when nothing is sent, because the node asked for that or its daily budget is used up: milliseconds since 1970. Absent: it may be asked now. */
  readonly pausedUntilMs?: number | undefined
  /** Blocks in one call for logs, as learned; absent before the first. */
  readonly logRange?: number | undefined
  /** Calls in one HTTP request, as declared or learned. 1: it takes no batches. */
  readonly batchSize: number
  /** OPEN: it failed, and routes, detection or both leave it alone for now. */
  readonly breaker: 'CLOSED' | 'OPEN'
}

/** The limits of one URL: declared, learned from its refusals, and how much of them is used. Shared by all of the process that use the URL. */
export class UrlLimits {
  readonly host: string
  readonly declared: DeclaredLimits
  /** Absent: the chains file sets none. */
  readonly budget: DailyBudget | undefined
  /**
   * Waits until a request may be sent, and counts it.
   *
   * @returns the request's number, for `noteRateRefusal`
   * @see createSlots
   */
  readonly slot: ReturnType<typeof createSlots>
  readonly tracer: Tracer | undefined
  readonly #url: LimitedUrl
  readonly #clock: () => number
  readonly #logger: LimitsTools['logger']
  readonly #pacing: Pacing
  #batch: LearnedSize
  #logRange: LogRange | undefined
  /** Blocks of the next `eth_getLogs`. */
  #logWidth: number | undefined
  #addressesAtOnce = Number.POSITIVE_INFINITY
  readonly #calls = new Map<string, { calls: number; errors: number }>()
  #requests = 0
  readonly #openBreakers = new Set<object>()

  /** Nothing is learned yet. */
  constructor(url: LimitedUrl, { clock = Date.now, sleep, logger, tracer }: LimitsTools) {
    const { requestsPerSecond, requestsPerDay, maxBatch = MAX_BATCH } = url.declared
    const { host } = new URL(url.url)
    const pacing = new Pacing(requestsPerSecond, clock)
    const budget = requestsPerDay === undefined ? undefined : createDailyBudget(requestsPerDay, clock)
    const send = (calls: number, lane: Lane) => this.#send(calls, lane)
    this.host = host
    this.declared = url.declared
    this.budget = budget
    this.slot = createSlots({ host, pacing, budget, clock, sleep, send })
    this.#url = url
    this.#clock = clock
    this.#logger = logger
    this.tracer = tracer
    this.#pacing = pacing
    this.#batch = startSize(maxBatch, maxBatch)
  }

  /** Milliseconds until the rate and the budget allow a LIVE request; 0 when they do now. The pause is not included. */
  readyInMs(): number {
    return Math.max(this.#pacing.readyInMs(), this.budget?.readyInMs('LIVE') ?? 0)
  }

  /** Milliseconds left of the pause that the node asked for; 0 when it is over. */
  pauseMs(): number {
    return this.#pacing.pauseMs()
  }

  /** Counts a request that is sent without a slot. @returns its number, for `noteRateRefusal` */
  take(calls: number): number {
    return this.#send(calls, currentLane())
  }

  #send(calls: number, lane: Lane): number {
    this.#requests += 1
    this.budget?.take(this.rate()?.unit === 'CALLS' ? calls : 1, lane)
    return this.#pacing.take(calls)
  }

  /** Counts calls that the node answered without refusing them for its rate. */
  noteServed(calls: number): void {
    this.#pacing.noteServed(calls)
  }

  /** Learns from a refusal for the rate. */
  noteRateRefusal({ isQuota, ...refusal }: RateRefusal & { readonly isQuota: boolean }): void {
    const before = this.rate()?.perSecond
    const waitMs = refusal.waitMs ?? (isQuota ? QUOTA_PAUSE_MS : undefined)
    this.#pacing.noteRefusal({ ...refusal, waitMs })
    const rate = this.rate()
    const fields = { chain: this.#url.chain, node: this.host, perSecond: rate?.perSecond, counts: rate?.unit }
    if (isQuota) {
      const message = 'the daily or monthly quota of the node is used up; it is left alone for a while'
      this.#logger?.warn({ ...fields, waitMs }, message)
    } else if (before === undefined) this.#logger?.warn(fields, 'the node limits its rate; calls are paced from now on')
  }

  /** The rate that requests are kept below; undefined where none is known. */
  rate(): NodeRate | undefined {
    return this.#pacing.rate()
  }

  /** How many calls may go in one request. */
  batchSize(): number {
    return Math.min(this.#batch.size, this.#pacing.maxCalls())
  }

  /** Learns that a batch was taken. */
  batchTaken(calls: number): void {
    if (this.#batch.refused !== undefined) this.#batch = sizeAfterTaken(this.#batch, calls)
  }

  /** Learns that a batch was refused because it is one, or for its size. @param hint - the size that the node says it takes */
  batchRefused(calls: number, hint?: number): void {
    this.#batch = sizeAfterRefused(this.#batch, calls, hint)
  }

  /** Counts the outcome of a call in the figures. */
  noteCall(method: string, outcome: CallOutcome): void {
    const counted = this.#calls.get(method) ?? { calls: 0, errors: 0 }
    counted.calls += 1
    if (outcome !== 'ok' && outcome !== 'reverted') counted.errors += 1
    this.#calls.set(method, counted)
  }

  /** What is known of `eth_getLogs` ranges; undefined before the first. */
  logRange(): LogRange | undefined {
    return this.#logRange
  }

  /** Notes what was learned of `eth_getLogs` ranges. @param width - blocks of the next call */
  noteLogRange(range: LogRange, width: number): void {
    this.#logRange = range
    this.#logWidth = width
  }

  /** How many addresses may go in one filter for logs; Infinity where no filter was refused for its addresses. */
  addressesAtOnce(): number {
    return this.#addressesAtOnce
  }

  /** Learns that a filter was refused for its addresses: the next one has half as many. */
  addressesRefused(addresses: number): void {
    this.#addressesAtOnce = Math.max(1, Math.min(this.#addressesAtOnce, Math.ceil(addresses / 2)))
  }

  /** Notes that a circuit breaker for the URL opened or closed. @param breaker - any object that identifies it */
  noteBreaker(breaker: object, isOpen: boolean): void {
    if (isOpen) this.#openBreakers.add(breaker)
    else this.#openBreakers.delete(breaker)
  }

  figures(): NodeFigures {
    return {
      chain: this.#url.chain,
      host: this.host,
      place: this.#url.place,
      calls: Object.fromEntries([...this.#calls].map(([method, count]) => [method, { ...count }])),
      requests: this.#requests,
      rate: this.rate(),
      budgetLeft: this.budget?.left(),
      pausedUntilMs: this.#pausedUntilMs(),
      logRange: this.#logWidth,
      batchSize: this.batchSize(),
      breaker: this.#openBreakers.size > 0 ? 'OPEN' : 'CLOSED',
    }
  }

  #pausedUntilMs(): number | undefined {
    const askedMs = this.#pacing.pausedUntilMs()
    if (this.budget?.isUsedUp() !== true) return askedMs
    return Math.max(askedMs ?? 0, this.#clock() + this.budget.readyInMs('LIVE'))
  }
}

/** The limits of all nodes that a process asks. One registry a process, so that routes and detection share the rate and the budget of a URL. */
export type NodeLimits = ReturnType<typeof createNodeLimits>

/** The part of a configured chain that says where its nodes are and what they allow. */
export interface LimitedChain extends Pick<DeclaredLimits, 'requestsPerSecond' | 'requestsPerDay'> {
  readonly name: string
  readonly rpcUrls: readonly string[]
  /** By URL; what is absent is as the chain says. */
  readonly nodeLimits?: Readonly<Record<string, DeclaredLimits>> | undefined
}

/** Makes the registry of the configured chains. A URL of none of them has no declared limits and no figures. */
export function createNodeLimits(chains: readonly LimitedChain[] = [], tools: LimitsTools = {}) {
  const configured = new Map<string, UrlLimits>()
  for (const { name, rpcUrls, requestsPerSecond, requestsPerDay, nodeLimits } of chains) {
    for (const [place, url] of rpcUrls.entries()) {
      const declared = { requestsPerSecond, requestsPerDay, ...nodeLimits?.[url] }
      configured.set(url, new UrlLimits({ chain: name, url, place, declared }, tools))
    }
  }
  const others = new Map<string, UrlLimits>()
  return {
    /** The limits of a URL; the same object for every caller. */
    of(url: string): UrlLimits {
      const known = configured.get(url) ?? others.get(url)
      if (known !== undefined) return known
      const made = new UrlLimits({ chain: '', url, place: 0, declared: {} }, tools)
      others.set(url, made)
      return made
    },
    /** The figures of all configured URLs, in the order of the configuration. */
    figures: () => [...configured.values()].map((limits) => limits.figures()),
  }
}
