import { type Breaker, createBreaker, type OnBreakerChange } from './breaker.ts'
import type { RpcAnswer, RpcCall } from './json-rpc.ts'
import { createNodeLimits, type NodeLimits } from './node-limits.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { isTransportFailure, RpcError } from './rpc-error.ts'
import { createRpcNode, type RpcNode } from './rpc-node.ts'
import type { UrlLimits } from './url-limits.ts'

/** Asks the nodes of one chain, one after the other: it stays with the first that works, since two nodes seldom see the same chain. */
export interface RpcClient {
  /** @throws RpcError; the signal's reason */
  call(method: string, params: RpcCall['params'], signal?: AbortSignal): Promise<unknown>
  /**
   * Makes all calls on one and the same node.
   *
   * @returns in the order of the calls, whatever the order in which they ran
   * @throws RpcError when no URL answers; the signal's reason
   */
  batch(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcAnswer[]>
  /**
   * Makes calls that depend on the node that is asked, as its limits differ from those of others.
   *
   * @param callsOf - what to ask a node, by its place among the URLs
   * @throws as {@link batch}
   */
  batchBy(callsOf: (node: number) => readonly RpcCall[], signal?: AbortSignal): Promise<NodeAnswers>
  /**
   * Makes calls that not every node offers. A failure does not count against the node.
   *
   * @param callsOf - what to ask a node, by its place among the URLs; undefined where it is not to be asked
   * @returns which node answered; undefined where none was to be asked
   * @throws RpcError when none of those that were asked answers; the signal's reason
   */
  tryBatch(
    callsOf: (node: number) => readonly RpcCall[] | undefined,
    signal?: AbortSignal,
  ): Promise<NodeAnswers | undefined>
  /** What is known of the limits of a URL, by its place among them. */
  limitsOf(node: number): UrlLimits
  /**
   * Doubts the URL that answered last: other URLs come first for 30 seconds, and its chain id is checked again. Without an answer since the
   * last doubt, nothing happens.
   *
   * @returns its place among the URLs
   */
  doubt(why: string): number | undefined
  /** The place among the URLs of the one that answered last; undefined where none has since the last doubt. */
  answeredLast(): number | undefined
  /** Asks other URLs first until a time: milliseconds since 1970. @param node - its place among the URLs */
  leave(node: number, untilMs: number): void
}

/** Answers, and the place of the URL that gave them. */
export interface NodeAnswers {
  readonly node: number
  readonly answers: RpcAnswer[]
}

export interface RpcClientOptions {
  /** In order of preference; the next is asked when one fails. */
  readonly urls: readonly string[]
  /** EIP-155 number that every URL must answer. */
  readonly chainId: number
  readonly clock: () => Date
  /** Called with a URL's host when its breaker opens and when it closes. */
  readonly onNodeChange?: ((node: string, change: Parameters<OnBreakerChange>[0]) => void) | undefined
  /** Called before each HTTP request. */
  readonly onExchange?: (() => void) | undefined
  /** For one HTTP request; default 10,000. */
  readonly timeoutMs?: number | undefined
  /** The largest answer that is read; default 64 MiB. */
  readonly maxAnswerBytes?: number
  /** Calls in one HTTP request; default 100. */
  readonly maxBatch?: number
  /** What the process knows of its nodes' limits; default nothing. */
  readonly limits?: NodeLimits | undefined
  /** The longest pause that is waited for where no other URL is left, when a node asks for one; default 60,000. */
  readonly maxWaitMs?: number | undefined
}

/** One URL of a chain. */
interface Endpoint {
  readonly node: RpcNode
  readonly limits: UrlLimits
  /** Keeps questions from it while others work. */
  readonly breaker: Breaker
  /** Whether its chain id was asked for and is right. */
  isVerified: boolean
  /** Others come first until then, even while it answers: milliseconds since 1970. */
  doubtedUntilMs: number
}

/** The URLs of one chain, and how they are asked. */
interface Chain {
  readonly endpoints: readonly Endpoint[]
  readonly chainId: number
  readonly nowMs: () => number
}

/** A doubted node still answers, so only time shows whether it has recovered. */
const DOUBTED_MS = 30_000

/** How long a node's pause is waited for, and how many of them, where another URL is left. */
const PATIENCE = { maxWaitMs: 2_000, maxFruitless: 1 }
const MAX_WAIT_MS = 60_000

/** A look at a chain with a block a second takes about as many calls. */
const SLOW_CALLS_PER_SECOND = 10
const SLOW_BESIDE = 4
/** Calls of a usual request, where a node counts requests. */
const USUAL_CALLS = 10

/** Makes the client of one chain. Does nothing until it is called. */
export function createRpcClient(options: RpcClientOptions): RpcClient {
  const chain = toChain(options)
  const { endpoints, nowMs } = chain
  let answeredLast: Endpoint | undefined

  async function batchBy(callsOf: (node: number) => readonly RpcCall[], signal?: AbortSignal): Promise<NodeAnswers> {
    let failure: RpcError | undefined
    for (const endpoint of byPreference(endpoints, nowMs)) {
      const node = endpoints.indexOf(endpoint)
      const answers = await askCounted(chain, endpoint, callsOf(node), signal)
      if (!(answers instanceof RpcError)) {
        answeredLast = endpoint
        return { node, answers }
      }
      failure = soonerOf(failure, answers)
    }
    answeredLast = undefined
    throw failure ?? new RpcError('UNREACHABLE', 'the chain has no RPC URL')
  }

  async function batch(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcAnswer[]> {
    return (await batchBy(() => calls, signal)).answers
  }

  return {
    batch,
    batchBy,
    limitsOf: (node) => (endpoints[node] as Endpoint).limits,
    async call(method, params, signal) {
      const [answer] = await batch([{ method, params }], signal)
      if (answer === undefined) throw new RpcError('INCONSISTENT', `no answer to ${method}`)
      if (!answer.ok) throw answer.error
      return answer.result
    },
    tryBatch: (callsOf, signal) => askUncounted(chain, callsOf, signal),
    answeredLast: () => (answeredLast === undefined ? undefined : endpoints.indexOf(answeredLast)),
    leave(node, untilMs) {
      const left = endpoints[node]
      if (left === undefined) return
      left.isVerified = false
      left.doubtedUntilMs = untilMs
      if (answeredLast === left) answeredLast = undefined
    },
    doubt(why) {
      const doubted = answeredLast
      if (doubted === undefined) return undefined
      answeredLast = undefined
      doubted.isVerified = false
      if (endpoints.length > 1) {
        doubted.doubtedUntilMs = Math.max(doubted.doubtedUntilMs, nowMs() + DOUBTED_MS)
        doubted.breaker.fail({ detail: why, opensAtOnce: true, retryAfterMs: DOUBTED_MS }, nowMs())
      }
      return endpoints.indexOf(doubted)
    },
  }
}

function toChain({ urls, chainId, clock, onNodeChange, ...options }: RpcClientOptions): Chain {
  const { limits = createNodeLimits([], { clock: () => clock().getTime() }), maxWaitMs = MAX_WAIT_MS } = options
  const policy: NodePolicy = {
    maxAnswerBytes: options.maxAnswerBytes ?? 64 * 2 ** 20,
    takesGzip: true,
    timeoutMs: options.timeoutMs ?? 10_000,
    maxParallelCalls: 8,
    maxBatch: options.maxBatch,
    halvesBatches: true,
    reads4xxBodies: true,
    waitsForTurns: true,
    maxWaitMs,
    onRequest: options.onExchange,
  }
  const endpoints = urls.map((url): Endpoint => {
    const ofUrl = limits.of(url)
    const node = createRpcNode(url, policy, ofUrl)
    const breaker = createBreaker((change) => {
      ofUrl.noteBreaker(policy, change.open)
      onNodeChange?.(node.host, change)
    })
    return { node, limits: ofUrl, breaker, isVerified: false, doubtedUntilMs: 0 }
  })
  return { endpoints, chainId, nowMs: () => clock().getTime() }
}

/** The failure to tell of: where nodes are to be left alone, the one that is asked again first; else the first. */
function soonerOf(first: RpcError | undefined, second: RpcError): RpcError {
  if (first?.kind !== 'RATE_LIMITED' || second.kind !== 'RATE_LIMITED') return first ?? second
  return (second.retryAfterMs ?? 0) < (first.retryAfterMs ?? 0) ? second : first
}

function isDoubted({ doubtedUntilMs }: Endpoint, nowMs: number): boolean {
  return nowMs < doubtedUntilMs
}

/**
 * Those whose breaker is closed, then those that take far fewer calls than such a one, then the others: when all have failed, asking is all that is left.
 */
function* byPreference(endpoints: readonly Endpoint[], nowMs: () => number): Generator<Endpoint> {
  const slow: Endpoint[] = []
  const leftAlone: Endpoint[] = []
  for (const endpoint of endpoints) {
    if (isPaused(endpoint) || isDoubted(endpoint, nowMs())) leftAlone.push(endpoint)
    else if (isSlowBeside(endpoint, endpoints, nowMs())) slow.push(endpoint)
    // Asked only now, since a probe that the breaker admits has to be made.
    else if (endpoint.breaker.admit(nowMs()) === 'NO') leftAlone.push(endpoint)
    else yield endpoint
  }
  for (const endpoint of slow) {
    if (endpoint.breaker.admit(nowMs()) === 'NO') leftAlone.push(endpoint)
    else yield endpoint
  }
  yield* leftAlone
}

const isPaused = ({ limits }: Endpoint) => limits.pauseMs() > PATIENCE.maxWaitMs

/** Whether its refusals have taught a rate by which a chain is hardly followed, while another URL that works takes many times as much. */
function isSlowBeside(endpoint: Endpoint, endpoints: readonly Endpoint[], nowMs: number): boolean {
  const own = learnedCallsPerSecond(endpoint)
  if (own >= SLOW_CALLS_PER_SECOND) return false
  return endpoints.some(
    (other) =>
      learnedCallsPerSecond(other) >= own * SLOW_BESIDE &&
      other.breaker.isClosed() &&
      !isPaused(other) &&
      !isDoubted(other, nowMs),
  )
}

/** Infinity where the chains file states the rate: then the order of the URLs was chosen with it in mind. */
function learnedCallsPerSecond({ limits }: Endpoint): number {
  const rate = limits.rate()
  if (rate === undefined || rate.isDeclared) return Number.POSITIVE_INFINITY
  return rate.unit === 'CALLS' ? rate.perSecond : rate.perSecond * Math.min(limits.batchSize(), USUAL_CALLS)
}

/**
 * Asks one URL, and counts in its breaker how it went.
 *
 * @returns the error for which another URL is to be asked
 * @throws RpcError that another URL would give as well; the signal's reason
 */
async function askCounted(
  chain: Chain,
  endpoint: Endpoint,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<RpcAnswer[] | RpcError> {
  const { breaker } = endpoint
  const { nowMs } = chain
  try {
    const answers = await askVerified(chain, endpoint, calls, signal)
    if (isDoubted(endpoint, nowMs())) breaker.abandon()
    else breaker.succeed()
    return answers
  } catch (error) {
    if (signal?.aborted || !isTransportFailure(error)) {
      breaker.abandon()
      signal?.throwIfAborted()
      throw error
    }
    // The first failure opens it: alternating between two nodes means alternating between two views of the chain.
    breaker.fail({ detail: error.message, opensAtOnce: true, retryAfterMs: error.retryAfterMs }, nowMs())
    // Another node may stand at the URL when it answers again.
    endpoint.isVerified = false
    return error
  }
}

/** Asks the wanted URLs in turn. Their breakers count neither success nor failure. */
async function askUncounted(
  chain: Chain,
  callsOf: (node: number) => readonly RpcCall[] | undefined,
  signal: AbortSignal | undefined,
): ReturnType<RpcClient['tryBatch']> {
  const { endpoints, nowMs } = chain
  const wanted = new Map(endpoints.map((endpoint, node) => [endpoint, callsOf(node)]))
  const asked = endpoints.filter((endpoint) => wanted.get(endpoint) !== undefined)
  let failure: RpcError | undefined
  for (const endpoint of byPreference(asked, nowMs)) {
    try {
      const answers = await askVerified(chain, endpoint, wanted.get(endpoint) ?? [], signal)
      return { node: endpoints.indexOf(endpoint), answers }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isTransportFailure(error)) throw error
      failure ??= error
    } finally {
      endpoint.breaker.abandon()
    }
  }
  if (failure !== undefined) throw failure
  return undefined
}

/** @throws RpcError, also where one of the calls failed for a reason that lies with the node: then none of the answers counts */
async function askVerified(
  chain: Chain,
  endpoint: Endpoint,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<RpcAnswer[]> {
  const options = { signal, ...(hasOther(chain, endpoint) ? PATIENCE : {}) }
  if (!endpoint.isVerified) await verifyChain(endpoint, chain.chainId, options)
  const answers = [...(await endpoint.node.ask(calls, options))]
  for (const answer of answers) {
    // A block that the node does not have yet, or not any more, concerns that call alone.
    if (!answer.ok && isTransportFailure(answer.error) && answer.error.kind !== 'BEHIND') throw answer.error
  }
  return answers
}

/** Whether another URL may be asked now. */
function hasOther({ endpoints, nowMs }: Chain, endpoint: Endpoint): boolean {
  return endpoints.some(
    (other) =>
      other !== endpoint && !isDoubted(other, nowMs()) && other.limits.pauseMs() === 0 && other.breaker.isClosed(),
  )
}

/** @throws RpcError WRONG_CHAIN, or when the node does not give its chain id */
async function verifyChain(endpoint: Endpoint, chainId: number, options: AskOptions): Promise<void> {
  const { node } = endpoint
  const [answer] = await node.ask([{ method: 'eth_chainId', params: [] }], options)
  if (!answer?.ok) throw new RpcError('UNREACHABLE', 'it does not tell its chain id', { host: node.host })
  const served = Number(answer.result)
  if (served !== chainId) {
    throw new RpcError('WRONG_CHAIN', `it serves chain ${served}, not ${chainId}`, { host: node.host })
  }
  endpoint.isVerified = true
}
