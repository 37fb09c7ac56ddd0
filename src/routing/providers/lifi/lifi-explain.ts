import { formatAmount } from '../../../domain/decimal.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import type { LifiClient } from './lifi-client.ts'
import type { LifiFailure } from './lifi-failure.ts'
import type { LifiQuestion } from './lifi-question.ts'
import type { RejectedQuoteError } from './rejected-quote.ts'

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
