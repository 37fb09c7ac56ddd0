import { formatAmount } from '../../domain/decimal.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { type Candidate, isFiatRequest } from '../plans/candidates.ts'
import { directTerms } from '../plans/fee-proxy.ts'
import type { Plan } from '../plans/provider.ts'
import type { Payment } from '../question/due-payment.ts'
import type { ChainState } from '../scan/wallet-state.ts'

/**
 * The plan of a candidate without a provider. Its balance is read all the same, so that the answer tells which candidates would be worth a
 * provider. The missing provider is given before a missing balance: without a quote the need is unknown, and no balance would make it a route.
 */
export function planWithoutProvider(candidate: Candidate, payment: Payment): Plan {
  return { contracts: [], reads: [], quote: (state) => explainMissingProvider(candidate, payment, state) }
}

function explainMissingProvider(candidate: Candidate, payment: Payment, state: ChainState): Explanation {
  const { kind, source } = candidate
  const { request } = payment
  const have = formatAmount(state.balanceOf(source) ?? 0n, source.decimals)
  const wallet = { have, token: source.symbol, chain: source.chain }
  const target = directTerms(payment)
  // The last step would have to be a conversion, which takes only the payment currency.
  if (isFiatRequest(request) && kind !== 'CONVERSION') {
    return explain('NO_CONVERSION_PROVIDER', { ...wallet, ...target, invoiceCurrency: request.invoiceCurrency })
  }
  switch (kind) {
    case 'DIRECT':
    case 'CONVERSION':
      throw new TypeError(`there is no provider for ${kind}`)
    case 'SWAP':
      return explain('NO_SWAP_PROVIDER', { ...wallet, ...target })
    case 'CROSSCHAIN':
      return explain('NO_CROSSCHAIN_PROVIDER', { ...wallet, ...target })
  }
}
