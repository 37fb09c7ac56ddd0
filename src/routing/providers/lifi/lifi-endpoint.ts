import { createBreaker, type OnBreakerChange } from '../../../nodes/breaker.ts'
import { failureOfAnswer, type LifiFailure, type ParsedBody } from './lifi-failure.ts'
import { createQuota } from './quota.ts'

/** What came of a question: JSON of which nothing is known yet, or why there is none. */
export type LifiAnswer =
  | { readonly ok: true; readonly body: unknown /** When it came, milliseconds since 1970. */; readonly atMs: number }
  | { readonly ok: false; readonly isAsked: true; readonly failure: LifiFailure }
  /** Quota or earlier failures have kept it from being asked at all, and do for so long. */
  | { readonly ok: false; readonly isAsked: false; readonly failure: LifiFailure; readonly forMs: number }

export interface LifiEndpointOptions {
  /** Whole. */
  readonly url: string
  /** Never in a log, an error or an answer. */
  readonly apiKey: string | undefined
  /** For one answer. */
  readonly timeoutMs: number
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Told when it begins to be left alone, and when it answers again. */
  readonly onChange: OnBreakerChange
}

/** What goes along with a question: a query (`?txHash=0x…`), or JSON to be posted. */
export type LifiInput = { readonly query: string } | { readonly json: string }

/**
 * One of LI.FI's endpoints, with a quota and a breaker of its own: limits differ by endpoint, and one that fails says nothing of the others.
 */
export interface LifiEndpoint {
  /**
   * Asks. Never rejects.
   *
   * @param call - the same for all questions of one call, of which none is told to come again while another of them finds out whether the
   *   source is well
   */
  ask(input: LifiInput, call: object): Promise<LifiAnswer>
  /** Milliseconds for which it is left alone after a question that has just failed like this; 0 where it is the question that was wrong. */
  againInMs(failure: LifiFailure): number
}

/** The largest answer that is read; usual ones have some 10 kB. */
const MOST_ANSWER_BYTES = 1 << 20

/** Makes the endpoint. Quota and failures are counted in it, so there is one of them in a process. */
export function createLifiEndpoint(options: LifiEndpointOptions): LifiEndpoint {
  const { apiKey, clock } = options
  const quota = createQuota()
  const breaker = createBreaker(options.onChange)
  let lastFault: LifiFailure = { kind: 'TIMEOUT' }
  let probe: { readonly call: object; readonly answer: Promise<LifiAnswer> } | undefined

  async function ask(input: LifiInput, call: object): Promise<LifiAnswer> {
    const admission = breaker.admit(clock())
    if (admission === 'NO') {
      if (probe?.call !== call) return notAsked(lastFault, breaker.againInMs(clock()))
      await probe.answer
      return ask(input, call)
    }
    const answer = askNow(input, admission)
    if (admission === 'YES') return answer
    const own = { call, answer }
    probe = own
    return answer.finally(() => {
      if (probe === own) probe = undefined
    })
  }

  async function askNow(input: LifiInput, admission: 'YES' | 'PROBE'): Promise<LifiAnswer> {
    const waitMs = quota.take(clock())
    if (waitMs > 0) {
      if (admission === 'PROBE') breaker.abandon()
      return notAsked({ kind: 'QUOTA', seconds: Math.ceil(waitMs / 1_000) }, waitMs)
    }
    const answer = await send(input)
    if (!answer.ok && isFault(answer.failure)) {
      lastFault = answer.failure
      const opensAtOnce = answer.failure.kind !== 'UNREACHABLE'
      breaker.fail({ detail: describe(answer.failure), opensAtOnce }, clock())
    } else breaker.succeed()
    return answer
  }

  async function send(input: LifiInput): Promise<LifiAnswer> {
    const signal = AbortSignal.timeout(options.timeoutMs)
    let isAnswered = false
    try {
      const response = await options.fetch(...toRequest(input, signal))
      isAnswered = true
      quota.answered(response.headers, clock())
      const parsed = parse(await readLimited(response))
      if (response.status === 200 && parsed.ok) return { ok: true, body: parsed.value, atMs: clock() }
      const { status, headers: told } = response
      const failure = failureOfAnswer({ status, body: parsed, headers: told, apiKey })
      if (failure.kind === 'QUOTA') quota.refused(told, clock())
      return failed(failure)
    } catch (error) {
      if (!isAnswered) quota.unanswered()
      if (signal.aborted) return failed({ kind: 'TIMEOUT' })
      return failed(
        error instanceof TooLarge
          ? { kind: 'INCONSISTENT', detail: error.message }
          : { kind: 'UNREACHABLE', detail: describeNetworkError(error) },
      )
    }
  }

  function toRequest(input: LifiInput, signal: AbortSignal): [url: string, init: RequestInit] {
    const headers = {
      accept: 'application/json',
      ...(apiKey === undefined ? {} : { 'x-lifi-api-key': apiKey }),
    }
    const usual = { redirect: 'error', signal } as const
    if ('query' in input) return [options.url + input.query, { ...usual, headers }]
    const ofBody = { 'content-type': 'application/json' }
    return [options.url, { ...usual, method: 'POST', body: input.json, headers: { ...headers, ...ofBody } }]
  }

  return {
    ask,
    againInMs: (failure) => (isFault(failure) ? breaker.againInMs(clock()) : 0),
  }
}

/** An answer that there is none. */
export function failed(failure: LifiFailure): LifiAnswer {
  return { ok: false, failure, isAsked: true }
}

function notAsked(failure: LifiFailure, forMs: number): LifiAnswer {
  return { ok: false, failure, isAsked: false, forMs }
}

/** Whether it is the source that fails, and not the question. */
function isFault({ kind }: LifiFailure): boolean {
  return kind === 'TIMEOUT' || kind === 'UNREACHABLE' || kind === 'INCONSISTENT' || kind === 'UNAUTHORIZED'
}

function describe(failure: LifiFailure): string {
  return 'detail' in failure ? failure.detail : failure.kind
}

function parse(text: string): ParsedBody {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch {
    return { ok: false }
  }
}

class TooLarge extends Error {
  override readonly name = 'TooLarge'
}

async function readLimited(response: Response): Promise<string> {
  if (response.body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body) {
    size += chunk.length
    if (size > MOST_ANSWER_BYTES) throw new TooLarge(`it is larger than ${MOST_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Says what a failed fetch was about, without the URL: `ECONNREFUSED`. */
function describeNetworkError(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  return typeof cause?.code === 'string' ? cause.code : 'the connection failed'
}
