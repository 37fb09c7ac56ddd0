import { chunksOf } from '../domain/collections.ts'
import { batchHintOf, isQuota } from './classify-refusal.ts'
import { createHttpPost, type HttpPost } from './http-post.ts'
import { matchAnswers, type RpcAnswer, type RpcCall, readAnswer, refusalError } from './json-rpc.ts'
import type { CallOutcome, UrlLimits } from './node-limits.ts'
import { createNodeLimits } from './node-limits.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { isObject, RpcError, type RpcErrorKind } from './rpc-error.ts'
import { exchange, type Reply } from './rpc-exchange.ts'

/** The JSON-RPC client of one URL. */
export type RpcNode = ReturnType<typeof createRpcNode>

/** Makes the client of a URL. Does nothing until it is asked. @param limits - what is known of the URL's limits */
export function createRpcNode(url: string, policy: NodePolicy, limits: UrlLimits = createNodeLimits().of(url)) {
  const { host } = new URL(url)
  const post = createHttpPost(url, { maxBytes: policy.maxAnswerBytes, takesGzip: policy.isBulk })
  const node = { host, policy, post, limits }
  return {
    host,
    /**
     * Makes all calls in one HTTP request, or in several where the node takes only smaller batches or none; their size is learned. What is
     * refused for the rate is asked again after a pause.
     *
     * @returns in the order of the calls; a call that fails by itself fails no other
     * @throws RpcError when the node did not answer; the signal's reason when it fires
     */
    ask: (calls: readonly RpcCall[], options: AskOptions = {}): Promise<readonly RpcAnswer[]> =>
      new Question(node, calls, options).ask(),
  }
}

/** Sends calls to one node: in batches as large as it takes, as fast as it allows. What it refused for the rate or the size is sent again. */

/** One URL, and what is known of it. */
interface NodeState {
  readonly host: string
  readonly policy: NodePolicy
  readonly post: HttpPost
  readonly limits: UrlLimits
}

/** Calls of a question that go in one HTTP request, by their index. */
type Group = readonly number[]

/** A group that was sent. */
interface SentGroup {
  readonly group: Group
  readonly calls: readonly RpcCall[]
  /** The number of its request. */
  readonly request: number
}

/** Batches up to this size are sent in parallel. */
const SMALL_BATCH = 10
/** After so many rounds in a row without an answer, each refused for the rate, the question fails. */
const MAX_EMPTY_ROUNDS = 5
/** The retry time in the error where the node names none. */
const USUAL_WAIT_MS = 1_000

/** Calls that are being made, and their answers so far. */
class Question {
  readonly #node: NodeState
  readonly #calls: readonly RpcCall[]
  readonly #options: AskOptions
  readonly #maxWaitMs: number
  readonly #answers: (RpcAnswer | undefined)[] = []
  /** Groups that are still to be sent. */
  readonly #waiting: Group[]
  /** Size of the smallest batch that was refused for an unknown reason. If each call then succeeds alone, batches were the reason. */
  #suspectedBatch: number | undefined
  /** The most calls in one request, as learned from the refusals of this question. */
  #maxCalls = Number.POSITIVE_INFINITY
  /** The last refusal for the rate in this round. */
  #rateRefusal: RpcError | undefined
  /** Whether any round had such a refusal. */
  #wasRateLimited = false
  /** Whether the node has answered any call. */
  #wasServed = false
  /** Rounds in a row in which it answered no call. */
  #emptyRounds = 0

  constructor(node: NodeState, calls: readonly RpcCall[], options: AskOptions) {
    this.#node = node
    this.#calls = calls
    this.#options = options
    this.#maxWaitMs = options.maxWaitMs ?? node.policy.maxWaitMs
    this.#waiting = calls.length === 0 ? [] : [calls.map((_, place) => place)]
  }

