import { setTimeout as sleep } from 'node:timers/promises'
import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { RpcError, type RpcRefusal } from '../../nodes/rpc-error.ts'
import { type CallFrame, type KnownCalls, readCallTracer, readParityTrace } from './call-frames.ts'
import type { TransactionReceipt } from './chain-reader.ts'
import type { Patience } from './patience.ts'

export type TraceReader = ReturnType<typeof createTraceReader>

/** What was read of transactions' calls. */
export interface ReadCalls {
  readonly known: ReadonlyMap<Hex, KnownCalls>
  /** Transactions whose trace a node may have, but did not give now. */
  readonly failed: ReadonlySet<Hex>
}

/** Traces in one exchange; few, because they are large. */
const TRACES_AT_ONCE = 20
const MAX_TRIES = 2

interface TraceReaderOptions {
  readonly client: Pick<RpcClient, 'batch' | 'tryBatch'>
  readonly network: string
  readonly logger: Logger
  readonly clock: () => Date
  /** Before nodes that failed are asked again; default 250. */
  readonly pauseMs?: number
}

/** A reader's options, and what it has learned about the chain's nodes, by their place among the URLs. */
interface Tracing extends TraceReaderOptions {
  readonly nodes: Map<number, NodeTraces>
}

/** Makes what reads, on one chain, the calls of transactions whose receipt does not tell who paid. */
export function createTraceReader(options: TraceReaderOptions) {
  const tracing: Tracing = { ...options, nodes: new Map() }
  return {
    /**
     * Reads traces where a node has them, else the transactions' own calls. What cannot be read is left out: a node that has no traces, or fails at
     * them, does not stop detection. Traces that take longer than `patience` count as failed.
     *
     * @throws RpcError when no node answers for a transaction; the signal's reason
     */
    read: (receipts: readonly TransactionReceipt[], patience: Patience, signal?: AbortSignal) =>
      readCalls(tracing, receipts, patience, signal),
  }
}

async function readCalls(
  tracing: Tracing,
  receipts: readonly TransactionReceipt[],
  patience: Patience,
  signal: AbortSignal | undefined,
): Promise<ReadCalls> {
  const limit: Limit = { signal, tooLate: AbortSignal.timeout(patience.ms) }
  const known = new Map<Hex, KnownCalls>()
  const failed = new Set<Hex>()
  for (const some of chunksOf(receipts, TRACES_AT_ONCE)) {
    const hashes = some.map(({ txHash }) => txHash)
    const read = await readTraces(tracing, hashes, limit)
    for (const [hash, root] of read.traces) known.set(hash, { kind: 'TRACE', root })
    for (const hash of read.failed) failed.add(hash)
  }
  const untraced = receipts.filter(({ txHash }) => !known.has(txHash))
  for (const [hash, call] of await readOwnCalls(tracing.client, untraced, signal)) known.set(hash, call)
  return { known, failed }
}

/** Until when traces are waited for. */
interface Limit {
  readonly signal: AbortSignal | undefined
  readonly tooLate: AbortSignal
}

/** Asks until a node answers with traces, or with errors of its own. Finding out which node traces how costs no try. */
async function readTraces(tracing: Tracing, hashes: readonly Hex[], limit: Limit) {
  const traces = new Map<Hex, CallFrame>()
  const failed = new Set<Hex>()
  for (let tries = 0; tries < MAX_TRIES; ) {
    const missing = hashes.filter((hash) => !traces.has(hash))
    const round = await askRound(tracing, missing, limit)
    if (round.kind === 'UNSUPPORTED') {
      change(tracing, round.node, afterUnsupported, round.why)
      continue
    }
    if (round.kind === 'NOT_ASKED') {
      const hasFailedNode = [...tracing.nodes.values()].some(({ failures }) => failures > 0)
      if (hasFailedNode) for (const hash of missing) failed.add(hash)
      break
    }
    if (round.kind === 'FAILED') {
      for (const hash of missing) failed.add(hash)
    } else {
      failed.clear()
      for (const [index, hash] of missing.entries()) {
        const answer = round.answers[index]
        const trace = readTrace(round.method, answer)
        if (trace !== undefined) traces.set(hash, trace)
        else if (!isStateGone(answer)) failed.add(hash)
      }
      if (!round.answers.some(isNotKnownYet)) break
    }
    tries += limit.tooLate.aborted ? MAX_TRIES : 1
    if (tries < MAX_TRIES) await sleep(tracing.pauseMs ?? 250, undefined, { signal: limit.signal })
    else if (round.kind === 'FAILED') {
      for (const node of round.asked) change(tracing, node, afterFailure, round.error.message)
    }
  }
  return { traces, failed }
}

