import { classifyRefusal, QUOTA_STATUS, retryAfterMsOf } from './classify-refusal.ts'
import { type HttpPost, type HttpReply, ReplyTooLargeError } from './http-post.ts'
import { encodeBatch, encodeCall, type RpcCall } from './json-rpc.ts'
import type { UrlLimits } from './node-limits.ts'
import type { NodePolicy } from './node-policy.ts'
import { isObject, RpcError, type RpcErrorKind, readRefusal } from './rpc-error.ts'
import { startTimeLimit } from './time-limit.ts'

/** Sends one HTTP request to a node, and reads from its status and body what the node meant. */

/**
 * The outcome of an HTTP request:
 *
 * - `ANSWER`: JSON, which may hold errors of single calls
 * - `REFUSED`: the node refused the request as a whole
 * - `TOO_LONG`: the answer is larger than the policy's `maxAnswerBytes`
 */
export type Reply =
  | { readonly kind: 'ANSWER'; readonly json: unknown }
  | { readonly kind: 'REFUSED' | 'TOO_LONG'; readonly error: RpcError }

interface ExchangedNode {
  readonly host: string
  readonly policy: NodePolicy
  readonly post: HttpPost
  readonly limits: Pick<UrlLimits, 'tracer' | 'declared'>
}

/** Sends calls in one HTTP request, as a batch where there are several. @throws RpcError when the node did not answer; the signal's reason */
export async function exchange(
  node: ExchangedNode,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<Reply> {
  const { host, policy, post, limits } = node
  signal?.throwIfAborted()
  const [{ method }] = calls as [RpcCall]
  const span = limits.tracer?.begin(method, 'CLIENT', {
    'rpc.system.name': 'jsonrpc',
    'rpc.method': method,
    'server.address': host,
    'waybill.calls': calls.length,
  })
  let failure: string | undefined
  using limit = startTimeLimit(policy.timeoutMs, signal)
  try {
    const body = calls.length === 1 ? encodeCall(calls[0] as RpcCall) : encodeBatch(calls)
    const traceparent = limits.declared.traceparent === true ? span?.traceparent : undefined
    return readReply(await post(body, limit.signal, traceparent), node, calls)
  } catch (cause) {
    failure = cause instanceof RpcError ? cause.kind : 'UNREACHABLE'
    signal?.throwIfAborted()
    if (limit.isOver()) throw new RpcError('TIMEOUT', `no answer within ${policy.timeoutMs} ms`, { host })
    if (cause instanceof RpcError) throw cause
    if (cause instanceof ReplyTooLargeError) {
      return { kind: 'TOO_LONG', error: new RpcError('TOO_LARGE', cause.message, { host, cause }) }
    }
    throw new RpcError('UNREACHABLE', describeNetworkError(cause), { host, cause })
  } finally {
    span?.end(failure)
  }
}

/** Statuses with which nodes and gateways refuse a batch, although they answer single calls. */
const BATCH_REFUSED_STATUSES = new Set([400, 405, 413, 422, 501])
/** Errors of JSON-RPC that are believed under any HTTP status. */
const BELIEVED_KINDS: ReadonlySet<RpcErrorKind> = new Set([
  'BATCH_REFUSED',
  'TOO_LARGE',
  'TOO_MANY_ADDRESSES',
  'BEHIND',
  // Some nodes answer a revert with status 400 or 500.
  'REVERTED',
])

/** @throws RpcError when the answer shows that the URL does not work */
function readReply(reply: HttpReply, node: ExchangedNode, calls: readonly RpcCall[]): Reply {
  const { status, body } = reply
  if (status !== 200) return readFailure(reply, node, calls)
  const json = parseJson(body)
  if (json === undefined) throw new RpcError('INCONSISTENT', 'its answer is not JSON', { host: node.host })
  return { kind: 'ANSWER', json }
}

/** @throws as {@link readReply} */
function readFailure(
  { status, headers, body }: HttpReply,
  { host, policy }: ExchangedNode,
  calls: readonly RpcCall[],
): Reply {
  const json = parseJson(body)
  const refusal =
    isObject(json) && isObject(json['error'])
      ? readRefusal(json['error'])
      : status === QUOTA_STATUS
        ? { code: QUOTA_STATUS, message: '' }
        : undefined
  const method = calls.length === 1 ? (calls[0] as RpcCall).method : 'a batch'
  const kind = refusal && classifyRefusal(refusal, method)
  const retryAfterMs = readRetryAfter(headers) ?? (refusal && retryAfterMsOf(refusal))
  const detail = `HTTP status ${status}${status === 429 ? ', too many requests' : ''}`
  const errorOf = (errorKind: RpcErrorKind) => new RpcError(errorKind, detail, { host, refusal, retryAfterMs })
  if (status === 429 || status === QUOTA_STATUS || kind === 'RATE_LIMITED') {
    return { kind: 'REFUSED', error: errorOf('RATE_LIMITED') }
  }
  const error = errorOf(status === 413 ? 'TOO_LARGE' : 'UNREACHABLE')
  if (kind !== undefined && BELIEVED_KINDS.has(kind)) return { kind: 'ANSWER', json }
  // The URL's key is refused, so every call would be: another URL has to be asked.
  if (status === 401) throw error
  const isClientError = status >= 400 && status < 500 && policy.isBulk && error.kind === 'UNREACHABLE'
  if (isClientError && isJsonRpc(json)) return { kind: 'ANSWER', json }
  if (status >= 500 && refusal !== undefined && policy.isBulk) {
    // Some nodes refuse batches and ranges this way. A node that is down fails the single call too.
    if (calls.length > 1) return { kind: 'REFUSED', error }
    if (method === 'eth_getLogs') return { kind: 'ANSWER', json }
  }
  if (isClientError || BATCH_REFUSED_STATUSES.has(status)) return { kind: 'REFUSED', error }
  throw error
}

/** Reads `Retry-After`, in milliseconds. A date is compared with the node's `Date` header where there is one. */
function readRetryAfter({ 'retry-after': header, date }: HttpReply['headers']): number | undefined {
  if (header === undefined) return undefined
  if (/^[1-9]\d{0,8}$/.test(header)) return Number(header) * 1_000
  const untilMs = Date.parse(header)
  const nowMs = date === undefined ? Date.now() : Date.parse(date)
  return untilMs > nowMs ? untilMs - nowMs : undefined
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

/** The error's code, such as `ECONNREFUSED`: its message may name the URL, which may hold a key. */
function describeNetworkError(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : 'the connection failed'
}
