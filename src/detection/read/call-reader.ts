import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { KnownCalls } from '../match/native-payers.ts'
import { type CallFrame, readCallTracer, readParityTrace } from './call-frames.ts'
import type { TransactionReceipt } from './read-transaction.ts'

/** Reads what transactions called, where a receipt does not tell who paid. */
export interface CallReader {
  /**
   * Reads traces where a node has them, else the transactions' own calls. What cannot be read is left out, and a node that has no traces, or
   * fails at them, stops nothing.
   *
   * @throws RpcError when no node answers for a transaction; the signal's reason
   */
  read(receipts: readonly TransactionReceipt[], signal?: AbortSignal): Promise<ReadCalls>
}

/** What was read of transactions' calls. */
export interface ReadCalls {
  readonly known: ReadonlyMap<Hex, KnownCalls>
  /** Transactions of which a node may have a trace, and failed to give it now. */
  readonly failed: ReadonlySet<Hex>
}

type TraceMethod = 'debug_traceTransaction' | 'trace_transaction'
const FIRST_METHOD: TraceMethod = 'debug_traceTransaction'

/** What is known of a node's traces. */
interface NodeTraces {
  method: TraceMethod
  /** It is not asked until then: milliseconds since 1970. */
  restUntilMs: number
  /** Times in a row that it was left alone because it failed. */
  failures: number
}

interface Traces {
  readonly traces: ReadonlyMap<Hex, CallFrame>
  readonly failed: ReadonlySet<Hex>
}

/** Traces in one exchange: they are large. */
const TRACES_AT_ONCE = 20
const TRIES = 2
/** A node without traces may have been given them since. */
const WITHOUT_REST_MS = 3_600_000
/** A node that fails is left alone for so long at first, then for twice as long each time. */
const FAILED_REST_MS = 60_000

/** The node does not have the method, or not for this caller. Providers agree on words more than on codes. */
const NO_METHOD =
  /method\b.*\bnot\b|unknown method|tracer|module|namespace|\btier\b|\bplan\b|upgrade|-32601|not (supported|enabled|allowed|implemented)|unsupported|unauthorized|forbidden|disabled/i

/** The node does not know the transaction yet. */
const NOT_THERE_YET = /not found|unknown (transaction|block)|no such/i

/** The node has no state of that block any more, so that it will never have the trace. */
const NO_STATE = /\b(state|trie|pruned|archive|historical|resource not found)\b/i

/** Makes the reader of one chain. */
export function createCallReader(options: {
  readonly client: Pick<RpcClient, 'batch' | 'tryBatch'>
  readonly network: string
  readonly logger: Logger
  readonly clock: () => Date
  /** Before a node that failed is asked again; default 250. */
  readonly pauseMs?: number
}): CallReader {
  const { client, network, logger, clock, pauseMs = 250 } = options
  const nodes = new Map<number, NodeTraces>()

  function tracesOf(node: number): NodeTraces {
    const known = nodes.get(node) ?? { method: FIRST_METHOD, restUntilMs: 0, failures: 0 }
    nodes.set(node, known)
    return known
  }

  const isResting = (node: number) => clock().getTime() < tracesOf(node).restUntilMs

  function rest(node: number, ms: number, why: string): void {
    tracesOf(node).restUntilMs = clock().getTime() + ms
    logger.info({ network, node, why }, 'a node gives no traces: who paid coins through a contract may stay unknown')
  }

  function restAfterFailure(asked: Iterable<number>, error: RpcError): void {
    for (const node of asked) {
      const known = tracesOf(node)
      rest(node, Math.min(FAILED_REST_MS * 2 ** known.failures, WITHOUT_REST_MS), error.message)
      known.failures += 1
    }
  }

  /** A node is asked for its other method before it is taken for one without traces. */
  function changeMethod(node: number, why: string): void {
    const known = tracesOf(node)
    if (known.method !== FIRST_METHOD) {
      rest(node, WITHOUT_REST_MS, why)
      known.failures = 0
    }
    known.method = known.method === FIRST_METHOD ? 'trace_transaction' : FIRST_METHOD
  }

  /** Asks until a node answers with traces or refusals of its own; each round rules out a method or a node, or uses up a try. */
  async function readTraces(hashes: readonly Hex[], signal: AbortSignal | undefined): Promise<Traces> {
    const traces = new Map<Hex, CallFrame>()
    const failed = new Set<Hex>()
    for (let tries = 0; tries < TRIES; ) {
      const missing = hashes.filter((hash) => !traces.has(hash))
      const asked = new Set<number>()
      const callsOf = (node: number) => {
        if (isResting(node)) return undefined
        asked.add(node)
        return missing.map((hash) => traceCall(tracesOf(node).method, hash))
      }
      const answered = await unlessFailed(client.tryBatch(callsOf, signal))
      if (answered === undefined) {
        if ([...nodes.values()].some(({ failures }) => failures > 0)) for (const hash of missing) failed.add(hash)
        break
      }
      if (answered instanceof RpcError) {
        for (const hash of missing) failed.add(hash)
        tries += 1
        if (tries === TRIES) restAfterFailure(asked, answered)
        else await sleep(pauseMs, undefined, { signal })
        continue
      }
      const { node, answers } = answered
      const lack = lackOf(answers, tracesOf(node).method)
      if (lack !== undefined) {
        changeMethod(node, lack)
        continue
      }
      tracesOf(node).failures = 0
      failed.clear()
      for (const [index, hash] of missing.entries()) {
        const trace = readTrace(tracesOf(node).method, answers[index])
        if (trace !== undefined) traces.set(hash, trace)
        else if (!hasNoState(answers[index])) failed.add(hash)
      }
      if (!answers.some(isNotThereYet)) break
      tries += 1
      if (tries < TRIES) await sleep(pauseMs, undefined, { signal })
    }
    return { traces, failed }
  }

  return {
    async read(receipts, signal) {
      const known = new Map<Hex, KnownCalls>()
      const failed = new Set<Hex>()
      for (let from = 0; from < receipts.length; from += TRACES_AT_ONCE) {
        const some = receipts.slice(from, from + TRACES_AT_ONCE).map(({ txHash }) => txHash)
        const read = await readTraces(some, signal)
        for (const [hash, root] of read.traces) known.set(hash, { kind: 'TRACE', root })
        for (const hash of read.failed) failed.add(hash)
      }
      const untraced = receipts.filter(({ txHash }) => !known.has(txHash))
      if (untraced.length === 0) return { known, failed }
      const calls = untraced.map(({ txHash }) => ({ method: 'eth_getTransactionByHash', params: [txHash] }))
      for (const [index, answer] of (await client.batch(calls, signal)).entries()) {
        const receipt = untraced[index]
        const call = receipt && readOwnCall(answer, receipt)
        if (receipt !== undefined && call !== undefined) known.set(receipt.txHash, call)
      }
      return { known, failed }
    },
  }
}

