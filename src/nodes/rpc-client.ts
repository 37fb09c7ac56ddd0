import { type Admission, type Breaker, createBreaker, type OnBreakerChange } from './breaker.ts'
import type { RpcAnswer, RpcCall } from './json-rpc.ts'
import type { UrlLimits } from './node-limits.ts'
import { createNodeLimits, type NodeLimits } from './node-limits.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { isTransportFailure, RpcError } from './rpc-error.ts'
import { createRpcNode, type RpcNode } from './rpc-node.ts'

/** The JSON-RPC client of one chain. It prefers one URL and asks the next only when that fails, since two nodes seldom have the same head. */
export type RpcClient = ReturnType<typeof createRpcClient>

/** Answers, and the place of the URL that gave them among the URLs. */
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
  /** For one HTTP request; default 10,000. */
  readonly timeoutMs?: number | undefined
  /** The largest answer that is read; default 64 MiB. */
  readonly maxAnswerBytes?: number
  /** The limits of all nodes that the process asks; default none that are known. */
  readonly limits?: NodeLimits | undefined
  /** The longest pause that is waited for, where a node asks for one and no other URL is left; default 60,000. */
  readonly maxWaitMs?: number | undefined
}

/** One URL of a chain. */
interface Endpoint {
  readonly node: RpcNode
  readonly limits: UrlLimits
  /** While it is open, other URLs are asked first. */
  readonly breaker: Breaker
  /** Whether its chain id was checked since it last failed. */
  isVerified: boolean
  /** Until when other URLs are asked first, even while it answers: milliseconds since 1970. */
  doubtedUntilMs: number
}

/** The URLs of one chain, and how they are asked. */
interface Chain {
  readonly endpoints: readonly Endpoint[]
  readonly chainId: number
  readonly nowMs: () => number
}

/** A doubted node still answers, so an answer does not show that it has recovered: it is avoided for a time. */
const DOUBTED_MS = 30_000

/** The longest pause of a node that is waited for, and how many such waits, where another URL is left. */
const PATIENCE = { maxWaitMs: 2_000, maxRefusedRounds: 1 }
const MAX_WAIT_MS = 60_000

/** A URL with a lower learned rate is slow: to follow a chain with one block a second takes about as many calls. */
const SLOW_CALLS_PER_SECOND = 10
/** Another URL is asked before a slow one if it takes this many times as many calls. */
const FASTER_BY = 4
/** Calls in a usual request, to compare a node that counts requests with one that counts calls. */
const USUAL_CALLS = 10

/** What to ask a node, by its place among the URLs. */
type CallsOf<None = never> = (node: number) => readonly RpcCall[] | None

