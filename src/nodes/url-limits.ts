import type { Logger } from '../domain/logger.ts'
import { createDailyBudget, type DailyBudget } from './daily-budget.ts'
import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'
import type { NodeFigures, NodeRate } from './node-figures.ts'
import { currentLane, type Lane } from './node-policy.ts'
import { createPacing, type LearnedRate, type Pacing, type RateRefusal } from './pacing.ts'
import { createSlots, type Sleep, type SlotOptions } from './slots.ts'

/** Limits of a URL that the chains file states. */
export interface DeclaredLimits {
  readonly requestsPerSecond?: number | undefined
  readonly requestsPerDay?: number | undefined
  /** Blocks in one `eth_getLogs`. */
  readonly maxLogRange?: number | undefined
  /** Calls in one HTTP request. */
  readonly maxBatch?: number | undefined
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

/** The limits that were learned of a URL. They are stored as JSON and outlive a restart. Absent: nothing was learned of that limit. */
export interface LearnedLimits {
  readonly rate?: LearnedRate | undefined
  readonly batch?: LearnedSize | undefined
  readonly logRange?: LogRange | undefined
}

/** The limits of one URL: declared, learned from its refusals, and how much of them is used. Shared by all of the process that use the URL. */
export interface UrlLimits {
  readonly host: string
  readonly declared: DeclaredLimits
  /** Waits until a request may be sent, and counts it. @see Slots.take @returns the request's number, for `noteRateRefusal` */
  slot(calls: number, options: SlotOptions): number | Promise<number>
  /** Milliseconds until the rate and the budget allow a LIVE request; 0 when they do now. The pause is not included. */
  readyInMs(): number
  /** Milliseconds left of the pause that the node asked for; 0 when it is over. */
  pauseMs(): number
  /** Counts a request that is sent without a slot. @returns its number, for `noteRateRefusal` */
  take(calls: number): number
  /** Counts calls that the node answered without refusing them for its rate. */
  noteServed(calls: number): void
  /** Learns from a refusal for the rate. */
  noteRateRefusal(refusal: RateRefusal & { readonly isQuota: boolean }): void
  /** The rate that requests are kept below; undefined where none is known. */
  rate(): NodeRate | undefined
  /** How many calls may go in one request. */
  batchSize(): number
  /** Learns that a batch was taken. */
  batchTaken(calls: number): void
  /** Learns that a batch was refused because it is one, or for its size. @param hint - the size that the node says it takes */
  batchRefused(calls: number, hint?: number): void
  /** Counts the outcome of a call in the figures. */
  noteCall(method: string, outcome: CallOutcome): void
  /** What is known of `eth_getLogs` ranges; undefined before the first. */
  logRange(): LogRange | undefined
  /** Notes what was learned of `eth_getLogs` ranges. @param width - blocks of the next call */
  noteLogRange(range: LogRange, width: number): void
  /** How many addresses may go in one filter for logs; Infinity where no filter was refused for its addresses. */
  addressesAtOnce(): number
  /** Learns that a filter was refused for its addresses: the next one has half as many. */
  addressesRefused(addresses: number): void
  /** What is known now, to be stored. */
  learned(): LearnedLimits
  /** Continues from stored limits. Ignored where this process has learned something itself since it last did so. */
  recall(stored: LearnedLimits): void
  /** Absent: the chains file sets none. */
  readonly budget: DailyBudget | undefined
  /** Notes that a circuit breaker for the URL opened or closed. @param breaker - any object that identifies it */
  noteBreaker(breaker: object, isOpen: boolean): void
  /** For operators. */
  figures(): NodeFigures
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
}

/** Calls in one HTTP request where nothing else is known. */
const MAX_BATCH = 100
/** Pause after a quota is used up, where the node does not say how long. */
const QUOTA_PAUSE_MS = 900_000

/** A URL, and where it stands in the configuration. */
export interface LimitedUrl {
  /** The chain's name; empty where the URL is not configured. */
  readonly chain: string
  readonly url: string
  /** Its place among the chain's `rpcUrls`. */
  readonly place: number
  readonly declared: DeclaredLimits
}

interface UrlState extends Omit<LimitedUrl, 'url'> {
  readonly host: string
  readonly clock: () => number
  readonly logger: Pick<Logger, 'warn'> | undefined
  readonly pacing: Pacing
  readonly budget: DailyBudget | undefined
  batch: LearnedSize
  logRange: LogRange | undefined
  /** Blocks of the next `eth_getLogs`. */
  logWidth: number | undefined
  addressesAtOnce: number
  /** Whether this process has learned something since it started or last recalled. A rate that grows as time passes does not count. */
  hasLearned: boolean
  readonly calls: Map<string, { calls: number; errors: number }>
  requests: number
  readonly openBreakers: Set<object>
}

/** Makes the limits of one URL, of which nothing is learned yet. */
export function createUrlLimits(url: LimitedUrl, tools: LimitsTools = {}): UrlLimits {
  const state = createState(url, tools)
  const { host, declared, pacing, budget, clock } = state
  const { requestsPerDay } = declared
  const send = (calls: number, lane: Lane) => countRequest(state, calls, lane)
  const slots = createSlots({ host, pacing, budget, requestsPerDay, clock, sleep: tools.sleep, send })
  return {
    host,
    declared,
    budget,
    slot: (calls, options) => slots.take(calls, options),
    readyInMs: () => Math.max(pacing.readyInMs(), budget?.readyInMs('LIVE') ?? 0),
    pauseMs: () => slots.pauseMs(),
    take: (calls) => send(calls, currentLane()),
    noteServed: (calls) => pacing.noteServed(calls),
    noteRateRefusal: (refusal) => noteRateRefusal(state, refusal),
    rate: () => pacing.rate(),
    batchSize: () => batchSize(state),
    batchTaken(calls) {
      if (state.batch.refused !== undefined) state.batch = sizeAfterTaken(state.batch, calls)
    },
    batchRefused(calls, hint) {
      state.hasLearned = true
      state.batch = sizeAfterRefused(state.batch, calls, hint)
    },
    noteCall: (method, outcome) => noteCall(state, method, outcome),
    logRange: () => state.logRange,
    noteLogRange: (range, width) => noteLogRange(state, range, width),
    addressesAtOnce: () => state.addressesAtOnce,
    addressesRefused(addresses) {
      state.addressesAtOnce = Math.max(1, Math.min(state.addressesAtOnce, Math.ceil(addresses / 2)))
    },
    learned: () => learnedBy(state),
    recall: (stored) => recall(state, stored),
    noteBreaker: (breaker, isOpen) => noteBreaker(state, breaker, isOpen),
    figures: () => figuresOf(state),
  }
}

function createState({ chain, url, place, declared }: LimitedUrl, tools: LimitsTools): UrlState {
  const { clock = Date.now, logger } = tools
  const { requestsPerSecond, requestsPerDay, maxBatch = MAX_BATCH } = declared
  return {
    chain,
    host: new URL(url).host,
    place,
    declared,
    clock,
    logger,
    pacing: createPacing(requestsPerSecond, clock),
    budget: requestsPerDay === undefined ? undefined : createDailyBudget(requestsPerDay, clock),
    batch: startSize(maxBatch, maxBatch),
    logRange: undefined,
    logWidth: undefined,
    addressesAtOnce: Number.POSITIVE_INFINITY,
    hasLearned: false,
    calls: new Map(),
    requests: 0,
    openBreakers: new Set(),
  }
}

function batchSize({ batch, pacing }: UrlState): number {
  return Math.min(batch.size, pacing.maxCalls())
}

/** Counts a request that is sent now. @returns its number */
function countRequest(state: UrlState, calls: number, lane: Lane): number {
  const { budget, pacing } = state
  state.requests += 1
  budget?.take(pacing.rate()?.unit === 'CALLS' ? calls : 1, lane)
  return pacing.take(calls)
}

function noteRateRefusal(state: UrlState, { isQuota, ...refusal }: RateRefusal & { readonly isQuota: boolean }): void {
  const { pacing, logger, chain, host } = state
  const before = pacing.rate()?.perSecond
  const waitMs = refusal.waitMs ?? (isQuota ? QUOTA_PAUSE_MS : undefined)
  pacing.noteRefusal({ ...refusal, waitMs })
  state.hasLearned = true
  const rate = pacing.rate()
  const fields = { chain, node: host, perSecond: rate?.perSecond, counts: rate?.unit }
  if (isQuota) {
    logger?.warn(
      { ...fields, waitMs },
      'the daily or monthly quota of the node is used up; it is left alone for a while',
    )
  } else if (before === undefined) logger?.warn(fields, 'the node limits its rate; calls are paced from now on')
}

function noteCall({ calls }: UrlState, method: string, outcome: CallOutcome): void {
  const counted = calls.get(method) ?? { calls: 0, errors: 0 }
  counted.calls += 1
  if (outcome !== 'ok' && outcome !== 'reverted') counted.errors += 1
  calls.set(method, counted)
}

function noteLogRange(state: UrlState, range: LogRange, width: number): void {
  state.hasLearned = true
  state.logRange = range
  state.logWidth = width
}

function noteBreaker({ openBreakers }: UrlState, breaker: object, isOpen: boolean): void {
  if (isOpen) openBreakers.add(breaker)
  else openBreakers.delete(breaker)
}

function learnedBy({ pacing, batch, logRange }: UrlState): LearnedLimits {
  return { rate: pacing.learned(), batch: batch.refused === undefined ? undefined : batch, logRange }
}

function recall(state: UrlState, { rate, batch, logRange }: LearnedLimits): void {
  if (state.hasLearned) return
  if (rate !== undefined) state.pacing.recall(rate)
  if (batch !== undefined) state.batch = batch
  state.logRange = logRange
}

function figuresOf(state: UrlState): NodeFigures {
  const { chain, host, place, pacing, budget, logWidth, requests, openBreakers } = state
  return {
    chain,
    host,
    place,
    calls: Object.fromEntries([...state.calls].map(([method, count]) => [method, { ...count }])),
    requests,
    rate: pacing.rate(),
    budgetLeft: budget?.left(),
    pausedUntilMs: pausedUntilMs(state),
    logRange: logWidth,
    batchSize: batchSize(state),
    breaker: openBreakers.size > 0 ? 'OPEN' : 'CLOSED',
  }
}

/** Until when nothing is sent: because the node asked for that, or because its daily budget is used up. */
function pausedUntilMs({ pacing, budget, clock }: UrlState): number | undefined {
  const askedMs = pacing.pausedUntilMs()
  if (budget?.isUsedUp() !== true) return askedMs
  return Math.max(askedMs ?? 0, clock() + budget.readyInMs('LIVE'))
}
