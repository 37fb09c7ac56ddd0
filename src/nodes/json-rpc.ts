/** JSON-RPC 2.0 as text: calls are encoded, answers are matched with their calls. No I/O. */
import { classifyRefusal, retryAfterMsOf } from './classify-refusal.ts'
import { isObject, RpcError, readRefusal } from './rpc-error.ts'

/** One call of a method. */
export interface RpcCall {
  readonly method: string
  /** A list, or JSON text: the calls of routes are mostly hexadecimal, which `JSON.stringify` would search for characters to escape. */
  readonly params: readonly unknown[] | string
  /** Gateways may refuse this call by an HTTP error or for their rate. It then fails alone, and is not repeated. */
  readonly isOptional?: boolean
}

/** The outcome of one call. */
export type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError }

/** Encodes one call. */
export function encodeCall({ method, params }: RpcCall, id = 0): string {
  const json = typeof params === 'string' ? params : JSON.stringify(params)
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${json}}`
}

/** Encodes a batch. The id of a call is its index. */
export function encodeBatch(calls: readonly RpcCall[]): string {
  return `[${calls.map((call, index) => encodeCall(call, index)).join(',')}]`
}

/**
 * Matches the answers of a batch with its calls, by id: nodes answer in any order.
 *
 * @param host - the node's, for the errors
 * @returns one answer a call, in the order of the calls; INCONSISTENT for a call without an answer
 */
export function matchAnswers(calls: readonly RpcCall[], answers: readonly unknown[], host: string): RpcAnswer[] {
  const byId = new Map<unknown, unknown>()
  // Some nodes return ids as strings.
  for (const answer of answers) {
    if (isObject(answer)) byId.set(typeof answer.id === 'string' ? Number(answer.id) : answer.id, answer)
  }
  return calls.map((call, id) => readAnswer(call, byId.get(id), host))
}

/** Reads the answer to a call: its result, else the node's error, else INCONSISTENT. */
export function readAnswer({ method }: RpcCall, answer: unknown, host: string): RpcAnswer {
  if (!isObject(answer)) return failed(`no answer to ${method}`, host)
  const { result, error } = answer
  if (error !== undefined && error !== null) {
    return { ok: false, error: refusalError(error, method, host) }
  }
  return result === undefined ? failed(`no result of ${method}`, host) : { ok: true, result }
}

/** The error of a call, from the `error` member of its answer. */
export function refusalError(error: unknown, method: string, host: string): RpcError {
  const refusal = readRefusal(error)
  const detail = `${method} failed with code ${refusal.code ?? 'unknown'}`
  return new RpcError(classifyRefusal(refusal, method), detail, {
    host,
    refusal,
    retryAfterMs: retryAfterMsOf(refusal),
  })
}

/** The result of a call; undefined where it failed or there is no answer. */
export function resultIn(answer: RpcAnswer | undefined): unknown {
  return answer?.ok ? answer.result : undefined
}

function failed(detail: string, host: string): RpcAnswer {
  return { ok: false, error: new RpcError('INCONSISTENT', detail, { host }) }
}
