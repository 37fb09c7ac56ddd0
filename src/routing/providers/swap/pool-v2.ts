import type { SwapV2Config } from '../../../chains/chains-file.ts'
import type { Address } from '../../../domain/address.ts'
import type { Hex } from '../../../domain/hex.ts'
import { create2Address, isFirst } from './pool-address.ts'
import type { SwapAmounts } from './swap-price.ts'

/** A pool's reserves of the token that goes in and of the token that comes out. */
export interface Reserves {
  readonly ofIn: bigint
  readonly ofOut: bigint
}

/** The address of the pair of two tokens, whether or not it has been created. */
export function pairAddress({ factory, pairCodeHash }: SwapV2Config, a: Address, b: Address): Address {
  const [first, second] = isFirst(a, b) ? [a, b] : [b, a]
  return create2Address(factory, pairCodeHash, `${first as Hex}${second.slice(2)}`)
}

const BPS = 10_000n

/**
 * The input for which `amountOut` comes out at the end of a path of pools: exactly what the router takes.
 *
 * @param pools - in the order of the swap
 * @returns undefined when the reserves of a pool are too small
 * @see https://github.com/Uniswap/v2-periphery, UniswapV2Library.getAmountsIn
 */
export function amountsFor(amountOut: bigint, pools: readonly Reserves[], feeBps: number): SwapAmounts | undefined {
  const passedOn = BPS - BigInt(feeBps)
  let amountIn = amountOut
  /** From the current pool to the end of the path. */
  let midPrice = { numerator: 1n, denominator: 1n }
  let kept = 0n
  for (const { ofIn, ofOut } of pools.toReversed()) {
    if (ofIn === 0n || amountIn >= ofOut) return undefined
    amountIn = (ofIn * amountIn * BPS) / ((ofOut - amountIn) * passedOn) + 1n
    midPrice = { numerator: midPrice.numerator * ofOut, denominator: midPrice.denominator * ofIn }
    // In units of 1/denominator of the mid price, like what the later pools keep.
    kept = kept * ofIn + amountIn * BigInt(feeBps) * midPrice.numerator
  }
  return { amountIn, amountOut, midPrice, kept: { numerator: kept, denominator: midPrice.denominator * BPS } }
}
