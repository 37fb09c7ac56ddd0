/**
 * The demo's prices as a function of time, so that nothing has to be stored. Over hours and days, a coin moves a few percent around its
 * price, a stablecoin less than a tenth of a percent.
 */

import type { DemoChainSpec } from './chain-specs.ts'

const PARTS_PER_MILLION = 1_000_000n

/** Waves without a common period: periods in seconds, with the share of each in the amplitude. */
const WAVES: readonly { periodSec: number; share: number }[] = [
  { periodSec: 640, share: 0.1 },
  { periodSec: 7_300, share: 0.2 },
  { periodSec: 93_000, share: 0.3 },
  { periodSec: 1_900_000, share: 0.4 },
]

const COIN_SWING_PPM = 40_000
const STABLECOIN_SWING_PPM = 800

/**
 * @param base - the price around which it moves, in USD with 8 decimals
 * @returns the price at a time, in USD with 8 decimals
 */
export function priceAt(
  symbol: string,
  base: bigint,
  { timeSec, stable }: { timeSec: number; stable: boolean },
): bigint {
  const phase = symbol.split('').reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 10_000
  const wave = WAVES.reduce(
    (sum, { periodSec, share }) =>
      sum + share * Math.sin((2 * Math.PI * (timeSec + phase * periodSec)) / periodSec + phase),
    0,
  )
  const swingPpm = Math.round(wave * (stable ? STABLECOIN_SWING_PPM : COIN_SWING_PPM))
  return (base * (PARTS_PER_MILLION + BigInt(swingPpm))) / PARTS_PER_MILLION
}

/** The price of a token or coin in USD with 8 decimals; without a time, the price around which it moves. */
export function usdPrice(spec: DemoChainSpec, symbol: string, timeSec?: number): bigint {
  const token = spec.tokens.find((candidate) => candidate.symbol === symbol)
  const base = token?.usdPrice ?? spec.native.usdPrice
  return timeSec === undefined ? base : priceAt(symbol, base, { timeSec, stable: token !== undefined })
}
