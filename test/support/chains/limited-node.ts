/**
 * A small HTTP server before a real node which limits as providers do: their rates, quotas, ranges of blocks and sizes of batches, in their words.
 */
import { json } from 'node:stream/consumers'
import { serveLocally } from '../../../demo/network/local-server.ts'

/** How a call or a request is refused. */
export interface Refusal {
  readonly code: number
  readonly message: string
  readonly data?: unknown
  /** The HTTP status where the whole request is refused; default 200. */
  readonly status?: number
}

/** The limits of a node. What is absent is not limited. */
export interface NodeTerms {
  readonly rate?: RateTerms
  /** Calls or requests, as `rate` counts them, until the end of the day (UTC). */
  readonly daily?: { readonly allowed: number; readonly refusal: Refusal }
  /** The widest range of `eth_getLogs`. */
  readonly range?: { readonly blocks: number; readonly refuse: (asked: AskedRange) => Refusal }
  /** The most logs of an answer. */
  readonly logs?: { readonly most: number; readonly refuse: (asked: AskedRange) => Refusal }
  readonly batch?: BatchTerms
  /** Addresses of one filter for logs. */
  readonly addresses?: { readonly most: number; readonly refusal: Refusal }
  /** Whether ids come back as strings. */
  readonly stringIds?: boolean
}

export interface RateTerms {
  readonly allowed: number
  readonly windowMs: number
  /** Whether each call of a batch counts; else a request is one. */
  readonly counts: 'REQUESTS' | 'CALLS'
  /**
   * - `STATUS`: the HTTP status of the refusal, default 429, with the error as its body
   * - `ANSWER`: one error, under HTTP 200
   * - `ITEMS`: each call of a batch that is above the limit
   */
  readonly form: 'STATUS' | 'ANSWER' | 'ITEMS'
  /** How the header Retry-After tells the rest of the window; default not at all. */
  readonly retryAfter?: 'SECONDS' | 'DATE'
  readonly refusal: Refusal
}

export interface BatchTerms {
  /** 1: it takes no batches. */
  readonly most: number
  /**
   * - `ONE_ERROR`: one error instead of a list
   * - `ONE_ELEMENT`: a list of one error, with the id of the first call
   * - `EACH_ITEM`: the error for each call
   * - `STATUS`: the refusal's HTTP status, with the error as its body
   * - `BARE_STATUS`: the status with a page of HTML
   */
  readonly form: 'ONE_ERROR' | 'ONE_ELEMENT' | 'EACH_ITEM' | 'STATUS' | 'BARE_STATUS'
  readonly refusal: Refusal
}

export interface AskedRange {
  readonly from: number
  readonly to: number
  readonly blocks: number
}

export interface LimitedNode {
  readonly url: string
  /** Replaces all limits from now on, and begins new windows. */
  limit(terms: NodeTerms): void
  /** Calls so far, batches taken apart, refused ones included. */
  calls(): number
  /** HTTP requests so far, refused ones included. */
  requests(): number
  /** Calls that were refused because of a limit. */
  refused(): number
  /** The calls of each request so far. */
  sizes(): readonly number[]
  /** Calls for the logs of a range so far. */
  ranges(): number
  /** Sets the counts to 0. */
  resetCounts(): void
  stop(): Promise<void>
}

interface JsonCall {
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}

interface JsonAnswer {
  readonly jsonrpc: '2.0'
  readonly id: unknown
  readonly result?: unknown
  readonly error?: object
}

/** An answer, and the HTTP status that goes with it where it is the only one. */
interface Answered extends JsonAnswer {
  readonly status?: number | undefined
}

interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body: unknown
}

interface LimitedState {
  readonly target: string
  readonly clock: () => number
  terms: NodeTerms
  window: { startedAtMs: number; used: number }
  day: { number: number; used: number }
  counts: Counts
}

interface Counts {
  readonly sizes: number[]
  ranges: number
  refused: number
}

const noCounts = (): Counts => ({ sizes: [], ranges: 0, refused: 0 })

/**
 * Starts the server on loopback.
 *
 * @param target - the URL of the node
 * @param clock - milliseconds since 1970; windows of rates are measured by it
 */
