import { batchHintOf, isQuota } from './classify-refusal.ts'
import { createHttpPost, type HttpPost } from './http-post.ts'
import { matchAnswers, type RpcAnswer, type RpcCall, readAnswer, refusalError } from './json-rpc.ts'
import { createNodeLimits } from './node-limits.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { isObject, RpcError, type RpcErrorKind } from './rpc-error.ts'
import { exchange, type Reply } from './rpc-exchange.ts'
import type { CallOutcome, UrlLimits } from './url-limits.ts'

/** The JSON-RPC client of one URL. */
export interface RpcNode {
  readonly host: string
  /**
   * Makes all calls in one HTTP request, or in several where the node takes only smaller batches or none; their size is learned. What is
   * refused for the rate is asked again after a pause.
   *
   * @returns in the order of the calls; a call that fails by itself fails no other
   * @throws RpcError when the node did not answer; the signal's reason when it fires
   */
  ask(calls: readonly RpcCall[], options?: AskOptions): Promise<readonly RpcAnswer[]>
}

/** Makes the client of a URL. Does nothing until it is asked. @param limits - what is known of the URL's limits */
export function createRpcNode(
  url: string,
  policy: NodePolicy,
  limits: UrlLimits = createNodeLimits().of(url),
): RpcNode {
  const { host } = new URL(url)
  const post = createHttpPost(url, { maxBytes: policy.maxAnswerBytes, takesGzip: policy.takesGzip })
  const node = { host, policy, post, limits }
  return { host, ask: (calls, options = {}) => askQuestion(node, calls, options) }
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

/** Calls that are being made, and their answers so far. */
interface Question {
  readonly calls: readonly RpcCall[]
  readonly answers: (RpcAnswer | undefined)[]
  readonly options: AskOptions
  /** Groups that are still to be sent. */
  readonly waiting: Group[]
  /** Size of the smallest batch that was refused for an unknown reason. If each call then succeeds alone, batches were the reason. */
  suspectedBatch: number | undefined
  /** The most calls in one request, as learned from the refusals of this question. */
  maxCalls: number
  /** The last refusal for the rate in this round. */
  rateRefusal: RpcError | undefined
  /** Whether any round had such a refusal. */
  wasRateLimited: boolean
  /** Whether the node has answered any call. */
  wasServed: boolean
  /** Rounds in a row in which it answered no call. */
  emptyRounds: number
}

/** Asks a node all calls, in as many requests as it takes. @throws RpcError, the signal's reason */
async function askQuestion(node: NodeState, calls: readonly RpcCall[], options: AskOptions): Promise<RpcAnswer[]> {
  const question: Question = {
    calls,
    answers: [],
    options,
    waiting: [calls.map((_, place) => place)],
    suspectedBatch: undefined,
    maxCalls: node.policy.maxBatch ?? Number.POSITIVE_INFINITY,
    rateRefusal: undefined,
    wasRateLimited: false,
    wasServed: false,
    emptyRounds: 0,
  }
  while (question.waiting.length > 0) {
    const groups = takeGroups(node, question)
    if (groups.length === 1) await send(node, question, groups[0] as Group)
    else await sendAll(node, question, groups)
    if (question.rateRefusal !== undefined) waitOrThrow(node, question)
  }
  learnBatchSize(node, question)
  return question.answers as RpcAnswer[]
}

/** Sends groups in parallel. @throws the first failure, once all have ended */
async function sendAll(node: NodeState, question: Question, groups: readonly Group[]): Promise<void> {
  const ends = await Promise.allSettled(groups.map((group) => send(node, question, group)))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Takes the groups to send next, cut to the size that the node takes; several where that is small. */
function takeGroups({ limits, policy }: NodeState, { waiting, maxCalls }: Question): Group[] {
  const size = Math.min(limits.batchSize(), maxCalls)
  const next: Group[] = []
  while (next.length < maxParallel(policy, size)) {
    const group = waiting.shift()
    if (group === undefined) break
    next.push(group.slice(0, size))
    if (group.length > size) waiting.unshift(group.slice(size))
  }
  return next
}

/** Batches up to this size are sent in parallel. */
const SMALL_BATCH = 10

function maxParallel({ maxParallelCalls }: NodePolicy, size: number): number {
  return size <= SMALL_BATCH ? maxParallelCalls : 1
}

/** Sends a group, and puts back what has to be asked again. @throws RpcError; the signal's reason */
async function send(node: NodeState, question: Question, group: Group): Promise<void> {
  const { limits, policy } = node
  const { signal, maxWaitMs = policy.maxWaitMs } = question.options
  const calls = group.map((place) => question.calls[place] as RpcCall)
  // Callers without slots, such as routes, have waited for the rate before they asked.
  const needsSlot = policy.waitsForSlots || question.wasRateLimited
  const slot = needsSlot ? limits.slot(calls.length, { maxWaitMs, signal }) : limits.take(calls.length)
  const request = typeof slot === 'number' ? slot : await slot
  let read: GroupRead
  try {
    read = readGroup(node, calls, await exchange(node, calls, signal))
  } catch (error) {
    for (const { method } of calls) limits.noteCall(method, 'unanswered')
    const [call, another] = calls
    // An optional call fails alone.
    const isOptionalCall = another === undefined && call?.isOptional === true && error instanceof RpcError
    if (!isOptionalCall) throw error
    question.answers[group[0] as number] = { ok: false, error }
    return
  }
  // Outside the `try`, since a refusal that is thrown here was counted already.
  take(node, question, { group, calls, request, read })
}

/** The outcome of a group: an answer for each call, or why all were refused together. */
type GroupRead = { readonly kind: 'ANSWERS'; readonly answers: readonly RpcAnswer[] } | RefusedGroup

interface RefusedGroup {
  readonly kind: 'REFUSED'
  readonly error: RpcError
  /** Whether the answer was larger than the policy's `maxAnswerBytes`. */
  readonly isTooLong?: boolean
}

function readGroup({ host }: NodeState, calls: readonly RpcCall[], reply: Reply): GroupRead {
  if (reply.kind !== 'ANSWER') return { kind: 'REFUSED', error: reply.error, isTooLong: reply.kind === 'TOO_LONG' }
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

interface GroupEnd {
  readonly group: Group
  readonly calls: readonly RpcCall[]
  /** The number of its request. */
  readonly request: number
  readonly read: GroupRead
}

/** Keeps a group's answers, puts back what to ask again, and learns the node's limits. @throws RpcError where asking again is of no use */
function take(node: NodeState, question: Question, end: GroupEnd): void {
  if (end.read.kind === 'REFUSED') takeRefusal(node, question, { ...end, read: end.read })
  else takeAnswers(node, question, end, end.read.answers)
}

function takeAnswers(
  { limits, policy }: NodeState,
  question: Question,
  { group, calls, request }: GroupEnd,
  answers: readonly RpcAnswer[],
): void {
  const rateLimited: number[] = []
  const tooLarge: number[] = []
  let refusal: RpcError | undefined
  for (const [at, answer] of answers.entries()) {
    const place = group[at] as number
    const kind = answer.ok ? undefined : answer.error.kind
    limits.noteCall((calls[at] as RpcCall).method, outcomeOf(kind))
    question.answers[place] = answer
    if (answer.ok) continue
    if (kind === 'RATE_LIMITED' && calls[at]?.isOptional !== true) {
      rateLimited.push(place)
      refusal = answer.error
    } else if (kind === 'TOO_LARGE' && policy.halvesBatches && calls.length > 1) tooLarge.push(place)
  }
  const served = answers.length - rateLimited.length
  if (served > 0) {
    limits.noteServed(served)
    question.emptyRounds = 0
    question.wasServed = true
  }
  if (refusal !== undefined)
    putBackLimited(limits, question, { request, calls: calls.length, places: rateLimited, error: refusal })
  else if (calls.length > 1) limits.batchTaken(calls.length)
  if (tooLarge.length > 0)
    putBack(question, tooLarge, tooLarge.length < calls.length ? tooLarge.length : halfOf(calls.length))
}

function outcomeOf(kind: RpcErrorKind | undefined): CallOutcome {
  if (kind === undefined) return 'ok'
  if (kind === 'REVERTED') return 'reverted'
  return kind === 'RATE_LIMITED' ? 'rate_limited' : 'refused'
}

/** All calls of a group were refused together. */
function takeRefusal(
  node: NodeState,
  question: Question,
  { group, calls, request, read }: GroupEnd & { readonly read: RefusedGroup },
): void {
  const { error, isTooLong } = read
  const { limits, policy, host } = node
  for (const { method } of calls) limits.noteCall(method, outcomeOf(error.kind))
  const [call, another] = calls
  // An optional call and one that is too large fail alone.
  if (another === undefined && (call?.isOptional === true || error.kind === 'TOO_LARGE')) {
    question.answers[group[0] as number] = { ok: false, error }
    return
  }
  if (error.kind === 'RATE_LIMITED') {
    return putBackLimited(limits, question, { request, calls: calls.length, places: group, error })
  }
  if (another === undefined) throw error
  if (isTooLong && !policy.halvesBatches) throw error
  if (question.options.maySplit === false) throw new RpcError('TOO_LARGE', 'a batch was refused', { host })
  const isOfAnswers = isTooLong || (error.kind === 'TOO_LARGE' && error.refusal !== undefined)
  if (isOfAnswers && policy.halvesBatches) return putBack(question, group, halfOf(calls.length))
  if (error.kind === 'BATCH_REFUSED') {
    const hint = error.refusal && batchHintOf(error.refusal)
    limits.batchRefused(calls.length, hint ?? (policy.halvesBatches ? undefined : 1))
  } else question.suspectedBatch = Math.min(question.suspectedBatch ?? calls.length, calls.length)
  question.maxCalls = Math.min(question.maxCalls, limits.batchSize(), fewerThan(calls.length, error, policy))
  putBack(question, group, question.maxCalls)
}

/** How many calls to try next in one request after so many were refused together. */
function fewerThan(calls: number, { kind }: RpcError, { halvesBatches }: NodePolicy): number {
  if (kind === 'BATCH_REFUSED') return calls - 1
  if (!halvesBatches) return 1
  return kind === 'TOO_LARGE' ? halfOf(calls) : Math.floor(calls / 2)
}

/** Rounded up, so that the two halves are the whole. */
function halfOf(calls: number): number {
  return Math.ceil(calls / 2)
}

/** Puts calls back in groups of a size, to be sent before all others. */
function putBack({ waiting }: Question, places: Group, size: number): void {
  const groups: Group[] = []
  for (let from = 0; from < places.length; from += size) groups.push(places.slice(from, from + size))
  waiting.unshift(...groups)
}

function putBackLimited(
  limits: UrlLimits,
  question: Question,
  refused: { readonly request: number; readonly calls: number; readonly places: Group; readonly error: RpcError },
): void {
  const { request, calls, places, error } = refused
  const isQuotaUsed = error.refusal !== undefined && isQuota(error.refusal)
  limits.noteRateRefusal({ request, calls, refused: places.length, waitMs: error.retryAfterMs, isQuota: isQuotaUsed })
  question.rateRefusal = error
  question.waiting.unshift(places)
}

/** After so many rounds in a row without an answer, each refused for the rate, the question fails. */
const MAX_EMPTY_ROUNDS = 5
/** The retry time in the error where the node names none. */
const USUAL_WAIT_MS = 1_000

/** Decides whether to ask again after a refusal for the rate. The wait itself is that for the next slot. @throws RpcError where the question fails */
function waitOrThrow({ limits, policy, host }: NodeState, question: Question): void {
  const error = question.rateRefusal as RpcError
  const { maxWaitMs = policy.maxWaitMs, maxRefusedRounds = MAX_EMPTY_ROUNDS } = question.options
  question.rateRefusal = undefined
  question.wasRateLimited = true
  question.emptyRounds += 1
  const waitMs = Math.max(limits.pauseMs(), limits.readyInMs())
  const mayWait = policy.waitsForSlots || question.wasServed
  if (mayWait && waitMs <= maxWaitMs && question.emptyRounds <= maxRefusedRounds) return
  const retryAfterMs = error.retryAfterMs ?? Math.max(USUAL_WAIT_MS, waitMs)
  throw new RpcError('RATE_LIMITED', error.detail, { host, refusal: error.refusal, retryAfterMs, cause: error })
}

/** Learns that the node takes no such batch, where each call succeeded alone. Where one failed, its method may be why the batch was refused. */
function learnBatchSize({ limits, policy }: NodeState, { suspectedBatch, answers }: Question): void {
  if (suspectedBatch === undefined) return
  if (answers.every((answer) => answer?.ok)) limits.batchRefused(suspectedBatch, policy.halvesBatches ? undefined : 1)
}

/** Whether a batch was answered as if it were one call: most nodes that take no batches answer with one error. */
function isSingleAnswer(json: unknown): boolean {
  return isObject(json) && ('error' in json || 'result' in json)
}
