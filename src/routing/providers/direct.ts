import { encodeFunctionData, parseAbi } from 'viem'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import type { ChainDirectory } from '../../domain/chain.ts'
import type { ChainConfig } from '../../domain/chains-file.ts'
import type { Token } from '../../domain/currency.ts'
import type { Hex } from '../../domain/hex.ts'
import { explain } from '../../errors.ts'
import { erc20PaymentGas, nativePaymentGas } from '../gas.ts'
import { readAllowance, uintAt } from '../multicall.ts'
import { type Payment, platformFeeOf } from '../payment.ts'
import type { Step, Transaction } from '../steps.ts'
import { approvalSteps } from './approval.ts'
import { explainUnreadable, newestContract, secondsOfBlocks } from './contracts.ts'
import type { Plan, Provider, Quote } from './provider.ts'
import { receiverReads } from './receivers.ts'

/** Also the name under which a platform fee goes out, since the proxy takes it. */
const NAME = 'request-network'

const NO_IMPACT = { units: 0n, places: 0 }

/**
 * Pays a request in its payment currency on its chain, through Request's fee proxy: ERC20 tokens by
 * `transferFromWithReferenceAndFee`, native coins by `transferExactEthWithReferenceAndFee`.
 */
export function createDirectProvider(chains: ChainDirectory): Provider {
  return {
    name: NAME,
    kind: 'DIRECT',
    plan({ source }, payment) {
      const chain = chains.config(source.chain)
      const kind = source.address === undefined ? 'ETHEREUM_FEE_PROXY' : 'ERC20_FEE_PROXY'
      const proxy = chain === undefined ? undefined : newestContract(chain, kind)
      if (chain === undefined || proxy === undefined) {
        return explain('NO_PAYMENT_CONTRACT', { token: source.symbol, chain: source.chain })
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
    reads: [allowanceRead, ...receivers.reads],
    quote(state) {
      const charged = chargedFor(payment)
      const allowance = uintAt(state.answerTo(allowanceRead) ?? '', 0)
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
    reads: receivers.reads,
    quote(state) {
      const charged = chargedFor(payment)
      const gasLimit = nativePaymentGas(receivers.gasFacts(state, charged.fee))
      const transaction = () => nativePayment(proxy, payment, charged)
      return quoteOf(chain, coin, charged, [{ kind: 'PAY', gasLimit, transaction }])
    },
  }
}

interface Charged {
  readonly amount: bigint
  /** undefined where no platform fee was asked for. */
  readonly fee: bigint | undefined
  readonly total: bigint
}

function chargedFor({ amount, platformFee }: Payment): Charged {
  const fee = platformFee === undefined ? undefined : platformFeeOf(amount, platformFee.percentage)
  return { amount, fee, total: amount + (fee ?? 0n) }
}

/** @see https://github.com/RequestNetwork/requestNetwork, ERC20FeeProxy and EthereumFeeProxy */
const PROXY_ABI = parseAbi([
  'function transferFromWithReferenceAndFee(address token, address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function transferExactEthWithReferenceAndFee(address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress) payable',
])

function erc20Payment(proxy: Address, token: Address, payment: Payment, { amount, fee = 0n }: Charged): Transaction {
  const { request } = payment
  const data = encodeFunctionData({
    abi: PROXY_ABI,
    functionName: 'transferFromWithReferenceAndFee',
    args: [token as Hex, request.payee as Hex, amount, request.paymentReference, fee, feeReceiverOf(payment)],
  })
  return { to: proxy, data, value: 0n }
}

function nativePayment(proxy: Address, payment: Payment, { amount, fee = 0n, total }: Charged): Transaction {
  const { request } = payment
  const data = encodeFunctionData({
    abi: PROXY_ABI,
    functionName: 'transferExactEthWithReferenceAndFee',
    args: [request.payee as Hex, amount, request.paymentReference, fee, feeReceiverOf(payment)],
  })
  return { to: proxy, data, value: total }
}

function feeReceiverOf({ platformFee }: Payment): Hex {
  return (platformFee?.receiver ?? ZERO_ADDRESS) as Hex
}

function quoteOf(chain: ChainConfig, token: Token, charged: Charged, steps: readonly Step[]): Quote {
  const platform = { type: 'PLATFORM', stage: 'SENDING', provider: NAME, token } as const
  return {
    sourceAmount: charged.total,
    mostPulled: charged.total,
    received: charged.amount,
    costs: charged.fee === undefined ? [] : [{ ...platform, amount: charged.fee }],
    priceImpact: NO_IMPACT,
    steps,
    durationSeconds: secondsOfBlocks(chain, steps.length),
    atomic: true,
  }
}
