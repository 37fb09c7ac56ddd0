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
  /** 8 bytes. */
  paymentReference: Hex
  /** On top of `amount`, in its unit. */
  feeAmount?: bigint
  feeAddress?: Address
}

/** An amount is in base units of what is paid; of a conversion in the invoice currency, fiat with 8 decimals. */
export type DemoPayment = CommonPayment &
  (
    | { kind: 'ERC20'; token: Address; amount: bigint; proxy?: Address }
    | {
        kind: 'NATIVE'
        amount: bigint
        /** false: the older function, which pays out all that was sent but the fee. */
        exact?: boolean
      }
    | {
        kind: 'ERC20_CONVERSION'
        token: Address
        amount: bigint
        currencyHash?: Address
        /** The most that the proxy may take, base units of the token. */
        maxToSpend: bigint
        maxRateTimespanSec?: bigint
      }
    | {
        kind: 'NATIVE_CONVERSION'
        amount: bigint
        currencyHash?: Address
        /** wei; the proxy returns what is left over. */
        maxToSpend: bigint
        maxRateTimespanSec?: bigint
      }
  )

/** Rates may be this old. A shop takes the longest heartbeat of the path and a tenth; the demo's feeds say one hour. */
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
