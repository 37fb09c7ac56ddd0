/** Payments through Request's proxies: the call that makes each kind. */
import type { Address, Hex } from 'viem'
import {
  type ContractCall,
  encodeErc20Conversion,
  encodeErc20Payment,
  encodeNativeConversion,
  encodeNativePayment,
} from '../network/demo-contracts.ts'
import { type Deployed, USD_HASH } from '../network/deployment.ts'

interface CommonPayment {
  to: Address
  /** Base units of the token or coin; of a conversion, fiat with 8 decimals. */
  amount: bigint
  /** 8 bytes. */
  paymentReference: Hex
  /** In addition to `amount`, in the same unit. */
  feeAmount?: bigint
  feeAddress?: Address
}

interface Conversion {
  currencyHash?: Address
  /** Limit of what the proxy may take, in base units of the token or in wei; the proxy returns the rest of coins. */
  maxToSpend: bigint
  maxRateTimespanSec?: bigint
}

export type DemoPayment = CommonPayment &
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
  switch (payment.kind) {
    case 'ERC20':
      return encodeErc20Payment(payment.proxy ?? contracts.erc20FeeProxy, payment.token, payment)
    case 'NATIVE':
      return encodeNativePayment(contracts.ethereumFeeProxy, payment, payment.exact ?? true)
    case 'ERC20_CONVERSION': {
      const { maxToSpend, currencyHash = USD_HASH, maxRateTimespanSec = DEFAULT_RATE_TIMESPAN_SEC } = payment
      const terms = { ...payment, path: [currencyHash, payment.token], maxRateTimespanSec }
      return encodeErc20Conversion(contracts.erc20ConversionProxy, terms, maxToSpend)
    }
    case 'NATIVE_CONVERSION': {
      const { maxToSpend, currencyHash = USD_HASH, maxRateTimespanSec = DEFAULT_RATE_TIMESPAN_SEC } = payment
      const terms = { ...payment, path: [currencyHash, native.conversionHash], maxRateTimespanSec }
      return encodeNativeConversion(contracts.ethConversionProxy, terms, maxToSpend)
    }
  }
}
