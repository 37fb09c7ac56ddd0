import type { Hex } from '../../domain/hex.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { RpcRefusal } from '../../nodes/rpc-error.ts'
import { type CallFrame, readCallTracer, readParityTrace } from './call-frames.ts'

/** Which nodes trace by which method, learned from their answers: values and rules, without I/O. */

type TraceMethod = 'debug_traceTransaction' | 'trace_transaction'

/** What is known about a node's traces. */
export interface NodeTraces {
  /** The method to try next. */
  readonly method: TraceMethod
  /** It is not asked before then: milliseconds since 1970. */
  readonly restUntilMs: number
  /** How many times in a row it was left alone because it failed. */
  readonly failures: number
}

export const UNTRIED_NODE: NodeTraces = { method: 'debug_traceTransaction', restUntilMs: 0, failures: 0 }

/** A node without traces is asked again after this time: it may have been configured since. */
const UNSUPPORTED_REST_MS = 3_600_000
/** A node that fails is left alone for this time at first, then twice as long each time. */
const FAILED_REST_MS = 60_000

export function afterFailure(node: NodeTraces, nowMs: number): NodeTraces {
  const restMs = Math.min(FAILED_REST_MS * 2 ** node.failures, UNSUPPORTED_REST_MS)
  return { ...node, restUntilMs: nowMs + restMs, failures: node.failures + 1 }
}

/** The node cannot trace by its method. The other one is tried before the node counts as one without traces. */
export function afterUnsupported(node: NodeTraces, nowMs: number): NodeTraces {
  if (node.method === 'debug_traceTransaction') return { ...node, method: 'trace_transaction' }
  return { method: 'debug_traceTransaction', restUntilMs: nowMs + UNSUPPORTED_REST_MS, failures: 0 }
}

export function traceCall(method: TraceMethod, hash: Hex): RpcCall {
  const params = method === 'debug_traceTransaction' ? [hash, { tracer: 'callTracer', timeout: '5s' }] : [hash]
  return { method, params }
}

/** @returns undefined for an answer that is no trace */
export function readTrace(method: TraceMethod, answer: RpcAnswer | undefined): CallFrame | undefined {
  if (answer?.ok !== true) return undefined
  return method === 'debug_traceTransaction' ? readCallTracer(answer.result) : readParityTrace(answer.result)
}

/** The node does not have the method, or not for this caller. The words of providers agree better than their codes. */
const NO_METHOD_CODE = -32601
const NO_METHOD =
  /method\b.*\bnot\b|unknown method|tracer|module|namespace|\btier\b|\bplan\b|upgrade|-32601|not (supported|enabled|allowed|implemented)|unsupported|unauthorized|forbidden|disabled/i

/** The node does not know the transaction yet. */
const NOT_KNOWN_YET = /not found|unknown (transaction|block)|no such/i

/** The node no longer has the state of that block, so it will never have the trace. */
const NO_STATE = /\b(state|trie|pruned|archive|historical|resource not found)\b/i

/** @returns why the node cannot trace by a method at all; undefined where an answer is a trace, or none says so */
export function whyUnsupported(answers: readonly RpcAnswer[], method: TraceMethod): string | undefined {
  if (answers.some((answer) => readTrace(method, answer) !== undefined)) return undefined
  const [why] = answers.flatMap((answer) => {
    // A node that does not know the tracer may answer a list of EVM steps.
    if (answer.ok) return isEmpty(answer.result) ? [] : ['it answers no calls']
    const isUnsupported = refusalOf(answer)?.code === NO_METHOD_CODE || saysRefusal(answer, NO_METHOD)
    return isUnsupported ? [answer.error.message] : []
  })
  return why
}

/** Whether the node may know the transaction in a moment: nodes behind one URL are not all at the same block. */
export function isNotKnownYet(answer: RpcAnswer): boolean {
  return answer.ok ? isEmpty(answer.result) : saysRefusal(answer, NOT_KNOWN_YET)
}

/** Whether the node will never have the trace. */
export function isStateGone(answer: RpcAnswer | undefined): boolean {
  return saysRefusal(answer, NO_STATE)
}

/** The node's own words and code: an error's message also names the host and the method, which can contain any word. */
function refusalOf(answer: RpcAnswer | undefined): RpcRefusal | undefined {
  return answer?.ok === false && answer.error.kind === 'REFUSED' ? answer.error.refusal : undefined
}

function saysRefusal(answer: RpcAnswer | undefined, words: RegExp): boolean {
  return words.test(refusalOf(answer)?.message ?? '')
}

function isEmpty(result: unknown): boolean {
  return result === null || (Array.isArray(result) && result.length === 0)
}
