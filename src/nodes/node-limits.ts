import { setTimeout as sleepFor } from 'node:timers/promises'
import type { Logger } from '../domain/logger.ts'
import { type Meter, silentMeter } from '../domain/meter.ts'
import { createDailyBudget, type DailyBudget } from './daily-budget.ts'
import { currentLane, type Lane } from './lanes.ts'
import { keptRangeOf, keptSizeOf, type LearnedLimits, type LogRange, sizeFromKept } from './learned-limits.ts'
import { type LearnedSize, sizeAfterRefused, sizeAfterTaken, startSize } from './learned-size.ts'
import type { CallCount, NodeFigures, NodeRate } from './node-figures.ts'
import { createPacing, type Pacing, type RateRefusal } from './pacing.ts'
import { RpcError } from './rpc-error.ts'

/** What a process knows of the limits of its nodes. One for the whole process: routes and detection share the rate and the budget of a URL. */
export interface NodeLimits {
  /** What is known of a URL. The same for all who ask. */
  of(url: string): UrlLimits
  /** The figures of all URLs, in the order of the configuration. */
  figures(): NodeFigures[]
}

/** Limits of a URL that the chains file states. */
export interface DeclaredLimits {
  readonly requestsPerSecond?: number | undefined
  readonly requestsPerDay?: number | undefined
  /** Blocks in one call for logs. */
  readonly maxLogRange?: number | undefined
  /** Calls in one HTTP request. */
  readonly maxBatch?: number | undefined
}

/** The part of a configured chain that says where its nodes are and what they allow. */
export interface LimitedChain extends Pick<DeclaredLimits, 'requestsPerSecond' | 'requestsPerDay'> {
  readonly name: string
  readonly rpcUrls: readonly string[]
  /** By URL; what is absent is as the chain says. */
  readonly nodeLimits?: Readonly<Record<string, DeclaredLimits>> | undefined
}

/** What is known of one URL. */
export interface UrlLimits {
  readonly host: string
  readonly declared: DeclaredLimits
  /**
   * Waits until a request is allowed, behind those of lanes that go first, and counts it.
   *
   * @param calls - in the request
   * @returns its number, for `refuse`; at once where nothing has to be waited for
   * @throws RpcError RATE_LIMITED, with the time, when the node asked for a longer pause than `maxWaitMs`; the signal's reason
   */
  turn(calls: number, options: TurnOptions): number | Promise<number>
  /** Milliseconds until the rate and the budget allow a request; 0 when they do now. */
  readyInMs(): number
  /** Milliseconds for which the node asked to be left alone; 0 when that is over. */
  pauseMs(): number
  /** Counts a request that goes without a turn. */
  take(calls: number): number
  /** Counts calls that were served. */
  serve(calls: number): void
  /** Learns from a refusal for the rate. */
  refuse(refusal: RateRefusal & { readonly isQuota: boolean }): void
  /** The rate that is kept to; undefined where none is known. */
  rate(): NodeRate | undefined
  /** How many calls may go in one request. */
  batchSize(): number
  /** Learns that a batch was taken. */
  batchTaken(calls: number): void
  /** Learns that a batch was refused because it is one, or for its size. @param hint - what the node says it takes */
  batchRefused(calls: number, hint?: number): void
  /** Counts a call in the figures. */
  note(method: string, outcome: CallOutcome): void
  /** What this process has learned of ranges of logs; undefined before the first. */
  logRange(): LogRange | undefined
  /** What was stored of ranges of logs, to begin with. */
  keptRange(): LearnedLimits['logRange']
  /** Notes what was learned of ranges of logs. @param width - blocks of the next call */
  noteLogRange(range: LogRange, width: number): void
  /** How many addresses go into one filter for logs; Infinity where none was refused. */
  addressesAtOnce(): number
  /** Learns that a filter was refused for its addresses: the next one has half as many. */
  addressesRefused(addresses: number): void
  /** What was learned so far, to be stored. */
  learned(): LearnedLimits
  /** Goes on from what was learned before a restart, or by another process; what this process has learned itself counts more. */
  recall(stored: LearnedLimits): void
  /** Absent: the chains file sets none. */
  readonly budget: DailyBudget | undefined
  /** Notes whether somebody leaves the URL alone. @param who - the same for open and closed */
  noteBreaker(who: object, isOpen: boolean): void
}

export type CallOutcome = 'ok' | 'refused' | 'rate_limited' | 'unanswered'

export interface TurnOptions {
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
}

