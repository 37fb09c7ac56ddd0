import { describe, expect, it } from 'vitest'
import type { Token } from '../../../domain/currency.ts'
import { parseDecimal } from '../../../domain/decimal.ts'
import type { Price } from '../../scan/wallet-state.ts'
import { priceSwap } from './swap-price.ts'

const tokenOf = (symbol: string, decimals: number): Token => ({
  id: `${symbol}-ETHEREUM`,
  symbol,
  chain: 'ETHEREUM',
  decimals,
  bridged: false,
  approveReset: false,
})

describe('pools off the market', () => {
  interface Case {
    readonly says: string
    /** Of the input and the output token: decimals, and the price in US dollars. */
    readonly from: readonly [decimals: number, usd: string | undefined]
    readonly to: readonly [decimals: number, usd: string | undefined]
    /** The pool's reserves of both, whole tokens. */
    readonly holds: readonly [ofIn: bigint, ofOut: bigint]
    readonly fraction: string | undefined
    readonly reason?: string
  }

  it.each<Case>([
    { says: 'by a quarter', from: [6, '1'], to: [6, '1'], holds: [1_250n, 1_000n], fraction: '0.25' },
    { says: 'of other decimals', from: [18, '1.01'], to: [6, '1'], holds: [1_250n, 1_000n], fraction: '0.2625' },
    { says: 'of other worth', from: [18, '3000'], to: [8, '60000'], holds: [2_500n, 100n], fraction: '0.25' },
    { says: 'by 2 percent, as happens', from: [6, '1'], to: [6, '1'], holds: [1_020n, 1_000n], fraction: undefined },
    { says: 'by little more', from: [6, '1'], to: [18, '1'], holds: [10_201n, 10_000n], fraction: '0.0201' },
    { says: 'to the gain of who swaps', from: [6, '1'], to: [6, '1'], holds: [800n, 1_000n], fraction: undefined },
    {
      says: 'without a price',
      from: [6, undefined],
      to: [6, '1'],
      holds: [2n, 1n],
      fraction: undefined,
      reason: 'PRICE_UNCHECKED',
    },
    {
      says: 'without the other price',
      from: [6, '1'],
      to: [6, undefined],
      holds: [2_000n, 1_000n],
      fraction: undefined,
      reason: 'PRICE_UNCHECKED',
    },
    { says: 'with nothing in it', from: [6, '1'], to: [6, '1'], holds: [1n, 0n], fraction: undefined },
  ])('give a warning: $says', ({ from, to, holds, fraction, reason }) => {
    const [source, destination] = [tokenOf('IN', from[0]), tokenOf('OUT', to[0])]
    const prices = new Map([
      [source, from[1]],
      [destination, to[1]],
    ])
    const priceOf = (token: Token): Price | undefined => {
      const usd = parseDecimal(prices.get(token) ?? '')
      return usd && { usd, source: 'feed' }
    }
    const midPrice = {
      numerator: holds[1] * 10n ** BigInt(destination.decimals),
      denominator: holds[0] * 10n ** BigInt(source.decimals),
    }
    const amounts = { amountIn: 1n, amountOut: 1n, midPrice, kept: { numerator: 0n, denominator: 1n } }
    const market = { exchange: 'uniswap-v2', source, destination, priceOf, received: 1n }
    const { warnings } = priceSwap(amounts, market)
    const expected = reason ?? (fraction === undefined ? [] : 'SWAP_OFF_MARKET')
    expect(warnings.map((warning) => warning.reason)).toEqual([expected].flat())
    if (fraction !== undefined) expect(warnings[0]?.message).toContain(`price IN below the market: ${fraction} of`)
  })
})
