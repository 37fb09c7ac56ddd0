/** A token with its price. */
export interface Priced {
  readonly decimals: number
  /** Price of one token in US dollars with 8 decimals. */
  readonly usd: bigint
}

/** What the payer deposits for a delivery, in base units of the source token; `amount` is the sum of the other fields. */
export interface DeliveryPrice {
  readonly amount: bigint
  /** The value of the delivered amount. */
  readonly worth: bigint
  /** The relayer's fee. */
  readonly bridgeFee: bigint
  /** The gas of the delivery, which the relayer pays. */
  readonly gasFee: bigint
}

/** The relayer's fee in basis points. */
const BRIDGE_FEE_BPS = 5n
const BPS = 10_000n

/**
 * Prices the delivery of an exact amount. All parts are rounded up, so that rounding never costs the relayer.
 *
 * @param wanted - base units to deliver
 * @param gasWei - cost of the delivery in the destination's native coin
 */
export function priceDelivery(
  { source, destination, coin }: { source: Priced; destination: Priced; coin: Priced },
  { wanted, gasWei }: { wanted: bigint; gasWei: bigint },
): DeliveryPrice {
  const inSource = (amount: bigint, token: Priced) =>
    ceil(amount * token.usd * 10n ** BigInt(source.decimals), source.usd * 10n ** BigInt(token.decimals))
  const worth = inSource(wanted, destination)
  const bridgeFee = ceil(worth * BRIDGE_FEE_BPS, BPS)
  const gasFee = inSource(gasWei, coin)
  return { amount: worth + bridgeFee + gasFee, worth, bridgeFee, gasFee }
}

function ceil(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
