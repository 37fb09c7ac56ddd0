import { createBreaker, type OnBreakerChange } from '../../../nodes/breaker.ts'
import { countOf, failureOfAnswer, type LifiFailure, NO_ANSWER, type ParsedBody, pauseOf } from './lifi-failure.ts'

/** The outcome of a question to LI.FI: JSON that is not checked yet, or why there is none. */
export type LifiAnswer =
  | { readonly ok: true; readonly body: unknown /** When it came, milliseconds since 1970. */; readonly atMs: number }
  | { readonly ok: false; readonly isAsked: true; readonly failure: LifiFailure }
  /** The quota or the breaker kept it from being sent, and will do so for this long. */
  | { readonly ok: false; readonly isAsked: false; readonly failure: LifiFailure; readonly forMs: number }

interface LifiEndpointOptions {
  /** With its path. */
  readonly url: string
  /** Never in a log, an error or an answer. */
  readonly apiKey: string | undefined
  /** For one answer. */
  readonly timeoutMs: number
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Called when the breaker opens and when it closes. */
  readonly onChange: OnBreakerChange
}

/** The query of a GET (`?txHash=0x…`), or the JSON body of a POST. */
interface LifiInput {
  readonly query?: string
  readonly json?: string
}

/** The largest answer that is read; usual ones have some 10 kB. */
const MAX_ANSWER_BYTES = 1 << 20

/**
 * Makes one of LI.FI's endpoints, with a quota and a breaker of its own: limits differ by endpoint, and one may fail while others work. It counts
 * quota and failures, so a process must make only one.
 */
export function createLifiEndpoint({ url, apiKey, timeoutMs, fetch, clock, onChange }: LifiEndpointOptions) {
  const quota = createQuota()
  const breaker = createBreaker(onChange)
  let lastFault = NO_ANSWER

  /** Asks where the breaker and the quota allow it, and counts in the breaker how it went. Never rejects. */
  async function ask(input: LifiInput): Promise<LifiAnswer> {
    const admission = breaker.admit(clock())
    if (admission === 'NO') return notAsked(lastFault, breaker.againInMs(clock()))
    const waitMs = quota.take(clock())
    if (waitMs > 0) {
      breaker.abandon(admission)
      return notAsked({ kind: 'QUOTA', seconds: Math.ceil(waitMs / 1_000) }, waitMs)
    }
    const answer = await send(input)
    if (answer.ok || !isFault(answer.failure)) {
      breaker.succeed()
      return answer
    }
    lastFault = answer.failure
    const detail = 'detail' in lastFault ? lastFault.detail : lastFault.kind
    breaker.fail({ detail, opensAtOnce: lastFault.kind !== 'UNREACHABLE' }, clock())
    return answer
  }

  async function send({ query = '', json }: LifiInput): Promise<LifiAnswer> {
    const signal = AbortSignal.timeout(timeoutMs)
    const headers = new Headers({ accept: 'application/json' })
    if (apiKey !== undefined) headers.set('x-lifi-api-key', apiKey)
    if (json !== undefined) headers.set('content-type', 'application/json')
    const post = json === undefined ? {} : { method: 'POST', body: json }
    try {
      const response = await fetch(url + query, { redirect: 'error', signal, headers, ...post })
      quota.answered(response.headers, clock())
      const parsed = parse(await readLimited(response))
      if (response.status === 200 && parsed.ok) return { ok: true, body: parsed.value, atMs: clock() }
      const failure = failureOfAnswer({ status: response.status, body: parsed, headers: response.headers, apiKey })
      if (failure.kind === 'QUOTA') quota.refused(failure.seconds, clock())
      return failed(failure)
    } catch (error) {
      if (signal.aborted) return failed(NO_ANSWER)
      if (error instanceof AnswerTooLargeError) return failed({ kind: 'INCONSISTENT', detail: error.message })
      return failed({ kind: 'UNREACHABLE', detail: describeNetworkError(error) })
    }
  }

  return {
    ask,
    /** Milliseconds until it is asked again, if a question has just failed like this; 0 where the question itself was wrong. */
    againInMs: (failure: LifiFailure) => (isFault(failure) ? breaker.againInMs(clock()) : 0),
  }
}

/** The answer for a question that was sent and failed. */
export function failed(failure: LifiFailure): LifiAnswer {
  return { ok: false, failure, isAsked: true }
}

function notAsked(failure: LifiFailure, forMs: number): LifiAnswer {
  return { ok: false, failure, isAsked: false, forMs }
}

/** Whether the endpoint failed, and not the question. */
function isFault({ kind }: LifiFailure): boolean {
  return kind === 'TIMEOUT' || kind === 'UNREACHABLE' || kind === 'INCONSISTENT' || kind === 'UNAUTHORIZED'
}

function parse(text: string): ParsedBody {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch {
    return { ok: false }
  }
}

class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError'
}

async function readLimited(response: Response): Promise<string> {
  if (response.body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new AnswerTooLargeError(`it is larger than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The code of a failed fetch, without the URL: `ECONNREFUSED`. */
function describeNetworkError(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  return typeof cause?.code === 'string' ? cause.code : 'the connection failed'
}

interface Allowance {
  remaining: number
  readonly untilMs: number
}

/** Makes the quota of a source that has not answered yet: how often it may be asked, by the `ratelimit-*` headers of its answers. No I/O, no timers. */
export function createQuota() {
  let allowance: Allowance | undefined

  return {
    /** Counts a question. @returns 0 when it may be asked, else the milliseconds for which it may not */
    take(nowMs: number): number {
      if (allowance !== undefined && nowMs >= allowance.untilMs) allowance = undefined
      if (allowance === undefined) return 0
      if (allowance.remaining <= 0) return allowance.untilMs - nowMs
      allowance.remaining -= 1
      return 0
    },
    /** The answer to a counted question has come, with `ratelimit-*` headers or without. */
    answered(headers: Headers, nowMs: number): void {
      const [remaining, resetMs] = [countOf(headers, 'ratelimit-remaining'), pauseOf(headers)]
      if (remaining !== undefined && resetMs !== undefined) allowance = { remaining, untilMs: nowMs + resetMs }
    },
    /** That answer said that there were too many questions. */
    refused(seconds: number, nowMs: number): void {
      allowance = { remaining: 0, untilMs: nowMs + seconds * 1_000 }
    },
  }
}
