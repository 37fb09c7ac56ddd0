import { batchHintOf, isQuota } from './classify-refusal.ts'
import type { HttpPost } from './http-post.ts'
import { matchAnswers, type RpcAnswer, type RpcCall, readAnswer, refusalError } from './json-rpc.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { isObject, RpcError } from './rpc-error.ts'
import { exchange, type Reply } from './rpc-exchange.ts'
import type { UrlLimits } from './url-limits.ts'

/** Asks one node several calls: in batches as large as it takes, as fast as it allows, and again only what it left unanswered. */

/** One URL, and what is known of it. */
export interface NodeState {
  readonly host: string
  readonly policy: NodePolicy
  readonly post: HttpPost
  readonly limits: UrlLimits
}

/** Places of calls in a question, sent together. */
type Group = readonly number[]

/** A question that is being asked: its calls, and what came so far. */
interface Question {
  readonly calls: readonly RpcCall[]
  readonly answers: (RpcAnswer | undefined)[]
  readonly options: AskOptions
  /** Groups that are still to be sent. */
  readonly waiting: Group[]
  /** Batches that were refused for no reason that is known, by their size. If all calls succeed one by one, the batch was at fault. */
  suspected: number | undefined
  /** The most calls of a request, as far as this question has shown. */
  cap: number
  /** Why the node refused in this round for its rate. */
  limited: RpcError | undefined
  wasLimited: boolean
  /** Whether anything was served, and rounds in a row that brought nothing. */
  wasServed: boolean
  fruitless: number
}

/** Asks a node all calls, in as many requests as it takes. @throws RpcError, the signal's reason */
export async function askQuestion(
  node: NodeState,
  calls: readonly RpcCall[],
  options: AskOptions,
): Promise<RpcAnswer[]> {
  const question: Question = {
    calls,
    answers: [],
    options,
    waiting: [calls.map((_, place) => place)],
    suspected: undefined,
    cap: node.policy.maxBatch ?? Number.POSITIVE_INFINITY,
    limited: undefined,
    wasLimited: false,
    wasServed: false,
    fruitless: 0,
  }
  while (question.waiting.length > 0) {
    const groups = takeGroups(node, question)
    if (groups.length === 1) await send(node, question, groups[0] as Group)
    else await sendAll(node, question, groups)
    if (question.limited !== undefined) waitOrThrow(node, question)
  }
  learnSuspected(node, question)
  return question.answers as RpcAnswer[]
}

