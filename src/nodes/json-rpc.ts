/**
 * A JSON-RPC client for many small reads: all calls of one question go in one HTTP request. It trusts nothing that comes back:
 * answers are limited in size and checked in shape.
 */

import { createHttpPost, type HttpReply, ReplyTooLargeError } from './http-post.ts'

/** The largest answer that is read. The longest part is the code of a contract wallet, below 100 kB. */
const MOST_ANSWER_BYTES = 1 << 20

/** Statuses by which nodes and gateways refuse a batch where a single call would do. */
const BATCH_REFUSED_STATUSES = new Set([400, 405, 413, 422, 501])

export interface RpcCall {
  readonly method: string
  /** As JSON: the longest part is digits, which nothing need look through for what JSON escapes. */
  readonly params: string
  /** Other calls must not fail where a gateway answers this one with an HTTP error. */
  readonly isOptional?: boolean
}

/** An error object of JSON-RPC, as the node sent it; `message` is cut short. */
export interface RpcRefusal {
  readonly code?: number
  readonly message: string
  /** Of a revert: what the contract returned, hexadecimal with `0x`. */
  readonly data?: string
}

/** What else is known of a failure. */
interface FailureOptions extends ErrorOptions {
  /** Less in one request might do. */
  readonly maybeTooLarge?: boolean
  /** The node asks to be left alone for so long. */
  readonly retryAfterMs?: number
  /** What the node says is wrong as a whole: another chain, or a head far behind. */
  readonly isLie?: boolean
  /** The node understood the call and answered it with an error. */
  readonly refusal?: RpcRefusal
}

/** The node could not be reached, or did not answer as a node does. The message never holds the URL, which may hold a key. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly kind: 'UNREACHABLE' | 'INCONSISTENT'
  readonly maybeTooLarge: boolean
  readonly retryAfterMs: number | undefined
  readonly isLie: boolean
  readonly refusal: RpcRefusal | undefined

  constructor(kind: RpcFailure['kind'], detail: string, options: FailureOptions = {}) {
    super(detail, options)
    this.kind = kind
    this.maybeTooLarge = options.maybeTooLarge ?? false
    this.retryAfterMs = options.retryAfterMs
    this.isLie = options.isLie ?? false
    this.refusal = options.refusal
  }
}

/** What became of one call of several. */
export type RpcAnswer = { readonly result: unknown } | { readonly failure: RpcFailure }

export interface JsonRpc {
  /**
   * Makes all calls in one HTTP request, or in parallel ones where the URL refuses batches.
   *
   * @param mayDivide - whether they may go as single ones; else a batch that is refused fails with `maybeTooLarge`
   * @returns in the order of the calls; a call that fails by itself fails no other
   * @throws RpcFailure when none was answered; the signal's reason when it fires
   */
  callAll(calls: readonly RpcCall[], mayDivide: boolean, signal: AbortSignal): Promise<readonly RpcAnswer[]>
}

/** Makes the client of one URL. Whether it takes batches is learned once. */
export function createJsonRpc(url: string): JsonRpc {
  const post = createHttpPost(url, { mostBytes: MOST_ANSWER_BYTES })
  let takesBatches = true

  async function send(body: string, signal: AbortSignal): Promise<HttpReply> {
    try {
      return await post(body, signal)
    } catch (error) {
      if (signal.aborted) throw error
      if (error instanceof ReplyTooLargeError) {
        throw new RpcFailure('INCONSISTENT', error.message, { cause: error, maybeTooLarge: true })
      }
      throw new RpcFailure('UNREACHABLE', describeNetworkError(error), { cause: error })
    }
  }

  async function callBatch(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcAnswer[] | undefined> {
    const reply = await send(`[${calls.map(toMessage).join(',')}]`, signal)
    if (BATCH_REFUSED_STATUSES.has(reply.status)) return undefined
    const answer = parseReply(reply)
    if (Array.isArray(answer)) return pickAnswers(answer, calls)
    if (isObject(answer) && 'error' in answer) return undefined
    throw new RpcFailure('INCONSISTENT', 'a batch was answered with something else')
  }

  async function callSingle(call: RpcCall, signal: AbortSignal): Promise<RpcAnswer> {
    try {
      const reply = await send(toMessage(call, 0), signal)
      return pickAnswers([parseReply(reply)], [call])[0] as RpcAnswer
    } catch (error) {
      if (call.isOptional && error instanceof RpcFailure) return { failure: error }
      throw error
    }
  }

  return {
    async callAll(calls, mayDivide, signal) {
      if (takesBatches) {
        const answers = await callBatch(calls, signal)
        if (answers !== undefined) return answers
        if (!mayDivide) throw new RpcFailure('INCONSISTENT', 'a batch was refused', { maybeTooLarge: true })
      }
      const answers = await Promise.all(calls.map((call) => callSingle(call, signal)))
      // Where each call goes through by itself, the batch was at fault; else a method may have been that the URL refuses the whole batch for.
      if (answers.every((answer) => 'result' in answer)) takesBatches = false
      return answers
    },
  }
}

function toMessage({ method, params }: RpcCall, id: number): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
}

function parseReply({ status, headers, body }: HttpReply): unknown {
  // Nodes answer errors of the protocol with 200; anything else comes from what stands before them.
  if (status !== 200) {
    const retryAfterMs = readRetryAfter(headers['retry-after']) ?? (status === 429 ? USUAL_RETRY_AFTER_MS : undefined)
    throw new RpcFailure('UNREACHABLE', `HTTP status ${status}`, retryAfterMs === undefined ? {} : { retryAfterMs })
  }
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new RpcFailure('INCONSISTENT', 'no JSON', { cause })
  }
}

const USUAL_RETRY_AFTER_MS = 1_000

/** The header's seconds in milliseconds; nodes write no dates. */
function readRetryAfter(header: string | undefined): number | undefined {
  return header !== undefined && /^[1-9]\d{0,8}$/.test(header) ? Number(header) * 1_000 : undefined
}

function pickAnswers(answers: readonly unknown[], calls: readonly RpcCall[]): readonly RpcAnswer[] {
  const byId = new Map<unknown, Record<string, unknown>>()
  for (const answer of answers) if (isObject(answer)) byId.set(answer.id, answer)
  return calls.map((call, id) => {
    const answer = byId.get(id)
    if (answer === undefined) return fail(`no answer to ${call.method}`)
    if (isObject(answer.error)) return refuse(call.method, readRefusal(answer.error))
    return answer.result === undefined ? fail(`no result of ${call.method}`) : { result: answer.result }
  })
}

function fail(detail: string): RpcAnswer {
  return { failure: new RpcFailure('INCONSISTENT', detail) }
}

function refuse(method: string, refusal: RpcRefusal): RpcAnswer {
  const detail = `${method} failed with code ${refusal.code ?? 'unknown'}`
  return { failure: new RpcFailure('INCONSISTENT', detail, { refusal }) }
}

const LONGEST_MESSAGE = 500

/** Reads a JSON-RPC error. Some nodes put a revert's data into an object of their own. */
export function readRefusal({ code, message, data }: Record<string, unknown>): RpcRefusal {
  const bytes = isObject(data) ? data.data : data
  return {
    ...(typeof code === 'number' ? { code } : {}),
    message: typeof message === 'string' ? message.slice(0, LONGEST_MESSAGE) : '',
    ...(typeof bytes === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(bytes) ? { data: bytes } : {}),
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Says what a failed request was about without the URL: `ECONNREFUSED`. */
function describeNetworkError(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : 'the connection failed'
}