/** Makes the client of one chain. Does nothing until it is called. */
export function createRpcClient(options: RpcClientOptions) {
  const chain = toChain(options)
  const { endpoints, nowMs } = chain
  let answeredLast: Endpoint | undefined

  async function batchBy(callsOf: CallsOf, signal?: AbortSignal): Promise<NodeAnswers> {
    let failure: RpcError | undefined
    for (const candidate of byPreference(endpoints, nowMs)) {
      const { endpoint } = candidate
      const node = endpoints.indexOf(endpoint)
      const answers = await askCounted(chain, candidate, callsOf(node), signal)
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
    /**
     * Makes all calls at one and the same node.
     *
     * @returns in the order of the calls, whatever the order in which they ran
     * @throws RpcError when no URL answers; the signal's reason
     */
    batch,
    /** Makes calls that differ by node, since their limits differ. @throws as `batch` */
    batchBy,
    /** What is known of the limits of a URL, by its place among them. */
    limitsOf: (node: number) => (endpoints[node] as Endpoint).limits,
    /** @throws RpcError; the signal's reason */
    async call(method: string, params: RpcCall['params'], signal?: AbortSignal): Promise<unknown> {
      const [answer] = await batch([{ method, params }], signal)
      if (answer === undefined) throw new RpcError('INCONSISTENT', `no answer to ${method}`)
      if (!answer.ok) throw answer.error
      return answer.result
    },
    /**
     * Makes calls that not every node offers, at those for which there are any. Its breaker counts no failure.
     *
     * @returns undefined where no node was to be asked
     * @throws RpcError when none of those that were asked answers; the signal's reason
     */
    tryBatch: (callsOf: CallsOf<undefined>, signal?: AbortSignal) => askUncounted(chain, callsOf, signal),
    /** The place among the URLs of the one that answered last; undefined where none has since the last doubt. */
    answeredLast: () => (answeredLast === undefined ? undefined : endpoints.indexOf(answeredLast)),
    /** Asks a URL only after all others, until a time in milliseconds since 1970. @param node - its place among the URLs */
    avoid(node: number, untilMs: number): void {
      const avoided = endpoints[node]
      if (avoided === undefined) return
      avoided.isVerified = false
      avoided.doubtedUntilMs = untilMs
      if (answeredLast === avoided) answeredLast = undefined
    },
    /**
     * Avoids the URL that answered last for 30 seconds, and has its chain id checked again. Does nothing where none has answered since the last
     * doubt.
     *
     * @returns its place among the URLs
     */
    doubt(why: string): number | undefined {
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
    timeoutMs: options.timeoutMs ?? 10_000,
    maxParallelCalls: 8,
    isBulk: true,
    waitsForSlots: true,
    maxWaitMs,
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

/** The failure to report: the one with the sooner retry where both are for the rate; else the first. */
function soonerOf(first: RpcError | undefined, second: RpcError): RpcError {
  if (first?.kind !== 'RATE_LIMITED' || second.kind !== 'RATE_LIMITED') return first ?? second
  return (second.retryAfterMs ?? 0) < (first.retryAfterMs ?? 0) ? second : first
}

function isDoubted({ doubtedUntilMs }: Endpoint, nowMs: number): boolean {
  return nowMs < doubtedUntilMs
}

/** A URL whose slot it is, and whether its breaker admits a question. One that it does not admit is asked only where no other answers. */
interface Candidate {
  readonly endpoint: Endpoint
  readonly admission: Admission
}

/**
 * Gives the URLs in the order in which they are asked: those that work, as configured; those that work and are slow; then the others, since a URL
 * that failed may answer when no other does.
 */
function* byPreference(endpoints: readonly Endpoint[], nowMs: () => number): Generator<Candidate> {
  const slow: Endpoint[] = []
  const avoided: Endpoint[] = []
  // The breaker is asked last: a probe that it admits has to be made.
  function* ifAdmitted(endpoint: Endpoint): Generator<Candidate> {
    const admission = endpoint.breaker.admit(nowMs())
    if (admission === 'NO') avoided.push(endpoint)
    else yield { endpoint, admission }
  }
  for (const endpoint of endpoints) {
    if (isPaused(endpoint) || isDoubted(endpoint, nowMs())) avoided.push(endpoint)
    else if (isSlowBeside(endpoint, endpoints, nowMs())) slow.push(endpoint)
    else yield* ifAdmitted(endpoint)
  }
  for (const endpoint of slow) yield* ifAdmitted(endpoint)
  for (const endpoint of avoided) yield { endpoint, admission: 'NO' }
}

const isPaused = ({ limits }: Endpoint) => limits.pauseMs() > PATIENCE.maxWaitMs

/** Whether its learned rate is too low to follow a chain, while another URL that works takes many times as many calls. */
function isSlowBeside(endpoint: Endpoint, endpoints: readonly Endpoint[], nowMs: number): boolean {
  const own = learnedCallsPerSecond(endpoint)
  if (own >= SLOW_CALLS_PER_SECOND) return false
  return endpoints.some(
    (other) =>
      learnedCallsPerSecond(other) >= own * FASTER_BY &&
      other.breaker.isClosed() &&
      !isPaused(other) &&
      !isDoubted(other, nowMs),
  )
}

/** Infinity where no rate is learned. A declared rate does not make a URL slow: the operator has ordered the URLs knowing it. */
function learnedCallsPerSecond({ limits }: Endpoint): number {
  const rate = limits.rate()
  if (rate === undefined || rate.isDeclared) return Number.POSITIVE_INFINITY
  return rate.unit === 'CALLS' ? rate.perSecond : rate.perSecond * Math.min(limits.batchSize(), USUAL_CALLS)
}

/**
 * Asks one URL, and tells its breaker the outcome.
 *
 * @returns the error for which another URL is to be asked
 * @throws RpcError that another URL would give as well; the signal's reason
 */
async function askCounted(
  chain: Chain,
  { endpoint, admission }: Candidate,
  calls: readonly RpcCall[],
  signal: AbortSignal | undefined,
): Promise<RpcAnswer[] | RpcError> {
  const { breaker } = endpoint
  const { nowMs } = chain
  try {
    const answers = await askVerified(chain, endpoint, calls, signal)
    if (isDoubted(endpoint, nowMs())) breaker.abandon(admission)
    else breaker.succeed()
    return answers
  } catch (error) {
    if (signal?.aborted || !isTransportFailure(error)) {
      breaker.abandon(admission)
      signal?.throwIfAborted()
      throw error
    }
    // The first failure opens it: going back and forth between two nodes would show two different heads.
    breaker.fail({ detail: error.message, opensAtOnce: true, retryAfterMs: error.retryAfterMs }, nowMs())
    // When the URL answers again, another node may stand behind it.
    endpoint.isVerified = false
    return error
  }
}

/** Asks the wanted URLs one after the other. Their breakers count neither success nor failure. @see createRpcClient, `tryBatch` */
async function askUncounted(
  chain: Chain,
  callsOf: CallsOf<undefined>,
  signal: AbortSignal | undefined,
): Promise<NodeAnswers | undefined> {
  const { endpoints, nowMs } = chain
  const wanted = new Map(endpoints.map((endpoint, node) => [endpoint, callsOf(node)]))
  const asked = endpoints.filter((endpoint) => wanted.get(endpoint) !== undefined)
  let failure: RpcError | undefined
  for (const { endpoint, admission } of byPreference(asked, nowMs)) {
    try {
      const answers = await askVerified(chain, endpoint, wanted.get(endpoint) ?? [], signal)
      return { node: endpoints.indexOf(endpoint), answers }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isTransportFailure(error)) throw error
      failure ??= error
    } finally {
      endpoint.breaker.abandon(admission)
    }
  }
  if (failure !== undefined) throw failure
  return undefined
}

/**
 * Checks the chain id where that is not done, and makes the calls.
 *
 * @throws RpcError, also where one call failed for a reason that lies with the node: then the other answers are not used either
 */
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
    // A block that the node does not have yet, or no longer has, concerns its call alone.
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
