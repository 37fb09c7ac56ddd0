/**
 * The calls by which wallets pay: ABIs, which decoders of calls share, and encoders. Amounts are base units.
 *
 * @see https://github.com/RequestNetwork/requestNetwork, packages/smart-contracts
 */
import type { Abi } from 'viem'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import { type Address, formatAddress } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import type { ExactOutput } from './contract-reads.ts'

const ERC20 = parseAbi(['function approve(address spender, uint256 amount) returns (bool)'])

const ERC20_FEE_PROXY = parseAbi([
  'function transferFromWithReferenceAndFee(address token, address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
])

/** EthereumFeeProxy. The first function pays what is left of the value after the fee. */
export const NATIVE_FEE_PROXY = parseAbi([
  'function transferWithReferenceAndFee(address to, bytes paymentReference, uint256 feeAmount, address feeAddress) payable',
  'function transferExactEthWithReferenceAndFee(address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress) payable',
])

const ERC20_CONVERSION_PROXY = parseAbi([
  'function transferFromWithReferenceAndFee(address to, uint256 requestAmount, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 maxToSpend, uint256 maxRateTimespan)',
])

/** EthConversionProxy. */
export const NATIVE_CONVERSION_PROXY = parseAbi([
  'function transferWithReferenceAndFee(address to, uint256 requestAmount, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 maxRateTimespan) payable',
])

const SWAP_TO_PAY = parseAbi([
  'function swapTransferWithReference(address paymentProxy, address to, uint256 amount, uint256 amountInMax, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 deadline)',
])

/** SwapRouter02. */
const SWAP_ROUTER = parseAbi([
  'function exactOutputSingle((address tokenIn, address tokenOut, uint24 fee, address recipient, uint256 amountOut, uint256 amountInMaximum, uint160 sqrtPriceLimitX96) params) payable',
  'function multicall(uint256 deadline, bytes[] data) payable',
])

/** The calls of batch contracts: those of BatchPayments end in `WithReference`, the others are those of the later contracts. */
export const BATCH = parseAbi([
  'struct RequestDetail { address recipient; uint256 requestAmount; address[] path; bytes paymentReference; uint256 feeAmount; uint256 maxToSpend; uint256 maxRateTimespan; }',
  'struct MetaDetail { uint256 paymentNetworkId; RequestDetail[] requestDetails; }',
  'function batchERC20PaymentsWithReference(address token, address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function batchEthPaymentsWithReference(address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function batchERC20Payments(RequestDetail[] requestDetails, address[][] pathsToUSD, address feeAddress)',
  'function batchNativePayments(RequestDetail[] requestDetails, bool skipFeeUSDLimit, address feeAddress)',
  'function batchNativeConversionPayments(RequestDetail[] requestDetails, bool skipFeeUSDLimit, address feeAddress)',
  'function batchPayments(MetaDetail[] metaDetails, address[][] pathsToUSD, address feeAddress)',
])

/** What every payment through a proxy says. */
export interface ProxyPayment {
  readonly to: Address
  /** In the payment currency; of conversions, in the invoice currency. */
  readonly amount: bigint
  readonly paymentReference: Hex
  /** In the same currency. */
  readonly feeAmount: bigint
  readonly feeAddress: Address
}

/** A payment whose amounts the proxy converts when it is mined. */
interface ConvertedPayment extends ProxyPayment {
  /** Addresses that stand for currencies, from the invoice currency to the payment currency. */
  readonly path: readonly Address[]
  /** The proxy refuses rates that are older; 0 would let it take a rate of any age. */
  readonly maxRateAgeSeconds: number
}

/** A payment for which ERC20SwapToPay swaps a token. */
interface SwappedPayment extends ProxyPayment {
  /** The fee proxy. */
  readonly proxy: Address
  readonly maxAmountIn: bigint
  /** Tokens, from the one that goes in to the one that is paid. */
  readonly path: readonly Address[]
  readonly deadlineSec: number
}

/** A swap on a Uniswap-v3-compatible exchange that a wallet makes. */
interface ExactOutputSwap extends ExactOutput {
  readonly recipient: Address
  readonly maxAmountIn: bigint
  readonly deadlineSec: number
}

/** `approve` of a token. */
export function encodeApprove(spender: Address, amount: bigint): Hex {
  return encodeFunctionData({ abi: ERC20, args: [spender as Hex, amount] })
}

/** ERC20FeeProxy's call, for a token that the proxy may pull. */
export function encodeErc20Payment(token: Address, payment: ProxyPayment): Hex {
  return encodeFunctionData({ abi: ERC20_FEE_PROXY, args: [token as Hex, ...termsOf(payment)] })
}

/** EthereumFeeProxy's call; the transaction sends amount and fee. */
export function encodeNativePayment(payment: ProxyPayment): Hex {
  const functionName = 'transferExactEthWithReferenceAndFee'
  return encodeFunctionData({ abi: NATIVE_FEE_PROXY, functionName, args: termsOf(payment) })
}

