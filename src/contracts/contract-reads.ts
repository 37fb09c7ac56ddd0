/** Calls that read contracts, with calldata written by hand as `words.ts` says. Their answers are words, in the order that each comment names. */
import type { Address } from '../domain/address.ts'
import type { ContractRead } from './multicall.ts'
import { encodeAddress, encodeUint } from './words.ts'

/** `balanceOf(owner)` of a token. */
export function readTokenBalance(token: Address, owner: Address): ContractRead {
  return { to: token, data: `0x70a08231${encodeAddress(owner)}` }
}

/** `allowance(owner, spender)` of a token. */
export function readAllowance(token: Address, owner: Address, spender: Address): ContractRead {
  return { to: token, data: `0xdd62ed3e${encodeAddress(owner)}${encodeAddress(spender)}` }
}

/** Multicall3's `getEthBalance(owner)`: the native coin. */
export function readNativeBalance(multicall: Address, owner: Address): ContractRead {
  return { to: multicall, data: `0x4d2301cc${encodeAddress(owner)}` }
}

/** Multicall3's `getCurrentBlockTimestamp()`, in seconds since 1970. */
export function readBlockTimestamp(multicall: Address): ContractRead {
  return { to: multicall, data: '0x0f28c97d' }
}

/** `getConversion(amount, path)` of Request's ChainlinkConversionPath: the converted amount, the time of the oldest feed. */
export function readConversion(contract: Address, amount: bigint, path: readonly Address[]): ContractRead {
  return { to: contract, data: `0xfbd4122a${encodeUint(amount)}${encodeUint(0x40)}${encodePath(path)}` }
}

/**
 * `getRate(path)` of Request's ChainlinkConversionPath: the rate, the time of the oldest feed, the scale of the rate. It does not depend on an
 * amount, so payments of one block share it.
 */
export function readPathRate(contract: Address, path: readonly Address[]): ContractRead {
  return { to: contract, data: `0x97edd4fa${encodeUint(0x20)}${encodePath(path)}` }
}

/** `isSanctioned(wallet)` of a screening oracle: a bool. */
export function readIsSanctioned(oracle: Address, wallet: Address): ContractRead {
  return { to: oracle, data: `0xdf592f7d${encodeAddress(wallet)}` }
}

/**
 * Decodes the answer to {@link readIsSanctioned}.
 *
 * @param digits - return data without `0x`; undefined where the call failed
 * @returns undefined for anything but a bool
 */
export function decodeIsSanctioned(digits: string | undefined): boolean | undefined {
  if (digits === encodeUint(0)) return false
  return digits === encodeUint(1) ? true : undefined
}

function encodePath(path: readonly Address[]): string {
  return encodeUint(path.length) + path.map(encodeAddress).join('')
}

/** `allAggregators(input, output)` of ChainlinkConversionPath: the feed that it uses in that direction; the zero address is none. */
export function readAggregator(contract: Address, input: Address, output: Address): ContractRead {
  return { to: contract, data: `0x08d5bc58${encodeAddress(input)}${encodeAddress(output)}` }
}

/** `getReserves()` of a Uniswap-v2-compatible pair: its reserves of the token of the lower address, and of the other. */
export function readReserves(pair: Address): ContractRead {
  return { to: pair, data: '0x0902f1ac' }
}

/** `swapRouter()` of ERC20SwapToPay. */
export function readSwapRouter(swapToPay: Address): ContractRead {
  return { to: swapToPay, data: '0xc31c9c07' }
}

/** `requestSwapFees()` of ERC20SwapToPay, in thousandths of the amount bought. */
export function readSwapFee(swapToPay: Address): ContractRead {
  return { to: swapToPay, data: '0x3e952c1a' }
}

/** `slot0()` of a Uniswap-v3-compatible pool: first the square root of the price, in units of 2^-96. */
export function readSlot0(pool: Address): ContractRead {
  return { to: pool, data: '0x3850c7bd' }
}

/** A swap on a Uniswap-v3-compatible pool of which the output is given, in base units. */
export interface ExactOutput {
  readonly tokenIn: Address
  readonly tokenOut: Address
  readonly amountOut: bigint
  /** The pool's fee in millionths. */
  readonly fee: number
}

/** `quoteExactOutputSingle` of QuoterV2: the input, the square root of the price afterwards, ticks crossed, gas of the swap. */
export function readExactOutput(quoter: Address, { tokenIn, tokenOut, amountOut, fee }: ExactOutput): ContractRead {
  const noPriceLimit = encodeUint(0)
  const pair = encodeAddress(tokenIn) + encodeAddress(tokenOut)
  return { to: quoter, data: `0xbd21704a${pair}${encodeUint(amountOut)}${encodeUint(fee)}${noPriceLimit}` }
}

/** `getL1FeeUpperBound(size)` of an OP stack's GasPriceOracle, wei, for an unsigned transaction of that many bytes. */
export function readL1FeeUpperBound(oracle: Address, size: number): ContractRead {
  return { to: oracle, data: `0xf1c7a58b${encodeUint(size)}` }
}

/** `getPricesInWei()` of ArbGasInfo: the second is the price of a byte of calldata on the parent chain. */
export function readPricesInWei(gasInfo: Address): ContractRead {
  return { to: gasInfo, data: '0x41b247a8' }
}

/**
 * What a batch contract says of itself: `batchFee()`, `batchFeeAmountUSDLimit()`, which only later ones have, and the proxy that it pays
 * through, as BatchPayments names it (`paymentErc20FeeProxy()`, `paymentEthFeeProxy()`) and as later ones do (`paymentErc20Proxy()`,
 * `paymentNativeProxy()`).
 */
export function readBatchTerms(to: Address, isToken: boolean): readonly ContractRead[] {
  const proxy = isToken ? (['0x22411509', '0xdae3d6bb'] as const) : (['0xa5246792', '0x0a9157c4'] as const)
  return (['0xf8b823e4', '0x2fae95bf', ...proxy] as const).map((data) => ({ to, data }))
}
