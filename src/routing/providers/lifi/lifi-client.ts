import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import type { Hex } from '../../../domain/hex.ts'
import type { Logger } from '../../../domain/logger.ts'
import type { OnBreakerChange } from '../../../nodes/breaker.ts'
import { type LossCap, USUAL_LOSS_CAP } from './lifi-costs.ts'
import { createLifiEndpoint, failed, type LifiAnswer } from './lifi-endpoint.ts'
import type { LifiFailure } from './lifi-failure.ts'

/** Where LI.FI, or what speaks its shape, is reached. */
export interface LifiOptions {
  /** As routes name it; `lifi` unless told. */
  readonly name?: string
  /** Without `/v1`: `https://li.quest`. */
  readonly url: string
  /** Never in a log, an error or an answer. */
  readonly apiKey?: string | undefined
  /** How long an answer may take; 2,500 unless told. */
  readonly timeoutMs?: number
  /** What a payment may lose on its way; 10 % or 8 USD unless told, whichever is more. */
  readonly lossCap?: LossCap
}

export interface LifiClientOptions extends LifiOptions {
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly logger: Logger
}

export interface LifiClient {
  readonly name: string
  readonly lossCap: LossCap
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
  /** Seconds after which a question for a quote that has just failed like this may have another answer. */
  againInSeconds(failure: LifiFailure): number
  /**
   * Asks what became of a transfer. Nothing is remembered. Never rejects; resolves as {@link quote} does.
   *
   * @param txHash - of the transaction that delivered it, or of the one that sent it
   */
  status(txHash: Hex, options: { readonly signal: AbortSignal }): Promise<LifiAnswer>
}

const TIMEOUT_MS = 2_500
const REMEMBERED_MS = 10_000
const MOST_REMEMBERED = 1_000

/** Makes the client. Quotas and failures are counted in it, so there is one of them in a process. */
export function createLifiClient(options: LifiClientOptions): LifiClient {
  const { name = 'lifi', apiKey, timeoutMs = TIMEOUT_MS, clock, fetch } = options
  const endpointAt = (path: string, what: string) =>
    createLifiEndpoint({
      url: `${options.url.replace(/\/+$/, '')}/v1${path}`,
      apiKey,
      timeoutMs,
      clock,
      fetch,
      onChange: toLog(options.logger, { provider: name, what }),
    })
  const quotes = endpointAt('/quote/contractCalls', 'quotes of other chains')
  const statuses = endpointAt('/status', 'where payments came from')
  const underWay = new Map<string, Promise<LifiAnswer>>()
  const remembered = new Map<string, { readonly answer: LifiAnswer; readonly untilMs: number }>()

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
    const asked = quotes.ask({ json: key }, call).then((answer) => {
      remember(key, answer)
      if (underWay.get(key) === asked) underWay.delete(key)
      return answer
    })
    underWay.set(key, asked)
    return asked
  }

  return {
    name,
    lossCap: options.lossCap ?? USUAL_LOSS_CAP,
    quote(request, { signal, fresh, call }) {
      const key = JSON.stringify(request)
      const known = fresh ? undefined : remembered.get(key)
      if (known !== undefined && clock() < known.untilMs) return Promise.resolve(known.answer)
      const asked = (fresh ? undefined : underWay.get(key)) ?? askOnce(key, call)
      return orTimeout(asked, signal)
    },
    againInSeconds(failure) {
      // An answer that only its reader finds wrong is remembered as well.
      const ofAnswer = isLasting(failure) || failure.kind === 'INCONSISTENT' ? REMEMBERED_MS : 0
      return Math.ceil(Math.max(quotes.againInMs(failure), ofAnswer) / 1_000)
    },
    status: (txHash, { signal }) => orTimeout(statuses.ask({ query: `?txHash=${txHash}` }, signal), signal),
  }
}

function toLog(logger: Logger, about: { readonly provider: string; readonly what: string }): OnBreakerChange {
  return (change) =>
    change.open
      ? logger.warn({ ...about, detail: change.detail }, 'the provider fails and is left alone for a while')
      : logger.info(about, 'the provider answers again')
}

/** Whether the same question would be answered alike in the next seconds. */
function isLasting({ kind }: LifiFailure): boolean {
  return kind === 'NO_ROUTE' || kind === 'AMOUNT_TOO_SMALL' || kind === 'REFUSED'
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
