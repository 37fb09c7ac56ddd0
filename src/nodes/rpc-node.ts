import { createHttpPost, type HttpPost, type HttpReply, ReplyTooLargeError } from './http-post.ts'
import { encodeBatch, encodeCall, matchAnswers, type RpcAnswer, type RpcCall, readAnswer } from './json-rpc.ts'
import { isObject, RpcError } from './rpc-error.ts'
import { startTimeLimit } from './time-limit.ts'

/** What differs between those who ask nodes: routes make few small reads and give up soon, detection reads megabytes of logs. */
export interface NodePolicy {
  /** The largest answer that is read, after decompression. */
  readonly maxAnswerBytes: number
  readonly takesGzip: boolean
  /** For one HTTP request; undefined leaves the time to the caller's signal. */
  readonly timeoutMs?: number | undefined
  /** Single calls under way at a time, at a node that takes no batches. */
  readonly maxParallelCalls: number
  /** Whether a batch that is too large is halved. Else it fails as TOO_LARGE, and the caller asks for less. */
  readonly halvesBatches: boolean
  /**
   * Whether JSON-RPC under a 4xx status counts as the answer, and any other body under 4xx as a refusal of the batch: gateways differ in
   * how they refuse single methods. Else all but 200 and the usual refusals of batches mean that the URL does not work.
   */
  readonly reads4xxBodies: boolean
  /** Called before each HTTP request. */
  readonly onRequest?: (() => void) | undefined
}

interface AskOptions {
  readonly signal?: AbortSignal | undefined
  /** Whether calls may be sent one by one where the node refuses the batch; default true. Else that fails as TOO_LARGE. */
  readonly mayDivide?: boolean
}

/** The JSON-RPC client of one URL. */
export interface RpcNode {
  readonly host: string
  /**
   * Makes all calls in one HTTP request, or in several where the node refuses the batch or finds it too large. It learns once whether the
   * node takes batches.
   *
   * @returns in the order of the calls; a call that fails by itself fails no other
   * @throws RpcError when the node did not answer; the signal's reason when it fires
   */
  ask(calls: readonly RpcCall[], options?: AskOptions): Promise<readonly RpcAnswer[]>
}

/** One URL, and what is known of it. */
interface NodeState {
  readonly host: string
  readonly policy: NodePolicy
  readonly post: HttpPost
  takesBatches: boolean
}

/** Makes the client of a URL. Does nothing until it is asked. */
export function createRpcNode(url: string, policy: NodePolicy): RpcNode {
  const { host } = new URL(url)
  const post = createHttpPost(url, { maxBytes: policy.maxAnswerBytes, takesGzip: policy.takesGzip })
  const node: NodeState = { host, policy, post, takesBatches: true }
  return { host, ask: (calls, options = {}) => askTogether(node, calls, options) }
}

async function askTogether(node: NodeState, calls: readonly RpcCall[], options: AskOptions): Promise<RpcAnswer[]> {
  const { policy, host } = node
  if (calls.length === 1 || !node.takesBatches) return askSingly(node, calls, options.signal)
  const reply = await exchange(node, encodeBatch(calls), options.signal)
  if (reply.kind === 'ANSWER' && Array.isArray(reply.json)) {
    const answers = matchAnswers(calls, reply.json, host)
    return policy.halvesBatches ? repeatTooLarge(node, calls, answers, options) : answers
  }
  if (reply.kind === 'ANSWER' && !isSingleAnswer(reply.json)) {
    throw new RpcError('INCONSISTENT', 'a batch was answered with something else', { host })
  }
  if (reply.kind !== 'ANSWER' && reply.error.kind === 'TOO_LARGE' && policy.halvesBatches) {
    return askInHalves(node, calls, options)
  }
  if (reply.kind === 'TOO_LONG') throw reply.error
  if (options.mayDivide === false) throw new RpcError('TOO_LARGE', 'a batch was refused', { host })
  const answers = await askSingly(node, calls, options.signal)
  // Where each call succeeds by itself, the batch was at fault; else a method may be one for which the URL refuses the whole batch.
  if (answers.every(({ ok }) => ok)) node.takesBatches = false
  return answers
}

async function askInHalves(node: NodeState, calls: readonly RpcCall[], options: AskOptions): Promise<RpcAnswer[]> {
  const middle = Math.ceil(calls.length / 2)
  const first = await askTogether(node, calls.slice(0, middle), options)
  return [...first, ...(await askTogether(node, calls.slice(middle), options))]
}

/** Asks again for what was too large: some nodes answer a batch as far as it fits, and refuse the rest of it. */
async function repeatTooLarge(
  node: NodeState,
  calls: readonly RpcCall[],
  answers: RpcAnswer[],
  options: AskOptions,
): Promise<RpcAnswer[]> {
  const isTooLarge = (answer: RpcAnswer | undefined) => answer?.ok === false && answer.error.kind === 'TOO_LARGE'
  const left = calls.filter((_, place) => isTooLarge(answers[place]))
  if (left.length === 0) return answers
  const again = left.length < calls.length ? askTogether : askInHalves
  const repeated = (await again(node, left, options)).values()
  return answers.map((answer) => (isTooLarge(answer) ? (repeated.next().value ?? answer) : answer))
}