/** Sends groups side by side, and fails with the first failure when all of them have ended. */
async function sendAll(node: NodeState, question: Question, groups: readonly Group[]): Promise<void> {
  const ends = await Promise.allSettled(groups.map((group) => send(node, question, group)))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Takes the groups that are sent next: of the size that the node takes, and several where they are small. */
function takeGroups({ limits, policy }: NodeState, { waiting, cap }: Question): Group[] {
  const size = Math.min(limits.batchSize(), cap)
  const next: Group[] = []
  while (next.length < maxParallel(policy, size)) {
    const group = waiting.shift()
    if (group === undefined) break
    next.push(group.slice(0, size))
    if (group.length > size) waiting.unshift(group.slice(size))
  }
  return next
}

/** Batches up to this size go side by side. */
const SMALL_BATCH = 10

function maxParallel({ maxParallelCalls }: NodePolicy, size: number): number {
  return size <= SMALL_BATCH ? maxParallelCalls : 1
}

/** Sends a group, and puts back what has to be asked again. @throws RpcError; the signal's reason */
async function send(node: NodeState, question: Question, group: Group): Promise<void> {
  const { limits, policy } = node
  const { signal, maxWaitMs = policy.maxWaitMs } = question.options
  const calls = group.map((place) => question.calls[place] as RpcCall)
  // Who has waited before the question needs no turn for its first request.
  const needsTurn = policy.waitsForTurns || question.wasLimited
  const turn = needsTurn ? limits.turn(calls.length, { maxWaitMs, signal }) : limits.take(calls.length)
  const request = typeof turn === 'number' ? turn : await turn
  let read: GroupRead
  try {
    read = readGroup(node, calls, await exchange(node, calls, signal))
  } catch (error) {
    for (const { method } of calls) limits.noteCall(method, 'unanswered')
    const [call, another] = calls
    // What is optional concerns this call alone.
    const isOwn = another === undefined && call?.isOptional === true && error instanceof RpcError
    if (!isOwn) throw error
    question.answers[group[0] as number] = { ok: false, error }
    return
  }
  // Outside of the `try`: a refusal that is thrown here has been counted already.
  take(node, question, { group, calls, request, read })
}

/**
 * What a group came to: an answer for each call, or why all of them were refused together.
 */
type GroupRead = { readonly kind: 'ANSWERS'; readonly answers: readonly RpcAnswer[] } | RefusedGroup

interface RefusedGroup {
  readonly kind: 'REFUSED'
  readonly error: RpcError
  /** Whether the answer is above our own limit. */
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

/** Takes what a group came to, and learns from it. @throws RpcError where nothing else can be asked */
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
  const limited: number[] = []
  const tooLarge: number[] = []
  let refusal: RpcError | undefined
  for (const [at, answer] of answers.entries()) {
    const place = group[at] as number
    const kind = answer.ok ? undefined : answer.error.kind
    limits.noteCall(
      (calls[at] as RpcCall).method,
      answer.ok ? 'ok' : kind === 'RATE_LIMITED' ? 'rate_limited' : 'refused',
    )
    question.answers[place] = answer
    if (answer.ok) continue
    if (kind === 'RATE_LIMITED' && calls[at]?.isOptional !== true) {
      limited.push(place)
      refusal = answer.error
    } else if (kind === 'TOO_LARGE' && policy.halvesBatches && calls.length > 1) tooLarge.push(place)
  }
  const served = answers.length - limited.length
  if (served > 0) {
    limits.noteServed(served)
    question.fruitless = 0
    question.wasServed = true
  }
  if (refusal !== undefined)
    noteLimited(limits, question, { request, calls: calls.length, places: limited, error: refusal })
  else if (calls.length > 1) limits.batchTaken(calls.length)
  if (tooLarge.length > 0)
    putBack(question, tooLarge, tooLarge.length < calls.length ? tooLarge.length : halfOf(calls.length))
}

/** All calls of a group were refused together. */
function takeRefusal(
  node: NodeState,
  question: Question,
  { group, calls, request, read }: GroupEnd & { readonly read: RefusedGroup },
): void {
  const { error, isTooLong } = read
  const { limits, policy, host } = node
  for (const { method } of calls) limits.noteCall(method, error.kind === 'RATE_LIMITED' ? 'rate_limited' : 'refused')
  const [call, another] = calls
  // What is optional concerns this call alone, and so does what is too large.
  if (another === undefined && (call?.isOptional === true || error.kind === 'TOO_LARGE')) {
    question.answers[group[0] as number] = { ok: false, error }
    return
  }
  if (error.kind === 'RATE_LIMITED') {
    return noteLimited(limits, question, { request, calls: calls.length, places: group, error })
  }
  if (another === undefined) throw error
  if (isTooLong && !policy.halvesBatches) throw error
  if (question.options.maySplit === false) throw new RpcError('TOO_LARGE', 'a batch was refused', { host })
  const isOfAnswers = isTooLong || (error.kind === 'TOO_LARGE' && error.refusal !== undefined)
  if (isOfAnswers && policy.halvesBatches) return putBack(question, group, halfOf(calls.length))
  if (error.kind === 'BATCH_REFUSED') {
    const hint = error.refusal && batchHintOf(error.refusal)
    limits.batchRefused(calls.length, hint ?? (policy.halvesBatches ? undefined : 1))
  } else question.suspected = Math.min(question.suspected ?? calls.length, calls.length)
  question.cap = Math.min(question.cap, limits.batchSize(), capBelow(calls.length, error, policy))
  putBack(question, group, question.cap)
}

/** How many calls are tried next after so many were refused together. */
function capBelow(calls: number, { kind }: RpcError, { halvesBatches }: NodePolicy): number {
  if (kind === 'BATCH_REFUSED') return calls - 1
  if (!halvesBatches) return 1
  return kind === 'TOO_LARGE' ? halfOf(calls) : Math.floor(calls / 2)
}

/** Halves that are sent again: the larger first. */
function halfOf(calls: number): number {
  return Math.ceil(calls / 2)
}

/** Puts calls back, in smaller groups, to be sent before the rest. */
function putBack({ waiting }: Question, places: Group, size: number): void {
  const groups: Group[] = []
  for (let from = 0; from < places.length; from += size) groups.push(places.slice(from, from + size))
  waiting.unshift(...groups)
}

function noteLimited(
  limits: UrlLimits,
  question: Question,
  refused: { readonly request: number; readonly calls: number; readonly places: Group; readonly error: RpcError },
): void {
  const { request, calls, places, error } = refused
  const isQuotaUsed = error.refusal !== undefined && isQuota(error.refusal)
  limits.noteRateRefusal({ request, calls, refused: places.length, waitMs: error.retryAfterMs, isQuota: isQuotaUsed })
  question.limited = error
  question.waiting.unshift(places)
}

/** Rounds in a row that bring nothing but refusals for the rate, after which the node is given up. */
const MAX_FRUITLESS = 5
/** How long a node is left alone that does not say it. */
const USUAL_WAIT_MS = 1_000

/** Decides whether to ask again after a refusal for the rate; the turn that it needs does the waiting. @throws RpcError */
function waitOrThrow({ limits, policy, host }: NodeState, question: Question): void {
  const error = question.limited as RpcError
  const { maxWaitMs = policy.maxWaitMs, maxRefusedRounds = MAX_FRUITLESS } = question.options
  question.limited = undefined
  question.wasLimited = true
  question.fruitless += 1
  const waitMs = Math.max(limits.pauseMs(), limits.readyInMs())
  const mayWait = policy.waitsForTurns || question.wasServed
  if (mayWait && waitMs <= maxWaitMs && question.fruitless <= maxRefusedRounds) return
  const retryAfterMs = error.retryAfterMs ?? Math.max(USUAL_WAIT_MS, waitMs)
  throw new RpcError('RATE_LIMITED', error.detail, { host, refusal: error.refusal, retryAfterMs, cause: error })
}

/** Where each call succeeds by itself, the batch was at fault; else a method may be one for which the URL refuses the whole batch. */
function learnSuspected({ limits, policy }: NodeState, { suspected, answers }: Question): void {
  if (suspected === undefined) return
  if (answers.every((answer) => answer?.ok)) limits.batchRefused(suspected, policy.halvesBatches ? undefined : 1)
}

/** Whether a batch was answered as if it were one call: most nodes that take no batches answer with one error. */
function isSingleAnswer(json: unknown): boolean {
  return isObject(json) && ('error' in json || 'result' in json)
}
