import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { readAllowance } from '../../contracts/contract-reads.ts'
import { uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { ZERO } from '../../domain/decimal.ts'
import type { Payment } from '../due-payment.ts'
import { erc20PaymentGas, nativePaymentGas } from '../quotes/gas.ts'
import type { Step } from '../quotes/steps.ts'
import { approvalSteps } from './approval.ts'
import { explainNoContract, explainUnreadable, newestContract, secondsOfBlocks, usedOn } from './configured-contract.ts'
import { type Charged, chargedFor, erc20Payment, nativePayment, platformCosts, REQUEST_NETWORK } from './fee-proxy.ts'
import type { Plan, Provider, Quote } from './provider.ts'
import { receiverReads } from './receivers.ts'

/**
 * Pays a request in its payment currency on its chain, through Request's fee proxy: ERC20 tokens by
 * `transferFromWithReferenceAndFee`, native coins by `transferExactEthWithReferenceAndFee`.
 */
export function createDirectProvider(chains: ChainDirectory): Provider {
  return {
    name: REQUEST_NETWORK,
    kind: 'DIRECT',
    plan({ source }, payment) {
      const chain = chains.config(source.chain)
      const kind = source.address === undefined ? 'ETHEREUM_FEE_PROXY' : 'ERC20_FEE_PROXY'
      const proxy = chain && newestContract(chain, kind)
      if (chain === undefined || proxy === undefined) {
        return explainNoContract(source, kind)
      }
      return source.address === undefined
        ? planNative(chain, proxy, source, payment)
        : planErc20(chain, proxy, { ...source, address: source.address }, payment)
    },
  }
}

function planErc20(chain: ChainConfig, proxy: Address, token: Token & { address: Address }, payment: Payment): Plan {
  const allowanceRead = readAllowance(token.address, payment.wallet, proxy)
  const receivers = receiverReads(chain, token, payment)
  return {
    contracts: usedOn(chain.name, token.address, proxy),
    reads: [allowanceRead, ...receivers.reads],
    quote(state) {
      const charged = chargedFor(payment)
      const allowance = uintAt(state.answerTo(allowanceRead), 0)
      if (allowance === undefined) return explainUnreadable(token, 'its allowance')
      const approvals = approvalSteps({ token, spender: proxy, allowance, need: charged.total })
      const pay: Step = {
        kind: 'PAY',
        gasLimit: erc20PaymentGas({
          ...receivers.gasFacts(state, charged.fee),
          clearsAllowance: approvals.length > 0 || allowance === charged.total,
          clearsBalance: state.balanceOf(token) === charged.total,
        }),
        transaction: () => erc20Payment(proxy, token.address, payment, charged),
      }
      return quoteOf(chain, token, charged, [...approvals, pay])
    },
  }
}

function planNative(chain: ChainConfig, proxy: Address, coin: Token, payment: Payment): Plan {
  const receivers = receiverReads(chain, coin, payment)
  return {
    contracts: usedOn(chain.name, proxy),
    reads: receivers.reads,
    quote(state) {
      const charged = chargedFor(payment)
      const gasLimit = nativePaymentGas(receivers.gasFacts(state, charged.fee))
      const transaction = () => nativePayment(proxy, payment, charged)
      return quoteOf(chain, coin, charged, [{ kind: 'PAY', gasLimit, transaction }])
    },
  }
}

function quoteOf(chain: ChainConfig, token: Token, charged: Charged, steps: readonly Step[]): Quote {
  return {
    sourceAmount: charged.total,
    maxPulled: charged.total,
    received: charged.amount,
    costs: platformCosts(charged.fee, token),
    priceImpact: ZERO,
    steps,
    durationSeconds: secondsOfBlocks(chain, steps.length),
    atomic: true,
  }
}
