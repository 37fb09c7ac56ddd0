/**
 * A planned payment of the demo in human units, and its conversion to a call on a chain.
 */
import type { Address, Hex } from 'viem'
import type { DemoChainSpec } from '../network/chain-specs.ts'
import {
  type ContractCall,
  encodeErc20Conversion,
  encodeErc20Payment,
  encodeNativeConversion,
  encodeNativePayment,
  FIAT_DECIMALS,
  type PaymentTerms,
} from '../network/demo-contracts.ts'
import { type Deployed, USD_HASH } from '../network/deployment.ts'
import { usdPrice } from '../network/wandering-prices.ts'

export interface PlannedPayment {
  atSec: number
  payer: Address
  payee: string
  paymentReference: Hex
  /** Symbol of a token of the chain or of its native coin. */
  symbol: string
  /** Base units of `symbol`; for a conversion, US dollars with 8 decimals. */
  amount: bigint
  feeAmount: bigint
  feeAddress: Address
  conversion: boolean
  /** For a payment in coins: uses the newer of the proxy's two functions. */
  exact: boolean
}

export function decimalsOf(spec: DemoChainSpec, symbol: string): number {
  return spec.tokens.find((token) => token.symbol === symbol)?.decimals ?? 18
}

/** Converts US dollars to base units of `symbol`; dollars and price with 8 decimals. */
export function fromUsd(spec: DemoChainSpec, symbol: string, { usd, price }: { usd: bigint; price: bigint }): bigint {
  return (usd * 10n ** BigInt(decimalsOf(spec, symbol))) / price
}

/** Rounds tokens to cents and coins to millionths, but never to zero. */
export function roundAmount(spec: DemoChainSpec, symbol: string, amount: bigint): bigint {
  const places = symbol === spec.native.symbol ? 6 : 2
  const step = 10n ** BigInt(decimalsOf(spec, symbol) - places)
  return amount < step ? step : amount - (amount % step)
}

/** US dollars and cents in base units of fiat amounts. */
export function cents(amount: number): bigint {
  return BigInt(amount) * 10n ** BigInt(FIAT_DECIMALS - 2)
}

/** @throws RangeError when the chain has no such token */
export function encodePlannedPayment(spec: DemoChainSpec, deployed: Deployed, planned: PlannedPayment): ContractCall {
  const { amount, feeAmount, feeAddress, paymentReference, exact } = planned
  const common = { to: planned.payee as Address, paymentReference, amount, feeAmount, feeAddress }
  const { symbol, atSec } = planned
  const token = symbol === spec.native.symbol ? undefined : tokenAddress(deployed, symbol)
  if (!planned.conversion)
    return encodePayment(deployed, token ? { ...common, kind: 'ERC20', token } : { ...common, kind: 'NATIVE', exact })
  // 5 % above the present price; the payer keeps what is left over.
  const maxToSpend =
    (fromUsd(spec, symbol, { usd: amount + feeAmount, price: usdPrice(spec, symbol, atSec) }) * 105n) / 100n
  const converted = { ...common, maxToSpend }
  return encodePayment(
    deployed,
    token ? { ...converted, kind: 'ERC20_CONVERSION', token } : { ...converted, kind: 'NATIVE_CONVERSION' },
  )
}

function tokenAddress(deployed: Deployed, symbol: string): Address {
  const token = deployed.tokens.find((candidate) => candidate.symbol === symbol)
  if (!token) throw new RangeError(`this chain has no token ${symbol}`)
  return token.address
}

interface Conversion {
  currencyHash?: Address
  /** Limit of what the proxy may take, in base units of the token or in wei; the proxy returns the rest of coins. */
  maxToSpend: bigint
  maxRateTimespanSec?: bigint
}

/** A payment through one of Request's proxies. */
export type DemoPayment = PaymentTerms &
  (
    | { kind: 'ERC20'; token: Address; proxy?: Address }
    /** exact: false: the older function, which pays out everything that was sent except the fee. */
    | { kind: 'NATIVE'; exact?: boolean }
    | ({ kind: 'ERC20_CONVERSION'; token: Address } & Conversion)
    | ({ kind: 'NATIVE_CONVERSION' } & Conversion)
  )

/** Maximum age of rates: the longest heartbeat of the path plus a tenth. The demo's feeds have a heartbeat of one hour. */
const DEFAULT_RATE_TIMESPAN_SEC = 3_960n

export function encodePayment(deployed: Deployed, payment: DemoPayment): ContractCall {
  const { contracts, native } = deployed
  if (payment.kind === 'ERC20')
    return encodeErc20Payment(payment.proxy ?? contracts.erc20FeeProxy, payment.token, payment)
  if (payment.kind === 'NATIVE') return encodeNativePayment(contracts.ethereumFeeProxy, payment, payment.exact ?? true)
  const { maxToSpend, currencyHash = USD_HASH, maxRateTimespanSec = DEFAULT_RATE_TIMESPAN_SEC } = payment
  const paidIn = payment.kind === 'ERC20_CONVERSION' ? payment.token : native.conversionHash
  const terms = { ...payment, path: [currencyHash, paidIn], maxRateTimespanSec }
  return payment.kind === 'ERC20_CONVERSION'
    ? encodeErc20Conversion(contracts.erc20ConversionProxy, terms, maxToSpend)
    : encodeNativeConversion(contracts.ethConversionProxy, terms, maxToSpend)
}
