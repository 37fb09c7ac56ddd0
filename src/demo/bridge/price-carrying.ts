/** A token as it is priced. */
export interface Priced {
  readonly decimals: number
  /** US dollars for one of it, 8 decimals. */
  readonly usd: bigint
}

/** What carrying takes, in base units of the source token; `amount` is the sum of the rest. */
export interface CarryingPrice {
  readonly amount: bigint
  /** What is delivered is worth so much. */
  readonly worth: bigint
  /** The relayer's share of that. */
  readonly bridgeFee: bigint
  /** The gas of the delivery, which the relayer pays. */
  readonly gasFee: bigint
}

/** The relayer's share in hundredths of a percent. */
const BRIDGE_FEE_BPS = 5n
const BPS = 10_000n

/**
 * Prices a delivery of exactly so much. Rounded up, so that nobody is paid by rounding.
 *
 * @param wanted - base units that are delivered
 * @param gasWei - what the delivery costs in the destination's coin
 */
export function priceCarrying(
  { source, destination, coin }: { source: Priced; destination: Priced; coin: Priced },
  { wanted, gasWei }: { wanted: bigint; gasWei: bigint },
): CarryingPrice {
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