export interface NodeLimitsOptions {
  /** Milliseconds since 1970; default that of the machine. */
  readonly clock?: (() => number) | undefined
  /** Default a timer. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined
  readonly meter?: Meter | undefined
  readonly logger?: Pick<Logger, 'warn'> | undefined
}

/** Calls in one HTTP request where nothing else is known. */
const MAX_BATCH = 100
/** How long a node is left alone after a quota is used up, where it does not say. */
const QUOTA_PAUSE_MS = 900_000
const LANES: readonly Lane[] = ['LIVE', 'BACKFILL', 'ENRICHMENT']

interface Waiter {
  readonly calls: number
  readonly lane: Lane
  readonly maxWaitMs: number
  readonly turn: PromiseWithResolvers<number>
}

interface UrlState {
  readonly chain: string
  readonly host: string
  readonly place: number
  readonly declared: DeclaredLimits
  readonly clock: () => number
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly meter: Meter
  readonly logger: Pick<Logger, 'warn'> | undefined
  readonly pacing: Pacing
  readonly budget: DailyBudget | undefined
  readonly waiters: Waiter[]
  /** Ends the sleep of whoever serves the waiters. */
  asleep: AbortController | undefined
  batch: LearnedSize
  logRange: LogRange | undefined
  /** Blocks of the next call for logs. */
  logWidth: number | undefined
  addressesAtOnce: number
  /** What another process has learned of ranges of logs. */
  keptRange: LearnedLimits['logRange']
  /** What `learned` gave when nothing was learned, or when it was last recalled, as JSON. */
  recalled: string
  readonly calls: Map<string, { calls: number; errors: number }>
  requests: number
  readonly opened: Set<object>
}

/** Makes the registry of the configured chains. A URL that stands in none of them is known by its host alone. */
export function createNodeLimits(chains: readonly LimitedChain[] = [], options: NodeLimitsOptions = {}): NodeLimits {
  const known = new Map<string, UrlState>()
  for (const { name, rpcUrls, requestsPerSecond, requestsPerDay, nodeLimits } of chains) {
    for (const [place, url] of rpcUrls.entries()) {
      const declared = { requestsPerSecond, requestsPerDay, ...nodeLimits?.[url] }
      known.set(url, createState({ chain: name, url, place, declared }, options))
    }
  }
  const limits = new Map([...known].map(([url, state]) => [url, limitsOf(state)]))
  return {
    of(url) {
      const found = limits.get(url)
      if (found !== undefined) return found
      const made = limitsOf(createState({ chain: '', url, place: 0, declared: {} }, options))
      limits.set(url, made)
      return made
    },
    figures: () => [...known.values()].map(figuresOf),
  }
}

function createState(
  url: {
    readonly chain: string
    readonly url: string
    readonly place: number
    readonly declared: DeclaredLimits
  },
  { clock = Date.now, sleep = sleepUntilAborted, meter = silentMeter, logger }: NodeLimitsOptions,
): UrlState {
  const { chain, place, declared } = url
  const { requestsPerSecond, requestsPerDay, maxBatch = MAX_BATCH } = declared
  return {
    chain,
    host: new URL(url.url).host,
    place,
    declared,
    clock,
    sleep,
    meter,
    logger,
    pacing: createPacing(requestsPerSecond, clock),
    budget: requestsPerDay === undefined ? undefined : createDailyBudget(requestsPerDay, clock),
    waiters: [],
    asleep: undefined,
    batch: startSize(maxBatch, maxBatch),
    logRange: undefined,
    logWidth: undefined,
    addressesAtOnce: Number.POSITIVE_INFINITY,
    keptRange: undefined,
    recalled: '{}',
    calls: new Map(),
    requests: 0,
    opened: new Set(),
  }
}

async function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, { signal }).catch(() => {})
}

