import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import type { Hex } from '../domain/hex.ts'
import type { Logger } from '../domain/logger.ts'
import { createBreaker } from '../rpc/breaker.ts'
import { failureOfAnswer, type LifiFailure, type ParsedBody } from './lifi-failure.ts'
import { createQuota } from './quota.ts'

/** Where LI.FI, or what speaks its shape, is reached. */
export interface LifiOptions {
  /** As routes name it; `lifi` unless told. */
  readonly name?: string
  /** Without `/v1`: `https://li.quest`. */
  readonly url: string
  /** Never in a log, an error or an answer. */
  readonly apiKey?: string
  /** How long a quote may take; 2,500 unless told. */
  readonly timeoutMs?: number
}

export interface LifiClientOptions extends LifiOptions {
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly logger: Logger
}

/** What came of a question: JSON of which nothing is known yet, or why there is none. */
export type LifiAnswer =
  | { readonly ok: true; readonly body: unknown /** When it came, milliseconds since 1970. */; readonly atMs: number }
  | {
      readonly ok: false
      readonly failure: LifiFailure
      /** false: quota or earlier failures have kept it from being asked at all. */
      readonly isAsked: boolean
    }

export interface LifiClient {
  readonly name: string
  /**
   * Asks for a quote that ends in a call on the destination chain. The same question is asked once, however many ask it at a time, and its
   * answer is remembered for seconds. Never rejects; once the signal has fired it resolves as if the time were over.
   *
   * @param options - `fresh`: what is remembered does not count; `call`: the same for all questions of one call, of which none is told to come
   *   again while another of them finds out whether the source is well
   */
  quote(
    request: ContractCallsQuoteRequestToAmount,
    options: { readonly signal: AbortSignal; readonly fresh: boolean; readonly call: object },
  ): Promise<LifiAnswer>
  /**
   * Asks what became of a transfer. Nothing is remembered. Never rejects; resolves as {@link quote} does.
   *
   * @param txHash - of the transaction that delivered it, or of the one that sent it
   */
  status(txHash: Hex, options: { readonly signal: AbortSignal }): Promise<LifiAnswer>
  /** Seconds after which a question that has just failed like this may have another answer. */
  againInSeconds(failure: LifiFailure): number
}

/** What goes out, but for what all questions have. */
interface Exchange {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly body?: string
}

const TIMEOUT_MS = 2_500
const REMEMBERED_MS = 10_000
const MOST_REMEMBERED = 1_000

/** The largest answer that is read; usual ones have some 10 kB. */
const MOST_ANSWER_BYTES = 1 << 20