export async function startLimitedNode(
  target: string,
  terms: NodeTerms = {},
  clock: () => number = Date.now,
): Promise<LimitedNode> {
  const state: LimitedState = {
    target,
    clock,
    terms,
    window: { startedAtMs: Number.NEGATIVE_INFINITY, used: 0 },
    day: { number: 0, used: 0 },
    counts: noCounts(),
  }
  const { url, stop } = await serveLocally((request, response) => {
    const respond = async () => {
      const { status, headers = {}, body } = await answer(state, (await json(request)) as JsonCall | JsonCall[])
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    respond().catch(() => response.destroy())
  })
  return {
    url,
    limit(next) {
      state.terms = next
      state.window = { startedAtMs: Number.NEGATIVE_INFINITY, used: 0 }
      state.day = { number: 0, used: 0 }
    },
    calls: () => state.counts.sizes.reduce((sum, size) => sum + size, 0),
    requests: () => state.counts.sizes.length,
    refused: () => state.counts.refused,
    sizes: () => state.counts.sizes,
    ranges: () => state.counts.ranges,
    resetCounts() {
      state.counts = noCounts()
    },
    stop,
  }
}

async function answer(state: LimitedState, body: JsonCall | JsonCall[]): Promise<Reply> {
  const calls = Array.isArray(body) ? body : [body]
  state.counts.sizes.push(calls.length)
  state.counts.ranges += calls.filter((call) => rangeOf(call) !== undefined).length
  const refused = refuseDay(state, body) ?? refuseBatch(state, body)
  if (refused !== undefined) return refuseAll(state, calls, refused)
  const admitted = admit(state, calls.length)
  const { rate, stringIds } = state.terms
  const isAllRefused = admitted < calls.length && (rate?.form !== 'ITEMS' || !Array.isArray(body))
  if (rate !== undefined && isAllRefused) return refuseAll(state, calls, refuseRate(state, rate, body))
  const answers = await forward(state, calls.slice(0, admitted))
  const denied = calls.slice(admitted).map((call): Answered => errorOf(call, rate?.refusal))
  state.counts.refused += denied.length
  const status = Array.isArray(body) ? 200 : (answers[0]?.status ?? 200)
  const all = [...answers, ...denied].map(({ status: _status, id, ...rest }) => ({
    ...rest,
    id: stringIds ? String(id) : id,
  }))
  return { status, body: Array.isArray(body) ? all : all[0] }
}

function refuseAll(state: LimitedState, calls: readonly JsonCall[], reply: Reply): Reply {
  state.counts.refused += calls.length
  return reply
}

function costOf({ terms }: LimitedState, calls: number): number {
  return terms.rate?.counts === 'CALLS' ? calls : 1
}

const DAY_MS = 86_400_000

function refuseDay(state: LimitedState, body: JsonCall | JsonCall[]): Reply | undefined {
  const { daily } = state.terms
  if (daily === undefined) return undefined
  const today = Math.floor(state.clock() / DAY_MS)
  if (state.day.number !== today) state.day = { number: today, used: 0 }
  const cost = costOf(state, Array.isArray(body) ? body.length : 1)
  if (state.day.used + cost > daily.allowed) return wholeError(daily.refusal, body, daily.refusal.status ?? 429)
  state.day.used += cost
  return undefined
}

function refuseBatch({ terms: { batch } }: LimitedState, body: JsonCall | JsonCall[]): Reply | undefined {
  if (batch === undefined || !Array.isArray(body) || body.length <= batch.most) return undefined
  const { form, refusal } = batch
  switch (form) {
    case 'ONE_ERROR':
      return wholeError(refusal, { id: null }, 200)
    case 'ONE_ELEMENT':
      return { status: 200, body: [errorOf({ id: body[0]?.id }, refusal)] }
    case 'EACH_ITEM':
      return { status: refusal.status ?? 200, body: body.map((call) => errorOf(call, refusal)) }
    case 'STATUS':
      return wholeError(refusal, { id: null }, refusal.status ?? 400)
    case 'BARE_STATUS':
      return { status: refusal.status ?? 413, body: '<html><h1>refused</h1></html>' }
  }
}

/** Counts calls in the window of the rate. @returns how many of them are let through */
function admit(state: LimitedState, calls: number): number {
  const { rate } = state.terms
  if (rate === undefined) return calls
  const nowMs = state.clock()
  if (nowMs - state.window.startedAtMs >= rate.windowMs) state.window = { startedAtMs: nowMs, used: 0 }
  const left = rate.allowed - state.window.used
  const cost = costOf(state, calls)
  const isPartly = rate.form === 'ITEMS' && rate.counts === 'CALLS'
  const admitted = cost <= left ? calls : isPartly ? left : 0
  if (admitted > 0) state.window.used += isPartly ? admitted : cost
  return admitted
}

function refuseRate(state: LimitedState, rate: RateTerms, body: JsonCall | JsonCall[]): Reply {
  const untilMs = state.window.startedAtMs + rate.windowMs
  const leftMs = untilMs - state.clock()
  const headers: Record<string, string> = {}
  if (rate.retryAfter === 'SECONDS') headers['retry-after'] = String(Math.ceil(leftMs / 1_000))
  if (rate.retryAfter === 'DATE') headers['retry-after'] = new Date(Math.ceil(untilMs / 1_000) * 1_000).toUTCString()
  const status = rate.form === 'STATUS' ? (rate.refusal.status ?? 429) : 200
  return { ...wholeError(rate.refusal, Array.isArray(body) ? { id: null } : body, status), headers }
}

function wholeError(refusal: Refusal, body: { id: unknown } | JsonCall[], status: number): Reply {
  return { status, body: errorOf(Array.isArray(body) ? { id: null } : body, refusal) }
}

function errorOf({ id }: { readonly id: unknown }, refusal: Refusal | undefined): JsonAnswer {
  const { code, message, data } = refusal ?? {}
  return { jsonrpc: '2.0', id, error: { code, message, data } }
}

async function forward(state: LimitedState, calls: readonly JsonCall[]): Promise<Answered[]> {
  const refusals = calls.map((call) => refuseQuestion(state.terms, call))
  const asked = calls.filter((_, at) => refusals[at] === undefined)
  const answers = asked.length === 0 ? [] : await askNode(state.target, asked)
  const byId = new Map(answers.map((each) => [each.id, each]))
  return calls.map((call, at) => {
    const refusal = refusals[at] ?? refuseAnswer(state.terms, call, byId.get(call.id))
    if (refusal !== undefined) state.counts.refused += 1
    return refusal === undefined
      ? (byId.get(call.id) as Answered)
      : { ...errorOf(call, refusal), status: refusal.status }
  })
}

async function askNode(target: string, calls: readonly JsonCall[]): Promise<JsonAnswer[]> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(target, { method: 'POST', headers, body: JSON.stringify(calls) })
  return (await response.json()) as JsonAnswer[]
}

function rangeOf({ method, params }: JsonCall): AskedRange | undefined {
  const [filter] = params as [{ fromBlock?: string; toBlock?: string } | undefined]
  if (method !== 'eth_getLogs' || filter?.fromBlock === undefined || filter.toBlock === undefined) return undefined
  const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
  return { from, to, blocks: to - from + 1 }
}

function refuseQuestion({ range, addresses }: NodeTerms, call: JsonCall): Refusal | undefined {
  const asked = rangeOf(call)
  const { address } = (call.params[0] ?? {}) as { address?: string | string[] }
  if (addresses !== undefined && Array.isArray(address) && address.length > addresses.most) return addresses.refusal
  return range !== undefined && asked !== undefined && asked.blocks > range.blocks ? range.refuse(asked) : undefined
}

function refuseAnswer({ logs }: NodeTerms, call: JsonCall, answered: JsonAnswer | undefined): Refusal | undefined {
  const asked = rangeOf(call)
  if (logs === undefined || asked === undefined || !Array.isArray(answered?.result)) return undefined
  return answered.result.length > logs.most ? logs.refuse(asked) : undefined
}
