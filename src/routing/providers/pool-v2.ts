import type { Address } from '../../domain/address.ts'
import type { SwapV2Config } from '../../domain/chains-file.ts'
import { create2Address, isFirst } from './pool-address.ts'
import type { SwapAmounts } from './swap-price.ts'

/** What a pool holds of the token that goes in and of the one that comes out. */
export interface Reserves {
  readonly ofIn: bigint
  readonly ofOut: bigint
}

/** Where the pair of two tokens stands, whether or not it has been made. */
export function pairAddress({ factory, pairCodeHash }: SwapV2Config, a: Address, b: Address): Address {
  const [first, second] = isFirst(a, b) ? [a, b] : [b, a]
  return create2Address(factory, pairCodeHash, `${first}${second.slice(2)}`)
}

const BPS = 10_000n

/**
 * What has to go in so that `amountOut` comes out at the end of a chain of pools: exactly what the router takes.
 *
 * @param pools - in the order of the swap
 * @returns undefined when a pool holds too little
 * @see https://github.com/Uniswap/v2-periphery, UniswapV2Library.getAmountsIn
 */
export function amountsFor(amountOut: bigint, pools: readonly Reserves[], feeBps: number): SwapAmounts | undefined {
  const kept = BPS - BigInt(feeBps)
  let amountIn = amountOut
  let withoutFee = amountOut
  let [numerator, denominator] = [1n, 1n]
  for (const { ofIn, ofOut } of pools.toReversed()) {
    if (ofIn === 0n || amountIn >= ofOut) return undefined
    amountIn = (ofIn * amountIn * BPS) / ((ofOut - amountIn) * kept) + 1n
    withoutFee = (ofIn * withoutFee) / (ofOut - withoutFee) + 1n
    numerator *= ofOut
    denominator *= ofIn
  }
  const atMidPrice = (amountOut * denominator) / numerator
  return { amountIn, withoutFee, atMidPrice, midPrice: { numerator, denominator } }
}