async function askSingly(
  node: NodeState,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<RpcAnswer[]> {
  const { maxParallelCalls } = node.policy
  const answers: RpcAnswer[] = []
  for (let from = 0; from < calls.length; from += maxParallelCalls) {
    const group = calls.slice(from, from + maxParallelCalls)
    answers.push(...(await Promise.all(group.map((call) => askOne(node, call, signal)))))
  }
  return answers
}

/** @throws RpcError when the node did not answer, or wants fewer requests: further calls would fail as well */
async function askOne(node: NodeState, call: RpcCall, signal: AbortSignal | undefined): Promise<RpcAnswer> {
  try {
    const reply = await exchange(node, encodeCall(call), signal)
    if (reply.kind !== 'ANSWER') throw reply.error
    const answer = readAnswer(call, reply.json, node.host)
    if (!answer.ok && answer.error.kind === 'RATE_LIMITED') throw answer.error
    return answer
  } catch (error) {
    // What is too large concerns this call alone.
    const isOwn = error instanceof RpcError && (call.isOptional === true || error.kind === 'TOO_LARGE')
    if (isOwn) return { ok: false, error }
    throw error
  }
}

/**
 * What an HTTP request brought:
 *
 * - `ANSWER`: JSON
 * - `REFUSED`: the node does not take the request as it is
 * - `TOO_LONG`: an answer above our own limit
 */
type Reply =
  | { readonly kind: 'ANSWER'; readonly json: unknown }
  | { readonly kind: 'REFUSED' | 'TOO_LONG'; readonly error: RpcError }

/** @throws RpcError when the node did not answer; the signal's reason */
async function exchange(node: NodeState, body: string, signal: AbortSignal | undefined): Promise<Reply> {
  const { host, policy, post } = node
  signal?.throwIfAborted()
  const limit = startTimeLimit(policy.timeoutMs, signal)
  try {
    policy.onRequest?.()
    return readReply(await post(body, limit.signal), node)
  } catch (cause) {
    signal?.throwIfAborted()
    if (limit.isOver()) throw new RpcError('TIMEOUT', `no answer within ${policy.timeoutMs} ms`, { host })
    if (cause instanceof RpcError) throw cause
    if (cause instanceof ReplyTooLargeError) {
      return { kind: 'TOO_LONG', error: new RpcError('TOO_LARGE', cause.message, { host, cause }) }
    }
    throw new RpcError('UNREACHABLE', describeNetworkError(cause), { host, cause })
  } finally {
    limit.stop()
  }
}

/** Statuses by which nodes and gateways refuse a batch where single calls would do. */
const BATCH_REFUSED_STATUSES = new Set([400, 405, 413, 422, 501])

/** @throws RpcError when the answer does not come from a node that works */
function readReply({ status, headers, body }: HttpReply, { host, policy }: NodeState): Reply {
  if (status === 200) {
    const json = parseJson(body)
    if (json === undefined) throw new RpcError('INCONSISTENT', 'its answer is not JSON', { host })
    return { kind: 'ANSWER', json }
  }
  const error = errorOfStatus(status, headers, host)
  const mayHoldAnswer = policy.reads4xxBodies && status >= 400 && status < 500 && error.kind === 'UNREACHABLE'
  const json = mayHoldAnswer ? parseJson(body) : undefined
  if (isJsonRpc(json)) return { kind: 'ANSWER', json }
  if (mayHoldAnswer || BATCH_REFUSED_STATUSES.has(status)) return { kind: 'REFUSED', error }
  throw error
}

const USUAL_RETRY_AFTER_MS = 1_000

function errorOfStatus(status: number, headers: HttpReply['headers'], host: string): RpcError {
  const retryAfterMs = readRetryAfter(headers['retry-after']) ?? (status === 429 ? USUAL_RETRY_AFTER_MS : undefined)
  const detail = `HTTP status ${status}`
  if (status === 429) return new RpcError('RATE_LIMITED', `${detail}, too many requests`, { host, retryAfterMs })
  return new RpcError(status === 413 ? 'TOO_LARGE' : 'UNREACHABLE', detail, { host, retryAfterMs })
}

/** The header's seconds as milliseconds; nodes send no dates. */
function readRetryAfter(header: string | undefined): number | undefined {
  return header !== undefined && /^[1-9]\d{0,8}$/.test(header) ? Number(header) * 1_000 : undefined
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function isJsonRpc(json: unknown): boolean {
  return Array.isArray(json) || (isObject(json) && 'jsonrpc' in json)
}

/** Whether a batch was answered as if it were one call: most nodes that take no batches answer with one error. */
function isSingleAnswer(json: unknown): boolean {
  return isObject(json) && ('error' in json || 'result' in json)
}

/** The code of a failed request, without the URL: `ECONNREFUSED`. */
function describeNetworkError(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : 'the connection failed'
}