  /** Asks the node all calls, in as many requests as it takes. @throws RpcError, the signal's reason */
  async ask(): Promise<RpcAnswer[]> {
    while (this.#waiting.length > 0) {
      const groups = this.#takeGroups()
      if (groups.length === 1) await this.#send(groups[0] as Group)
      else await this.#sendAll(groups)
      if (this.#rateRefusal !== undefined) this.#waitOrThrow(this.#rateRefusal)
    }
    this.#learnBatchSize()
    return this.#answers as RpcAnswer[]
  }

  /** Sends groups in parallel. @throws the first failure, once all have ended */
  async #sendAll(groups: readonly Group[]): Promise<void> {
    const ends = await Promise.allSettled(groups.map((group) => this.#send(group)))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  /** Takes the groups to send next, cut to the size that the node takes; several where that is small. */
  #takeGroups(): Group[] {
    const { limits, policy } = this.#node
    const size = Math.min(limits.batchSize(), this.#maxCalls)
    const most = size <= SMALL_BATCH ? policy.maxParallelCalls : 1
    const next: Group[] = []
    while (next.length < most) {
      const group = this.#waiting.shift()
      if (group === undefined) break
      next.push(group.slice(0, size))
      if (group.length > size) this.#waiting.unshift(group.slice(size))
    }
    return next
  }

  /** Sends a group, and puts back what has to be asked again. @throws RpcError; the signal's reason */
  async #send(group: Group): Promise<void> {
    const { limits, policy } = this.#node
    const { signal } = this.#options
    const calls = group.map((place) => this.#calls[place] as RpcCall)
    // Callers without slots, such as routes, have waited for the rate before they asked.
    const needsSlot = policy.waitsForSlots || this.#wasRateLimited
    const slot = needsSlot
      ? limits.slot(calls.length, { maxWaitMs: this.#maxWaitMs, signal })
      : limits.take(calls.length)
    const request = typeof slot === 'number' ? slot : await slot
    let read: GroupRead
    try {
      read = readGroup(this.#node, calls, await exchange(this.#node, calls, signal))
    } catch (error) {
      for (const { method } of calls) limits.noteCall(method, 'unanswered')
      const [call, another] = calls
      // An optional call fails alone.
      const isOptionalCall = another === undefined && call?.isOptional === true && error instanceof RpcError
      if (!isOptionalCall) throw error
      this.#answers[group[0] as number] = { ok: false, error }
      return
    }
    // Outside the `try`, since a refusal that is thrown here was counted already.
    if (read.kind === 'ANSWERS') this.#takeAnswers({ group, calls, request }, read.answers)
    else this.#takeRefusal({ group, calls, request }, read)
  }

  /** Keeps a group's answers, puts back what to ask again, and learns the node's limits. */
  #takeAnswers({ group, calls, request }: SentGroup, answers: readonly RpcAnswer[]): void {
    const { limits, policy } = this.#node
    const rateLimited: number[] = []
    const tooLarge: number[] = []
    let refusal: RpcError | undefined
    for (const [at, answer] of answers.entries()) {
      const place = group[at] as number
      const kind = answer.ok ? undefined : answer.error.kind
      limits.noteCall((calls[at] as RpcCall).method, outcomeOf(kind))
      this.#answers[place] = answer
      if (answer.ok) continue
      if (kind === 'RATE_LIMITED' && calls[at]?.isOptional !== true) {
        rateLimited.push(place)
        refusal = answer.error
      } else if (kind === 'TOO_LARGE' && policy.isBulk && calls.length > 1) tooLarge.push(place)
    }
    const served = answers.length - rateLimited.length
    if (served > 0) {
      limits.noteServed(served)
      this.#emptyRounds = 0
      this.#wasServed = true
    }
    if (refusal !== undefined) this.#putBackLimited({ group: rateLimited, calls, request }, refusal)
    else if (calls.length > 1) limits.batchTaken(calls.length)
    if (tooLarge.length > 0)
      this.#putBack(tooLarge, tooLarge.length < calls.length ? tooLarge.length : halfOf(calls.length))
  }

  /** All calls of a group were refused together. @throws RpcError where asking again is of no use */
  #takeRefusal(sent: SentGroup, { error, kind }: RefusedGroup): void {
    const { group, calls } = sent
    const isTooLong = kind === 'TOO_LONG'
    const { limits, policy, host } = this.#node
    for (const { method } of calls) limits.noteCall(method, outcomeOf(error.kind))
    const [call, another] = calls
    // An optional call and one that is too large fail alone.
    if (another === undefined && (call?.isOptional === true || error.kind === 'TOO_LARGE')) {
      this.#answers[group[0] as number] = { ok: false, error }
      return
    }
    if (error.kind === 'RATE_LIMITED') return this.#putBackLimited(sent, error)
    if (another === undefined) throw error
    if (isTooLong && !policy.isBulk) throw error
    if (this.#options.maySplit === false) throw new RpcError('TOO_LARGE', 'a batch was refused', { host })
    const isOfAnswers = isTooLong || (error.kind === 'TOO_LARGE' && error.refusal !== undefined)
    if (isOfAnswers && policy.isBulk) return this.#putBack(group, halfOf(calls.length))
    if (error.kind === 'BATCH_REFUSED') {
      const hint = error.refusal && batchHintOf(error.refusal)
      limits.batchRefused(calls.length, hint ?? (policy.isBulk ? undefined : 1))
    } else this.#suspectedBatch = Math.min(this.#suspectedBatch ?? calls.length, calls.length)
    this.#maxCalls = Math.min(this.#maxCalls, limits.batchSize(), fewerThan(calls.length, error, policy))
    this.#putBack(group, this.#maxCalls)
  }

  /** Puts calls back in groups of a size, to be sent before all others. */
  #putBack(places: Group, size: number): void {
    this.#waiting.unshift(...chunksOf(places, size))
  }

  /** Puts back what was refused for the rate. @param sent - its group has these calls alone */
  #putBackLimited({ request, calls, group }: SentGroup, error: RpcError): void {
    const isQuotaUsed = error.refusal !== undefined && isQuota(error.refusal)
    const refusal = { request, calls: calls.length, refused: group.length, waitMs: error.retryAfterMs }
    this.#node.limits.noteRateRefusal({ ...refusal, isQuota: isQuotaUsed })
    this.#rateRefusal = error
    this.#waiting.unshift(group)
  }

  /** Decides whether to ask again after a refusal for the rate. The wait itself is that for the next slot. @throws RpcError where the question fails */
  #waitOrThrow(error: RpcError): void {
    const { limits, policy, host } = this.#node
    const { maxRefusedRounds = MAX_EMPTY_ROUNDS } = this.#options
    this.#rateRefusal = undefined
    this.#wasRateLimited = true
    this.#emptyRounds += 1
    const waitMs = Math.max(limits.pauseMs(), limits.readyInMs())
    const mayWait = policy.waitsForSlots || this.#wasServed
    if (mayWait && waitMs <= this.#maxWaitMs && this.#emptyRounds <= maxRefusedRounds) return
    const retryAfterMs = error.retryAfterMs ?? Math.max(USUAL_WAIT_MS, waitMs)
    throw new RpcError('RATE_LIMITED', error.detail, { host, refusal: error.refusal, retryAfterMs, cause: error })
  }

  /** Learns that the node takes no such batch, where each call succeeded alone. Where one failed, its method may be why the batch was refused. */
  #learnBatchSize(): void {
    const { limits, policy } = this.#node
    const suspected = this.#suspectedBatch
    if (suspected === undefined || !this.#answers.every((answer) => answer?.ok)) return
    limits.batchRefused(suspected, policy.isBulk ? undefined : 1)
  }
}

/** The outcome of a group: an answer for each call, or why all were refused together. */
type GroupRead = { readonly kind: 'ANSWERS'; readonly answers: readonly RpcAnswer[] } | RefusedGroup
type RefusedGroup = Exclude<Reply, { readonly kind: 'ANSWER' }>

function readGroup({ host }: NodeState, calls: readonly RpcCall[], reply: Reply): GroupRead {
  if (reply.kind !== 'ANSWER') return reply
  const { json } = reply
  const [first] = calls as [RpcCall]
  if (calls.length === 1) {
    const answer = readAnswer(first, Array.isArray(json) && json.length === 1 ? json[0] : json, host)
    return { kind: 'ANSWERS', answers: [answer] }
  }
  if (Array.isArray(json)) {
    const [only] = json
    if (json.length === 1 && isObject(only) && isObject(only['error'])) {
      return { kind: 'REFUSED', error: refusalError(only['error'], 'a batch', host) }
    }
    const answers = matchAnswers(calls, json, host)
    const refused = answers.map((answer) => (answer.ok ? undefined : answer.error))
    const isRefused = refused.every((error) => error?.kind === 'BATCH_REFUSED')
    return isRefused && refused[0] !== undefined ? { kind: 'REFUSED', error: refused[0] } : { kind: 'ANSWERS', answers }
  }
  if (!isSingleAnswer(json)) {
    throw new RpcError('INCONSISTENT', 'a batch was answered with something else', { host })
  }
  const { error } = json as { error?: unknown }
  return { kind: 'REFUSED', error: refusalError(error ?? {}, 'a batch', host) }
}

function outcomeOf(kind: RpcErrorKind | undefined): CallOutcome {
  if (kind === undefined) return 'ok'
  if (kind === 'REVERTED') return 'reverted'
  return kind === 'RATE_LIMITED' ? 'rate_limited' : 'refused'
}

/** How many calls to try next in one request after so many were refused together. */
function fewerThan(calls: number, { kind }: RpcError, { isBulk }: NodePolicy): number {
  if (kind === 'BATCH_REFUSED') return calls - 1
  if (!isBulk) return 1
  return kind === 'TOO_LARGE' ? halfOf(calls) : Math.floor(calls / 2)
}

/** Rounded up, so that the two halves are the whole. */
function halfOf(calls: number): number {
  return Math.ceil(calls / 2)
}

/** Whether a batch was answered as if it were one call: most nodes that take no batches answer with one error. */
function isSingleAnswer(json: unknown): boolean {
  return isObject(json) && ('error' in json || 'result' in json)
}
