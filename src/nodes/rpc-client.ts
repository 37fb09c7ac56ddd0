import { type Breaker, createBreaker, type OnBreakerChange } from './breaker.ts'
import { createHttpPost, type HttpPost, type HttpReply, ReplyTooLargeError } from './http-post.ts'
import { classifyErrorAnswer, isTransportFailure, RpcError, type RpcErrorAnswer } from './rpc-error.ts'

/** One call of JSON-RPC. */
export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

/** What one call of a batch came to. Failures of the transport are thrown for the batch as a whole. */
export type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError }

/** Calls the nodes of one chain. */
export interface RpcClient {
  /** @throws RpcError; the signal's reason */
  call(method: string, params: readonly unknown[], signal?: AbortSignal): Promise<unknown>
  /**
   * Makes the calls on one and the same node, in order of the answers, not of execution.
   *
   * @throws RpcError when no URL answers; the signal's reason
   */
  batch(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcAnswer[]>
  /**
   * Makes calls that not every node takes. A failure says nothing about the node: it is not left alone for it.
   *
   * @param callsOf - what to ask a node, by its place among the URLs; undefined where it is not to be asked
   * @returns which node answered; undefined where none was to be asked
   * @throws RpcError when none of those that were asked answers; the signal's reason
   */
  tryBatch(
    callsOf: (node: number) => readonly RpcCall[] | undefined,
    signal?: AbortSignal,
  ): Promise<{ readonly node: number; readonly answers: readonly RpcAnswer[] } | undefined>
  /**
   * Takes the last answer for a wrong one: other URLs are asked first for a while, and the one that gave it for its chain id again. Does
   * nothing where none has answered since.
   *
   * @returns the place of the one that gave it among the URLs
   */
  doubt(why: string): number | undefined
}

export interface RpcClientOptions {
  /** In order of preference; the next is asked when one fails. */
  readonly urls: readonly string[]
  /** EIP-155 number that every URL must answer. */
  readonly chainId: number
  readonly clock: () => Date
  /** Told, by its host alone, when a URL begins to be left alone and when it answers again. */
  readonly onNodeChange?: (node: string, change: Parameters<OnBreakerChange>[0]) => void
  /** Told of each HTTP exchange as it begins. */
  readonly onExchange?: () => void
  /** For one HTTP exchange; default 10,000. */
  readonly timeoutMs?: number
  /** Longest answer that is read; default 64 MiB. */
  readonly maxAnswerBytes?: number
  /** Calls in one HTTP exchange; default 100. */
  readonly maxBatch?: number
}

interface Endpoint {
  readonly host: string
  readonly post: HttpPost
  /** Keeps calls from it while others work. */
  readonly breaker: Breaker
  verified: boolean
  takesBatches: boolean
  /** Till then others are asked first, whatever it answers: milliseconds since 1970. */
  doubtedUntilMs: number
}

const PARALLEL_CALLS = 8

/** It answers well, so nothing but time tells whether it has come to its senses. */
const DOUBTED_MS = 30_000

/** Makes a client for the URLs of one chain. Does nothing until it is called. */
export function createRpcClient(options: RpcClientOptions): RpcClient {
  const { clock, maxBatch = 100 } = options
  const nowMs = () => clock().getTime()
  const endpoints = options.urls.map((url) => toEndpoint(url, options))
  const exchange = createExchange(options)
  let answeredLast: Endpoint | undefined

  async function batch(calls: readonly RpcCall[], signal?: AbortSignal): Promise<RpcAnswer[]> {
    const failures: RpcError[] = []
    for (const endpoint of byPreference(endpoints, nowMs)) {
      const answers = await tryEndpoint(endpoint, calls, signal)
      if (!(answers instanceof RpcError)) {
        answeredLast = endpoint
        return answers
      }
      failures.push(answers)
    }
    answeredLast = undefined
    throw failures[0] ?? new RpcError('UNREACHABLE', 'the chain has no RPC URL')
  }

  const tryBatch: RpcClient['tryBatch'] = async (callsOf, signal) => {
    const wanted = new Map(
      endpoints.flatMap((endpoint, node) => {
        const calls = callsOf(node)
        return calls === undefined ? [] : [[endpoint, { node, calls }] as const]
      }),
    )
    let failure: RpcError | undefined
    for (const endpoint of byPreference([...wanted.keys()], nowMs)) {
      const { node, calls } = wanted.get(endpoint) as { node: number; calls: readonly RpcCall[] }
      try {
        return { node, answers: await callEndpoint(endpoint, calls, signal) }
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

  /** @returns why another URL is to be asked */
  async function tryEndpoint(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[] | RpcError> {
    const { breaker } = endpoint
    try {
      const answers = await callEndpoint(endpoint, calls, signal)
      if (isDoubted(endpoint, nowMs())) breaker.abandon()
      else breaker.succeed()
      return answers
    } catch (error) {
      if (signal?.aborted || !isTransportFailure(error)) {
        breaker.abandon()
        signal?.throwIfAborted()
        throw error
      }
      // Two nodes seldom see the same chain, so following one is not to go to and fro between them.
      breaker.fail({ detail: error.message, opensAtOnce: true }, nowMs())
      // Whatever stands there when it answers again may be another node.
      endpoint.verified = false
      return error
    }
  }

  async function callEndpoint(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[]> {
    if (!endpoint.verified) await verifyChain(endpoint, signal)
    const answers: RpcAnswer[] = []
    for (let from = 0; from < calls.length; from += maxBatch) {
      answers.push(...(await callTogether(endpoint, calls.slice(from, from + maxBatch), signal)))
    }
    return answers
  }

  async function verifyChain(endpoint: Endpoint, signal: AbortSignal | undefined): Promise<void> {
    const [answer] = await callOneByOne(endpoint, [{ method: 'eth_chainId', params: [] }], signal)
    if (!answer?.ok) throw new RpcError('UNREACHABLE', `${endpoint.host} does not tell its chain id`)
    if (Number(answer.result) !== options.chainId) {
      const served = Number(answer.result)
      throw new RpcError('WRONG_CHAIN', `${endpoint.host} serves chain ${served}, not ${options.chainId}`)
    }
    endpoint.verified = true
  }

  async function callTogether(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[]> {
    if (calls.length === 1 || !endpoint.takesBatches) return callOneByOne(endpoint, calls, signal)
    const body = calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))
    const answered = await unlessTooLarge(exchange(endpoint, body, signal))
    if (answered instanceof RpcError) return callInHalves(endpoint, calls, signal)
    if (!answered.refused && Array.isArray(answered.json)) {
      return repeatTooLarge(endpoint, calls, sortAnswers(endpoint, calls, answered.json), signal)
    }
    // An error for the list as a whole: some nodes take single calls only.
    const answers = await callOneByOne(endpoint, calls, signal)
    endpoint.takesBatches = false
    return answers
  }

  async function callInHalves(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[]> {
    const middle = Math.ceil(calls.length / 2)
    const first = await callTogether(endpoint, calls.slice(0, middle), signal)
    return [...first, ...(await callTogether(endpoint, calls.slice(middle), signal))]
  }

  /** Some nodes answer a list as far as it fits, and refuse what is left of it. */
  async function repeatTooLarge(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    answers: readonly RpcAnswer[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[]> {
    const isTooLarge = (_: unknown, index: number) => {
      const answer = answers[index]
      return answer?.ok === false && answer.error.kind === 'TOO_LARGE'
    }
    const left = calls.filter(isTooLarge)
    if (left.length === 0) return [...answers]
    const together = left.length < calls.length ? callTogether : callInHalves
    const repeated = await together(endpoint, left, signal)
    return answers.map((answer, index) => (isTooLarge(answer, index) ? (repeated.shift() ?? answer) : answer))
  }

  async function callOneByOne(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    signal: AbortSignal | undefined,
  ): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = []
    for (let from = 0; from < calls.length; from += PARALLEL_CALLS) {
      const together = calls.slice(from, from + PARALLEL_CALLS).map(async (call) => {
        const answered = await unlessTooLarge(exchange(endpoint, { jsonrpc: '2.0', id: 0, ...call }, signal))
        if (answered instanceof RpcError) return { ok: false, error: answered } as const
        if (answered.refused) throw new RpcError('UNREACHABLE', `${endpoint.host} answered ${answered.status}`)
        return toAnswer(endpoint, call, answered.json)
      })
      answers.push(...(await Promise.all(together)))
    }
    return answers
  }

  async function call(method: string, params: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    const [answer] = await batch([{ method, params }], signal)
    if (answer === undefined) throw new RpcError('UNREACHABLE', `${method} was not answered`)
    if (!answer.ok) throw answer.error
    return answer.result
  }

  function doubt(why: string): number | undefined {
    const doubted = answeredLast
    if (doubted === undefined) return undefined
    answeredLast = undefined
    doubted.verified = false
    if (endpoints.length > 1) {
      doubted.doubtedUntilMs = nowMs() + DOUBTED_MS
      doubted.breaker.fail({ detail: why, opensAtOnce: true, retryAfterMs: DOUBTED_MS }, nowMs())
    }
    return endpoints.indexOf(doubted)
  }

  return { call, batch, tryBatch, doubt }
}

function toEndpoint(url: string, { maxAnswerBytes = 64 * 2 ** 20, onNodeChange }: RpcClientOptions): Endpoint {
  const { host } = new URL(url)
  return {
    host,
    post: createHttpPost(url, { mostBytes: maxAnswerBytes, takesGzip: true }),
    breaker: createBreaker((change) => onNodeChange?.(host, change)),
    verified: false,
    takesBatches: true,
    doubtedUntilMs: 0,
  }
}

function isDoubted({ doubtedUntilMs }: Endpoint, nowMs: number): boolean {
  return nowMs < doubtedUntilMs
}

/** Those that are not left alone, then the others: when all failed, asking is all that is left. */
function* byPreference(endpoints: readonly Endpoint[], nowMs: () => number): Generator<Endpoint> {
  const leftAlone: Endpoint[] = []
  for (const endpoint of endpoints) {
    // Asked only now, since a probe that is allowed has to be made.
    if (isDoubted(endpoint, nowMs()) || endpoint.breaker.admit(nowMs()) === 'NO') leftAlone.push(endpoint)
    else yield endpoint
  }
  yield* leftAlone
}

function sortAnswers(endpoint: Endpoint, calls: readonly RpcCall[], list: readonly unknown[]): RpcAnswer[] {
  const byId = new Map((list as { id?: unknown }[]).map((answer) => [answer?.id, answer]))
  return calls.map((call, id) => toAnswer(endpoint, call, byId.get(id)))
}

function toAnswer(endpoint: Endpoint, call: RpcCall, json: unknown): RpcAnswer {
  if (typeof json !== 'object' || json === null) {
    throw new RpcError('UNREACHABLE', `${endpoint.host} did not answer ${call.method} with JSON-RPC`)
  }
  const { result, error } = json as { result?: unknown; error?: RpcErrorAnswer | null }
  if (error !== undefined && error !== null) {
    const kind = classifyErrorAnswer(error)
    const failure = new RpcError(kind, `${endpoint.host} refused ${call.method}: ${error.message ?? error.code}`)
    if (kind === 'RATE_LIMITED') throw failure
    return { ok: false, error: failure }
  }
  if (result === undefined)
    throw new RpcError('UNREACHABLE', `${endpoint.host} left the answer to ${call.method} empty`)
  return { ok: true, result }
}

/** A parsed body; `refused` says that the status was one of refusal, in which case the body counts for nothing. */
type Exchanged =
  | { readonly refused: false; readonly json: unknown }
  | { readonly refused: true; readonly status: number }

function createExchange({ timeoutMs = 10_000, onExchange }: RpcClientOptions) {
  return async (endpoint: Endpoint, body: unknown, signal: AbortSignal | undefined): Promise<Exchanged> => {
    signal?.throwIfAborted()
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(new RpcError('TIMEOUT', `${endpoint.host} is slow`)), timeoutMs)
    const onAbort = () => ending.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      onExchange?.()
      return readExchange(endpoint, await endpoint.post(JSON.stringify(body), ending.signal))
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof RpcError) throw error
      if (error instanceof ReplyTooLargeError) throw new RpcError('TOO_LARGE', `${endpoint.host}: ${error.message}`)
      throw new RpcError('UNREACHABLE', `${endpoint.host} cannot be reached`, { cause: error })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** What is too large concerns these calls alone: fewer of them may fit. */
async function unlessTooLarge(exchanging: Promise<Exchanged>): Promise<Exchanged | RpcError> {
  try {
    return await exchanging
  } catch (error) {
    if (error instanceof RpcError && error.kind === 'TOO_LARGE') return error
    throw error
  }
}

function readExchange(endpoint: Endpoint, { status, body }: HttpReply): Exchanged {
  if (status === 429) throw new RpcError('RATE_LIMITED', `${endpoint.host} wants fewer calls`)
  if (status === 413) throw new RpcError('TOO_LARGE', `${endpoint.host} finds the request too large`)
  if (status >= 500) throw new RpcError('UNREACHABLE', `${endpoint.host} answered ${status}`)
  try {
    const json: unknown = JSON.parse(body)
    // Nodes put errors of single calls under 4xx too; those have a body of JSON-RPC.
    const isAnswer = typeof json === 'object' && json !== null && (Array.isArray(json) || 'jsonrpc' in json)
    return isAnswer || status < 400 ? { refused: false, json } : { refused: true, status }
  } catch (error) {
    if (status >= 400) return { refused: true, status }
    throw new RpcError('UNREACHABLE', `${endpoint.host} answered with something that is not JSON`, { cause: error })
  }
}
