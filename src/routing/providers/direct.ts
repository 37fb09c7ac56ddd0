import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { isErc20 } from '../../domain/currency.ts'
import { ZERO } from '../../domain/decimal.ts'
import { readApproval } from '../plans/approval.ts'
import { findContract, usedOn } from '../plans/configured-contract.ts'
import { chargedFor, payStep, platformCosts, REQUEST_NETWORK, receiverReads } from '../plans/fee-proxy.ts'
import type { Provider } from '../plans/provider.ts'

/**
 * Pays a request in its payment currency on its chain, through Request's fee proxy: ERC20 tokens by
 * `transferFromWithReferenceAndFee`, native coins by `transferExactEthWithReferenceAndFee`.
 */
export function createDirectProvider(chains: ChainDirectory): Provider {
  return {
    name: REQUEST_NETWORK,
    kind: 'DIRECT',
    plan({ source: token }, payment) {
      const found = findContract(chains, token, isErc20(token) ? 'ERC20_FEE_PROXY' : 'ETHEREUM_FEE_PROXY')
      if ('reason' in found) return found
      const { chain, contract: proxy } = found
      const { amount, fee, total } = chargedFor(payment)
      const approvals = readApproval(token, payment.wallet, proxy)
      const receivers = receiverReads(chain, token, payment)
      return {
        contracts: usedOn(chain.name, token.address, proxy),
        reads: [...approvals.reads, ...receivers.reads],
        quote(state) {
          const approval = approvals.decode(state)
          if ('reason' in approval) return approval
          const { steps: approve, allowance } = approval.upTo(total)
          const facts = { gasFacts: receivers.gasFacts(state, fee), balance: state.balanceOf(token), allowance }
          const steps = [...approve, payStep(proxy, token, payment, facts)]
          return {
            sourceAmount: total,
            maxPulled: total,
            received: amount,
            costs: platformCosts(fee, token),
            priceImpact: ZERO,
            steps,
            atomic: true,
          }
        },
      }
    },
  }
}
