import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import { dropOldest } from '../../../domain/collections.ts'
import { formatAmount } from '../../../domain/decimal.ts'
import type { Hex } from '../../../domain/hex.ts'
import type { Logger } from '../../../domain/logger.ts'
import { untilAborted } from '../../../domain/within.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import type { OnBreakerChange } from '../../../nodes/breaker.ts'
import { type LossCap, USUAL_LOSS_CAP } from './lifi-costs.ts'
import { createLifiEndpoint, failed, type LifiAnswer } from './lifi-endpoint.ts'
import { type LifiFailure, NO_ANSWER } from './lifi-failure.ts'
import type { LifiQuestion, RejectedQuoteError } from './lifi-question.ts'

/** How LI.FI, or a service with its API, is reached. */
export interface LifiOptions {
  /** The provider's name in routes; default `lifi`. */
  readonly name?: string
  /** Without `/v1`: `https://li.quest`. */
  readonly url: string
  /** Never in a log, an error or an answer. */
  readonly apiKey?: string | undefined
  /** For one answer; default 2,500. */
  readonly timeoutMs?: number
  /** What a payment may lose on its way; default 10 % or 8 USD, whichever is more. */
  readonly lossCap?: LossCap
}

interface LifiClientOptions extends LifiOptions {
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly logger: Logger
}

export type LifiClient = ReturnType<typeof createLifiClient>

interface QuoteOptions {
  readonly signal: AbortSignal
  /** Use no remembered answer. */
  readonly fresh: boolean
}

const TIMEOUT_MS = 2_500
const REMEMBERED_MS = 10_000
const MAX_REMEMBERED = 1_000

/** Makes the client. It counts quotas and failures, so a process must make only one. */
export function createLifiClient(options: LifiClientOptions) {
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
  /** Answers that came, and questions that are under way. */
  const remembered = new Map<string, { readonly answer: Promise<LifiAnswer>; untilMs: number }>()

  /** Goes on when its callers are gone: it has been counted against the quota, and the next caller may ask the same. */
  function askOnce(key: string): Promise<LifiAnswer> {
    const entry = { answer: quotes.ask({ json: key }), untilMs: Number.POSITIVE_INFINITY }
    remembered.delete(key)
    remembered.set(key, entry)
    dropOldest(remembered, MAX_REMEMBERED)
    void entry.answer.then((answer) => {
      entry.untilMs = answer.ok || isLasting(answer.failure) ? clock() + REMEMBERED_MS : 0
    })
    return entry.answer
  }

  return {
    name,
    lossCap: options.lossCap ?? USUAL_LOSS_CAP,
    /**
     * Asks for a quote that ends in a call on the destination chain. Equal questions at the same time are sent once, and the answer is
     * remembered for 10 seconds. Never rejects; once the signal has fired it resolves as TIMEOUT.
     */
    quote(request: ContractCallsQuoteRequestToAmount, { signal, fresh }: QuoteOptions): Promise<LifiAnswer> {
      const key = JSON.stringify(request)
      const known = fresh ? undefined : remembered.get(key)
      return orTimeout(known !== undefined && clock() < known.untilMs ? known.answer : askOnce(key), signal)
    },
    /** Seconds until a question for a quote that has just failed like this may have another answer. */
    againInSeconds(failure: LifiFailure): number {
      // An answer that its reader rejects is remembered as well.
      const ofAnswer = isLasting(failure) || failure.kind === 'INCONSISTENT' ? REMEMBERED_MS : 0
      return Math.ceil(Math.max(quotes.againInMs(failure), ofAnswer) / 1_000)
    },
    /**
     * Asks for the status of a transfer. Nothing is remembered. Never rejects, as `quote`.
     *
     * @param txHash - of the transaction that delivered it, or of the one that sent it
     */
    status: (txHash: Hex, { signal }: Pick<QuoteOptions, 'signal'>) =>
      orTimeout(statuses.ask({ query: `?txHash=${txHash}` }), signal),
  }
}

function toLog(logger: Logger, about: { readonly provider: string; readonly what: string }): OnBreakerChange {
  return (change) =>
    change.open
      ? logger.warn({ ...about, detail: change.detail }, 'the provider fails and is left alone for a while')
      : logger.info(about, 'the provider answers again')
}

/** Whether the same question would fail alike for the next seconds. */
function isLasting({ kind }: LifiFailure): boolean {
  return kind === 'NO_ROUTE' || kind === 'AMOUNT_TOO_SMALL' || kind === 'REFUSED'
}

/** Questions never reject, so only the signal does. */
function orTimeout(asked: Promise<LifiAnswer>, signal: AbortSignal): Promise<LifiAnswer> {
  return untilAborted(asked, signal).catch(() => failed(NO_ANSWER))
}

/** Explains why there is no quote. */
export function explainFailure(client: LifiClient, question: LifiQuestion, failure: LifiFailure): Explanation {
  const { name: provider } = client
  const seconds = client.againInSeconds(failure)
  const { source, destination } = question
  switch (failure.kind) {
    case 'TIMEOUT':
    case 'UNREACHABLE':
      return explain('CROSSCHAIN_UNREACHABLE', { provider, seconds, detail: failure.detail })
    case 'INCONSISTENT':
      return explainRejection(client, { check: 'INCONSISTENT', message: failure.detail })
    case 'QUOTA':
      return explain('CROSSCHAIN_QUOTA_EXHAUSTED', { provider, seconds: failure.seconds })
    case 'UNAUTHORIZED':
      return explain('CROSSCHAIN_UNAUTHORIZED', { provider })
    case 'AMOUNT_TOO_SMALL':
      return explainTooSmall(provider, question, failure.detail)
    case 'NO_ROUTE':
      return explain('CROSSCHAIN_NO_ROUTE', {
        provider,
        token: source.symbol,
        chain: source.chain,
        ...paidDirectly(question),
        seconds,
        detail: failure.detail,
      })
    case 'REFUSED':
      return explain('CROSSCHAIN_REFUSED', {
        provider,
        chain: source.chain,
        destinationChain: destination.chain,
        detail: failure.detail,
      })
  }
}

/** Explains why a quote is rejected. The metadata name the check that failed. */
export function explainRejection(
  client: LifiClient,
  { check, message: detail }: Pick<RejectedQuoteError, 'check' | 'message'>,
): Explanation {
  const terms = { provider: client.name, seconds: client.againInSeconds({ kind: 'INCONSISTENT', detail }), detail }
  if (check === 'COST_TOO_HIGH') return explain('CROSSCHAIN_COST_TOO_HIGH', terms)
  return { ...explain('CROSSCHAIN_REJECTED', { ...terms, check }), metadata: { check } }
}

/** @param detail - the amount, or LI.FI's words about it */
export function explainTooSmall(provider: string, question: LifiQuestion, detail: string): Explanation {
  return explain('CROSSCHAIN_AMOUNT_TOO_SMALL', {
    provider,
    chain: question.source.chain,
    ...paidDirectly(question),
    detail,
  })
}

function paidDirectly({ request, destination }: LifiQuestion) {
  const need = formatAmount(BigInt(request.toAmount), destination.decimals)
  return { need, paymentToken: destination.symbol, destinationChain: destination.chain }
}