/** What asking for traces once came to. */
type Round =
  /** All nodes are being left alone. */
  | { readonly kind: 'NOT_ASKED' }
  /** No node that was asked answered. */
  | { readonly kind: 'FAILED'; readonly asked: ReadonlySet<number>; readonly error: RpcError }
  /** The node does not trace by the method that it was asked for. */
  | { readonly kind: 'UNSUPPORTED'; readonly node: number; readonly why: string }
  | { readonly kind: 'ANSWERED'; readonly method: TraceMethod; readonly answers: readonly RpcAnswer[] }

async function askRound(tracing: Tracing, hashes: readonly Hex[], limit: Limit): Promise<Round> {
  const { client, clock, nodes } = tracing
  const asked = new Set<number>()
  const callsOf = (node: number) => {
    const { method, restUntilMs } = tracesOf(tracing, node)
    if (clock().getTime() < restUntilMs) return undefined
    asked.add(node)
    return hashes.map((hash) => traceCall(method, hash))
  }
  const { signal, tooLate } = limit
  const ended = signal === undefined ? tooLate : AbortSignal.any([signal, tooLate])
  const answered = await orRpcError(tooLate.aborted ? LATE : client.tryBatch(callsOf, ended), limit)
  if (answered === undefined) return { kind: 'NOT_ASKED' }
  if (answered instanceof RpcError) return { kind: 'FAILED', asked, error: answered }
  const { node, answers } = answered
  const known = tracesOf(tracing, node)
  const why = whyUnsupported(answers, known.method)
  if (why !== undefined) return { kind: 'UNSUPPORTED', node, why }
  nodes.set(node, { ...known, failures: 0 })
  return { kind: 'ANSWERED', method: known.method, answers }
}

function tracesOf({ nodes }: Tracing, node: number): NodeTraces {
  return nodes.get(node) ?? UNTRIED_NODE
}

const LATE = new RpcError('TIMEOUT', 'the traces took too long')

async function orRpcError<T>(asking: Promise<T> | RpcError, { signal, tooLate }: Limit): Promise<T | RpcError> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof RpcError) return error
    signal?.throwIfAborted()
    if (tooLate.aborted) return LATE
    throw error
  }
}

function change(
  tracing: Tracing,
  node: number,
  after: (known: NodeTraces, nowMs: number) => NodeTraces,
  why: string,
): void {
  const { nodes, network, logger, clock } = tracing
  const before = tracesOf(tracing, node)
  const now = after(before, clock().getTime())
  nodes.set(node, now)
  if (now.restUntilMs === before.restUntilMs) return
  logger.info(
    { chain: network, node, why },
    'the node gives no traces: who paid coins through a contract may stay unknown',
  )
}

async function readOwnCalls(
  client: Pick<RpcClient, 'batch'>,
  receipts: readonly TransactionReceipt[],
  signal: AbortSignal | undefined,
): Promise<Map<Hex, KnownCalls>> {
  if (receipts.length === 0) return new Map()
  const calls = receipts.map(({ txHash }) => ({ method: 'eth_getTransactionByHash', params: [txHash] }))
  const answers = await client.batch(calls, signal)
  return new Map(
    receipts.flatMap((receipt, index) => {
      const call = readOwnCall(answers[index], receipt)
      return call === undefined ? [] : [[receipt.txHash, call]]
    }),
  )
}

/** Undefined where the node does not have the transaction in the receipt's block. */
function readOwnCall(answer: RpcAnswer | undefined, { blockHash }: TransactionReceipt): KnownCalls | undefined {
  if (answer?.ok !== true || answer.result === null) return undefined
  const transaction = answer.result as { readonly blockHash?: string; readonly input?: string; readonly value?: string }
  const { input, value } = transaction
  if (transaction.blockHash !== blockHash || input === undefined || value === undefined) return undefined
  return { kind: 'OWN_CALL', input: input as Hex, value: BigInt(value) }
}

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

function traceCall(method: TraceMethod, hash: Hex): RpcCall {
  const params = method === 'debug_traceTransaction' ? [hash, { tracer: 'callTracer', timeout: '5s' }] : [hash]
  return { method, params }
}

/** @returns undefined for an answer that is no trace */
function readTrace(method: TraceMethod, answer: RpcAnswer | undefined): CallFrame | undefined {
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