function traceCall(method: TraceMethod, hash: Hex): RpcCall {
  return { method, params: method === FIRST_METHOD ? [hash, { tracer: 'callTracer', timeout: '5s' }] : [hash] }
}

async function unlessFailed<T>(asking: Promise<T>): Promise<T | RpcError> {
  try {
    return await asking
  } catch (error) {
    if (error instanceof RpcError) return error
    throw error
  }
}

/** Why a node cannot trace by a method at all; undefined where one answer says that it can, or none that it cannot. */
function lackOf(answers: readonly RpcAnswer[], method: TraceMethod): string | undefined {
  if (answers.some((answer) => readTrace(method, answer) !== undefined)) return undefined
  const [lack] = answers.flatMap((answer) => {
    // A node that does not know the tracer may answer with a list of steps.
    if (answer.ok) return isEmpty(answer.result) ? [] : ['it answers no calls']
    const text = answer.error.message.slice(answer.error.message.indexOf(': ') + 2)
    return answer.error.kind === 'REFUSED' && NO_METHOD.test(text) ? [answer.error.message] : []
  })
  return lack
}

function readTrace(method: TraceMethod, answer: RpcAnswer | undefined): CallFrame | undefined {
  if (answer?.ok !== true) return undefined
  return method === FIRST_METHOD ? readCallTracer(answer.result) : readParityTrace(answer.result)
}

/** Nodes behind one address are not all at the same block. */
function isNotThereYet(answer: RpcAnswer): boolean {
  if (answer.ok) return isEmpty(answer.result)
  return answer.error.kind === 'REFUSED' && NOT_THERE_YET.test(answer.error.message)
}

function hasNoState(answer: RpcAnswer | undefined): boolean {
  return answer?.ok === false && answer.error.kind === 'REFUSED' && NO_STATE.test(answer.error.message)
}

function isEmpty(result: unknown): boolean {
  return result === null || (Array.isArray(result) && result.length === 0)
}

/** Undefined where the node does not have the transaction in the receipt's block. */
function readOwnCall(answer: RpcAnswer, { blockHash }: TransactionReceipt): KnownCalls | undefined {
  if (!answer.ok || answer.result === null) return undefined
  const transaction = answer.result as { readonly blockHash?: string; readonly input?: string; readonly value?: string }
  const { input, value } = transaction
  if (transaction.blockHash !== blockHash || input === undefined || value === undefined) return undefined
  return { kind: 'OWN_CALL', input: input as Hex, value: BigInt(value) }
}
