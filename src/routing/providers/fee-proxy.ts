import { encodeFunctionData, parseAbi } from 'viem'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { formatAmount } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import { type Payment, platformFeeOf } from '../due-payment.ts'
import type { Transaction } from '../quotes/steps.ts'

/** What a payment through the fee proxy takes, base units of what is paid. */
export interface Charged {
  readonly amount: bigint
  /** undefined where no platform fee was asked for. */
  readonly fee: bigint | undefined
  readonly total: bigint
}

/** The amount and, on top of it, the platform's fee. */
export function chargedFor({ amount, platformFee }: Payment): Charged {
  const fee = platformFee === undefined ? undefined : platformFeeOf(amount, platformFee.percentage)
  return { amount, fee, total: amount + (fee ?? 0n) }
}

/** What a remedy says that is to be paid in the payment currency itself, which is always enough. */
export interface DirectTerms {
  /** Human units. */
  readonly need: string
  readonly paymentToken: string
  readonly destinationChain: string
}

export function directTerms(payment: Payment): DirectTerms {
  const { symbol, chain, decimals } = payment.destination
  return { need: formatAmount(chargedFor(payment).total, decimals), paymentToken: symbol, destinationChain: chain }
}

/** @see https://github.com/RequestNetwork/requestNetwork, ERC20FeeProxy and EthereumFeeProxy */
const PROXY_ABI = parseAbi([
  'function transferFromWithReferenceAndFee(address token, address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function transferExactEthWithReferenceAndFee(address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress) payable',
])

/** Pays with a token that the proxy may pull. */
export function erc20Payment(
  proxy: Address,
  token: Address,
  payment: Payment,
  { amount, fee = 0n }: Charged,
): Transaction {
  const { request } = payment
  const data = encodeFunctionData({
    abi: PROXY_ABI,
    functionName: 'transferFromWithReferenceAndFee',
    args: [token as Hex, request.payee as Hex, amount, request.paymentReference, fee, feeReceiverOf(payment)],
  })
  return { to: proxy, data, value: 0n }
}

/** Pays with the native coin. */
export function nativePayment(proxy: Address, payment: Payment, { amount, fee = 0n, total }: Charged): Transaction {
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