/**
 * EthereumFeeProxy's call as an address that wallets on phones open. It says all of the payment, its reference as well.
 *
 * @see https://eips.ethereum.org/EIPS/eip-681
 */
export function nativePaymentUri(proxy: Address, chainId: number, payment: ProxyPayment): string {
  const { to, amount, paymentReference, feeAmount, feeAddress } = payment
  const [target, payee, feeReceiver] = [proxy, to, feeAddress].map(formatAddress)
  const terms = `address=${payee}&uint256=${amount}&bytes=${paymentReference}&uint256=${feeAmount}&address=${feeReceiver}`
  return `ethereum:${target}@${chainId}/transferExactEthWithReferenceAndFee?${terms}&value=${amount + feeAmount}`
}

/** What BatchPayments takes of each payment, as lists. */
const BATCH_COLUMNS = ['to', 'amount', 'paymentReference', 'feeAmount'] as const

/**
 * The call of a batch contract, with the fee address of the first payment for all. The later contracts are given no path to US dollars, so
 * that their limit of the fee does not apply.
 *
 * @param token - undefined for native coins, of which the transaction sends the sum
 * @param isFirstKind - whether the contract is BatchPayments
 */
export function encodeBatch(token: Address | undefined, payments: readonly ProxyPayment[], isFirstKind: boolean): Hex {
  const encode = (functionName: string, args: readonly unknown[]) =>
    encodeFunctionData<Abi, string>({ abi: BATCH, functionName, args })
  const feeAddress = payments[0]?.feeAddress
  if (isFirstKind) {
    const columns = BATCH_COLUMNS.map((name) => payments.map((payment) => payment[name]))
    return token === undefined
      ? encode('batchEthPaymentsWithReference', [...columns, feeAddress])
      : encode('batchERC20PaymentsWithReference', [token, ...columns, feeAddress])
  }
  const unused = { path: token === undefined ? [] : [token], maxToSpend: 0n, maxRateTimespan: 0n }
  const details = payments.map(({ to, amount, ...rest }) => {
    return { recipient: to, requestAmount: amount, ...rest, ...unused }
  })
  return token === undefined
    ? encode('batchNativePayments', [details, true, feeAddress])
    : encode('batchERC20Payments', [details, [], feeAddress])
}

/** Erc20ConversionProxy's call. */
export function encodeErc20Conversion(payment: ConvertedPayment & { readonly maxToSpend: bigint }): Hex {
  const args = [...convertedTermsOf(payment), payment.maxToSpend, BigInt(payment.maxRateAgeSeconds)] as const
  return encodeFunctionData({ abi: ERC20_CONVERSION_PROXY, args })
}

/** EthConversionProxy's call; the transaction sends the most that may be spent, and the proxy gives the rest back. */
export function encodeNativeConversion(payment: ConvertedPayment): Hex {
  const args = [...convertedTermsOf(payment), BigInt(payment.maxRateAgeSeconds)] as const
  return encodeFunctionData({ abi: NATIVE_CONVERSION_PROXY, args })
}

/** ERC20SwapToPay's call, of versions 0.4.0 and later. */
export function encodeSwappedPayment(payment: SwappedPayment): Hex {
  const { proxy, maxAmountIn, path, deadlineSec } = payment
  const [to, amount, ...rest] = termsOf(payment)
  const args = [proxy as Hex, to, amount, maxAmountIn, path as readonly Hex[], ...rest, BigInt(deadlineSec)] as const
  return encodeFunctionData({ abi: SWAP_TO_PAY, args })
}

/** SwapRouter02's call. It knows deadlines only around other calls. */
export function encodeExactOutputSwap(swap: ExactOutputSwap): Hex {
  const params = {
    tokenIn: swap.tokenIn as Hex,
    tokenOut: swap.tokenOut as Hex,
    fee: swap.fee,
    recipient: swap.recipient as Hex,
    amountOut: swap.amountOut,
    amountInMaximum: swap.maxAmountIn,
    sqrtPriceLimitX96: 0n,
  }
  const data = encodeFunctionData({ abi: SWAP_ROUTER, functionName: 'exactOutputSingle', args: [params] })
  return encodeFunctionData({ abi: SWAP_ROUTER, functionName: 'multicall', args: [BigInt(swap.deadlineSec), [data]] })
}

function termsOf({ to, amount, paymentReference, feeAmount, feeAddress }: ProxyPayment) {
  return [to as Hex, amount, paymentReference, feeAmount, feeAddress as Hex] as const
}

function convertedTermsOf(payment: ConvertedPayment) {
  const [to, amount, ...rest] = termsOf(payment)
  return [to, amount, payment.path as readonly Hex[], ...rest] as const
}