function limitsOf(state: UrlState): UrlLimits {
  const { host, declared, pacing } = state
  return {
    host,
    declared,
    turn: (calls, options) => takeTurn(state, calls, options),
    readyInMs: () => Math.max(pacing.readyInMs(), state.budget?.readyInMs('LIVE') ?? 0),
    pauseMs: () => pauseMs(state),
    take: (calls) => take(state, calls, currentLane),
    serve: (calls) => pacing.serve(calls),
    refuse: (refusal) => refuse(state, refusal),
    rate: () => pacing.rate(),
    batchSize: () => Math.min(state.batch.size, pacing.maxCalls()),
    batchTaken(calls) {
      if (state.batch.refused !== undefined) state.batch = sizeAfterTaken(state.batch, calls)
    },
    batchRefused(calls, hint) {
      state.batch = sizeAfterRefused(state.batch, calls, hint)
      state.meter.set('waybill_node_batch_size', labelsOf(state), state.batch.size)
    },
    note: (method, outcome) => note(state, method, outcome),
    logRange: () => state.logRange,
    keptRange: () => state.keptRange,
    noteLogRange(range, width) {
      state.logRange = range
      if (state.logWidth === width) return
      state.logWidth = width
      state.meter.set('waybill_node_log_range', labelsOf(state), width)
    },
    addressesAtOnce: () => state.addressesAtOnce,
    addressesRefused(addresses) {
      state.addressesAtOnce = Math.max(1, Math.min(state.addressesAtOnce, Math.ceil(addresses / 2)))
    },
    learned: () => learnedBy(state),
    recall: (stored) => recall(state, stored),
    budget: state.budget,
    noteBreaker(who, isOpen) {
      if (isOpen) state.opened.add(who)
      else state.opened.delete(who)
      state.meter.set('waybill_node_breaker_open', labelsOf(state), state.opened.size > 0 ? 1 : 0)
    },
  }
}

function learnedBy({ pacing, batch, logRange, keptRange }: UrlState): LearnedLimits {
  return {
    rate: pacing.learned(),
    batch: keptSizeOf(batch),
    logRange: logRange === undefined ? keptRange : keptRangeOf(logRange),
  }
}

function recall(state: UrlState, stored: LearnedLimits): void {
  // What this process has learned itself since then is newer.
  if (JSON.stringify(learnedBy(state)) !== state.recalled) return
  const { maxBatch = MAX_BATCH } = state.declared
  if (stored.rate !== undefined) state.pacing.recall(stored.rate)
  state.batch = sizeFromKept(startSize(maxBatch, maxBatch), stored.batch)
  state.keptRange = stored.logRange
  state.logRange = undefined
  state.recalled = JSON.stringify(learnedBy(state))
}

const labelsOf = ({ chain, host }: UrlState) => ({ chain, node: host })

function take(state: UrlState, calls: number, laneOf: () => Lane): number {
  const { budget, pacing, meter } = state
  state.requests += 1
  meter.count('waybill_node_requests_total', labelsOf(state))
  if (budget !== undefined) {
    budget.take(pacing.rate()?.unit === 'CALLS' ? calls : 1, laneOf())
    meter.set('waybill_node_budget_left', labelsOf(state), budget.left())
  }
  return pacing.take(calls)
}

function takeTurn(state: UrlState, calls: number, { maxWaitMs, signal }: TurnOptions): number | Promise<number> {
  const lane = currentLane()
  if (state.waiters.length === 0 && readyInMs(state, lane) === 0) return take(state, calls, () => lane)
  signal?.throwIfAborted()
  const turn = Promise.withResolvers<number>()
  const waiter: Waiter = { calls, lane, maxWaitMs, turn }
  const leave = () => {
    remove(state, waiter)
    turn.reject(signal?.reason)
  }
  signal?.addEventListener('abort', leave, { once: true })
  state.waiters.push(waiter)
  if (state.asleep === undefined) void serveWaiters(state)
  return turn.promise.finally(() => signal?.removeEventListener('abort', leave))
}

function pauseMs({ pacing, clock }: UrlState): number {
  const untilMs = pacing.pausedUntilMs()
  return untilMs === undefined ? 0 : untilMs - clock()
}

function readyInMs(state: UrlState, lane: Lane): number {
  return Math.max(state.pacing.readyInMs(), pauseMs(state), state.budget?.readyInMs(lane) ?? 0)
}

function remove(state: UrlState, waiter: Waiter): void {
  const at = state.waiters.indexOf(waiter)
  if (at >= 0) state.waiters.splice(at, 1)
  if (state.waiters.length === 0) state.asleep?.abort()
}

/** Gives turns to the waiters, one after the other, those of the first lane first, until there is none. */
async function serveWaiters(state: UrlState): Promise<void> {
  state.asleep = new AbortController()
  while (state.waiters.length > 0) {
    dismissImpatient(state)
    const next = firstWaiter(state)
    if (next === undefined) break
    const waitMs = readyInMs(state, next.lane)
    if (waitMs > 0) {
      state.asleep = new AbortController()
      await state.sleep(waitMs, state.asleep.signal)
    }
    // Another may have come meanwhile who goes first. The clock is not asked again: it may stand still.
    const served = firstWaiter(state)
    if (served === undefined || isPaused(state, served)) continue
    remove(state, served)
    served.turn.resolve(take(state, served.calls, () => served.lane))
  }
  state.asleep = undefined
}