/** Makes the client. Quota and failures are counted in it, so there is one of them in a process. */
export function createLifiClient(options: LifiClientOptions): LifiClient {
  const { name = 'lifi', apiKey, timeoutMs = TIMEOUT_MS, clock, logger } = options
  const base = `${options.url.replace(/\/+$/, '')}/v1`
  const endpoint = `${base}/quote/contractCalls`
  const headers = {
    accept: 'application/json',
    ...(apiKey === undefined ? {} : { 'x-lifi-api-key': apiKey }),
  }
  const quota = createQuota()
  const underWay = new Map<string, Promise<LifiAnswer>>()
  const remembered = new Map<string, { readonly answer: LifiAnswer; readonly untilMs: number }>()
  let lastFault: LifiFailure = { kind: 'TIMEOUT' }
  const breaker = createBreaker((change) =>
    change.open
      ? logger.warn({ provider: name, detail: change.detail }, 'quotes of other chains fail and are not asked for')
      : logger.info({ provider: name }, 'quotes of other chains come again'),
  )

  let probe: { readonly call: object; readonly answer: Promise<LifiAnswer> } | undefined

  async function ask(exchange: Exchange, call: object): Promise<LifiAnswer> {
    const admission = breaker.admit(clock())
    if (admission === 'NO') {
      if (probe?.call !== call) return notAsked(lastFault)
      await probe.answer
      return ask(exchange, call)
    }
    const answer = askNow(exchange, admission)
    if (admission === 'YES') return answer
    const own = { call, answer }
    probe = own
    return answer.finally(() => {
      if (probe === own) probe = undefined
    })
  }

  async function askNow(exchange: Exchange, admission: 'YES' | 'PROBE'): Promise<LifiAnswer> {
    const waitMs = quota.take(clock())
    if (waitMs > 0) {
      if (admission === 'PROBE') breaker.abandon()
      return notAsked({ kind: 'QUOTA', seconds: Math.ceil(waitMs / 1_000) })
    }
    const answer = await send(exchange)
    if (!answer.ok && isFault(answer.failure)) {
      lastFault = answer.failure
      const opensAtOnce = answer.failure.kind !== 'UNREACHABLE'
      breaker.fail({ detail: describe(answer.failure), opensAtOnce }, clock())
    } else breaker.succeed()
    return answer
  }

  async function send({ url, ...exchange }: Exchange): Promise<LifiAnswer> {
    const signal = AbortSignal.timeout(timeoutMs)
    let isAnswered = false
    try {
      const ofBody = exchange.body === undefined ? {} : { 'content-type': 'application/json' }
      const init = { ...exchange, headers: { ...headers, ...ofBody }, redirect: 'error', signal } as const
      const response = await options.fetch(url, init)
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

  function remember(key: string, answer: LifiAnswer): void {
    if (!answer.ok && !isLasting(answer.failure)) return
    remembered.delete(key)
    if (remembered.size >= MOST_REMEMBERED) {
      const [oldest] = remembered.keys()
      if (oldest !== undefined) remembered.delete(oldest)
    }
    remembered.set(key, { answer, untilMs: clock() + REMEMBERED_MS })
  }

  /** Goes on when those that asked are gone: it counts against the quota already, and the next may ask the same. */
  function askOnce(key: string, call: object): Promise<LifiAnswer> {
    const asked = ask({ url: endpoint, method: 'POST', body: key }, call).then((answer) => {
      remember(key, answer)
      if (underWay.get(key) === asked) underWay.delete(key)
      return answer
    })
    underWay.set(key, asked)
    return asked
  }

  return {
    name,
    againInSeconds(failure) {
      const ofSource = isFault(failure) ? breaker.againInMs(clock()) : 0
      // An answer that only its reader finds wrong is remembered as well.
      const ofAnswer = isLasting(failure) || failure.kind === 'INCONSISTENT' ? REMEMBERED_MS : 0
      return Math.ceil(Math.max(ofSource, ofAnswer) / 1_000)
    },
    quote(request, { signal, fresh, call }) {
      const key = JSON.stringify(request)
      const known = fresh ? undefined : remembered.get(key)
      if (known !== undefined && clock() < known.untilMs) return Promise.resolve(known.answer)
      const asked = (fresh ? undefined : underWay.get(key)) ?? askOnce(key, call)
      return orTimeout(asked, signal)
    },
    status: (txHash, { signal }) =>
      orTimeout(ask({ url: `${base}/status?txHash=${txHash}`, method: 'GET' }, signal), signal),
  }
}

function failed(failure: LifiFailure): LifiAnswer {
  return { ok: false, failure, isAsked: true }
}

function notAsked(failure: LifiFailure): LifiAnswer {
  return { ok: false, failure, isAsked: false }
}

/** Whether it is the source that fails, and not the question. */
function isFault({ kind }: LifiFailure): boolean {
  return kind === 'TIMEOUT' || kind === 'UNREACHABLE' || kind === 'INCONSISTENT' || kind === 'UNAUTHORIZED'
}

/** Whether the same question would be answered alike in the next seconds. */
function isLasting({ kind }: LifiFailure): boolean {
  return kind === 'NO_ROUTE' || kind === 'AMOUNT_TOO_SMALL' || kind === 'REFUSED'
}

function describe(failure: LifiFailure): string {
  return 'detail' in failure ? failure.detail : failure.kind
}

function orTimeout(asked: Promise<LifiAnswer>, signal: AbortSignal): Promise<LifiAnswer> {
  const over = failed({ kind: 'TIMEOUT' })
  if (signal.aborted) return Promise.resolve(over)
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(over)
    signal.addEventListener('abort', onAbort, { once: true })
    asked.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
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