/** Whether the node asked for a long pause while the waiter slept. */
function isPaused(state: UrlState, { maxWaitMs }: Waiter): boolean {
  return pauseMs(state) > maxWaitMs
}

function firstWaiter({ waiters }: UrlState): Waiter | undefined {
  for (const lane of LANES) {
    const first = waiters.find((each) => each.lane === lane)
    if (first !== undefined) return first
  }
  return undefined
}

/** Sends away those who would have to wait for longer than they want to. */
function dismissImpatient(state: UrlState): void {
  const { host, budget } = state
  const pausedMs = pauseMs(state)
  for (const waiter of state.waiters.slice()) {
    const budgetMs = budget?.readyInMs(waiter.lane) ?? 0
    const waitMs = Math.max(pausedMs, budgetMs)
    // Waiting for a budget would hold up those of other lanes.
    if (budgetMs === 0 && waitMs <= waiter.maxWaitMs) continue
    remove(state, waiter)
    const detail = budgetMs > pausedMs ? whyBudgetWaits(state, budgetMs) : `it asked to be left alone${againIn(waitMs)}`
    waiter.turn.reject(new RpcError('RATE_LIMITED', detail, { host, retryAfterMs: waitMs }))
  }
}

function whyBudgetWaits({ budget, declared, clock }: UrlState, waitMs: number): string {
  const budgetText = `its budget of ${declared.requestsPerDay} requests a day`
  if (budget?.isUsedUp() !== true) {
    return `what is left today of ${budgetText} is kept for new blocks and routes${againIn(waitMs)}`
  }
  const until = new Date(clock() + waitMs).toISOString().slice(0, 16).replace('T', ' ')
  return `${budgetText} is used up: it is asked again at ${until} UTC`
}

const againIn = (waitMs: number) => `: it is asked again in ${Math.ceil(waitMs / 1_000)} s`

function refuse(state: UrlState, { isQuota, ...refusal }: RateRefusal & { readonly isQuota: boolean }): void {
  const { pacing, meter, logger, chain, host } = state
  const before = pacing.rate()?.perSecond
  const waitMs = refusal.waitMs ?? (isQuota ? QUOTA_PAUSE_MS : undefined)
  pacing.refuse({ ...refusal, waitMs })
  const rate = pacing.rate()
  meter.set('waybill_node_rate_per_second', labelsOf(state), rate?.perSecond)
  const fields = { chain, node: host, perSecond: rate?.perSecond, counts: rate?.unit }
  if (isQuota) {
    logger?.warn(
      { ...fields, waitMs },
      'the daily or monthly quota of the node is used up; it is left alone for a while',
    )
  } else if (before === undefined) logger?.warn(fields, 'the node limits its rate; calls are paced from now on')
}

function note(state: UrlState, method: string, outcome: CallOutcome): void {
  const { calls, meter } = state
  const counted = calls.get(method) ?? { calls: 0, errors: 0 }
  counted.calls += 1
  if (outcome !== 'ok') counted.errors += 1
  calls.set(method, counted)
  if (meter !== silentMeter) meter.count('waybill_node_calls_total', { ...labelsOf(state), method, outcome })
}

/** Until when nothing is sent: because the node asked for that, or because its daily budget is used up. */
function pausedUntilMs({ pacing, budget, clock }: UrlState): number | undefined {
  const askedMs = pacing.pausedUntilMs()
  if (budget?.isUsedUp() !== true) return askedMs
  return Math.max(askedMs ?? 0, clock() + budget.readyInMs('LIVE'))
}

function figuresOf(state: UrlState): NodeFigures {
  const { chain, host, place, pacing, budget, batch, logWidth, requests, opened } = state
  const calls: Record<string, CallCount> = Object.fromEntries(
    [...state.calls].map(([method, count]) => [method, { ...count }]),
  )
  return {
    chain,
    host,
    place,
    calls,
    requests,
    rate: pacing.rate(),
    budgetLeft: budget?.left(),
    pausedUntilMs: pausedUntilMs(state),
    logRange: logWidth,
    batchSize: Math.min(batch.size, pacing.maxCalls()),
    breaker: opened.size > 0 ? 'OPEN' : 'CLOSED',
  }
}
