import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Decimal, decimalToNumber } from '../../../domain/decimal.ts'
import { splitLoss } from './swap-price.ts'
import { amountsFor, type Reserves } from './swap-v2.ts'

const FEE_BPS = 30

/** The most output for an input that the pair's own check of its product allows. */
function outOf({ ofIn, ofOut }: Reserves, amountIn: bigint): bigint {
  const kept = amountIn * (10_000n - BigInt(FEE_BPS))
  return (kept * ofOut) / (ofIn * 10_000n + kept)
}

const reserve = fc.bigInt(10n ** 6n, 10n ** 27n)
const pools = fc.array(fc.record({ ofIn: reserve, ofOut: reserve }), { minLength: 1, maxLength: 3 })

describe('amountsFor', () => {
  it('is the least input that gives the wanted output', () => {
    fc.assert(
      fc.property(pools, fc.bigInt(1n, 10n ** 26n), (chain, amountOut) => {
        const amounts = amountsFor(amountOut, chain, FEE_BPS)
        if (amounts === undefined) return
        const out = chain.reduce((amount, pool) => outOf(pool, amount), amounts.amountIn)
        expect(out).toBeGreaterThanOrEqual(amountOut)
        const { lpFee, priceImpact } = splitLoss(amounts, amountOut)
        expect(lpFee).toBeGreaterThanOrEqual(0n)
        expect(priceImpact.units).toBeGreaterThanOrEqual(0n)
      }),
    )
  })

  it('is undefined where a pool does not hold more than the wanted output', () => {
    expect(amountsFor(10n, [{ ofIn: 100n, ofOut: 10n }], FEE_BPS)).toBeUndefined()
    expect(amountsFor(10n, [{ ofIn: 0n, ofOut: 100n }], FEE_BPS)).toBeUndefined()
  })
})

describe('splitLoss', () => {
  const numberOf = (decimal: Decimal) => decimalToNumber(decimal)

  it('splits the loss into the pools’ fee and the move of the price', () => {
    const unit = 10n ** 18n
    const pool = { ofIn: 1_000_000n * unit, ofOut: 1_000_000n * unit }
    const bought = 10_000n * unit
    const amounts = amountsFor(bought, [pool], FEE_BPS)
    if (amounts === undefined) throw new TypeError('the pool is deep enough')
    const { lpFee, priceImpact } = splitLoss(amounts, bought)
    // 1 / (1 - 0.01) - 1, and 0.3 / 99.7 percent of the input
    expect(numberOf(priceImpact)).toBe(0.01010101)
    expect(Number(lpFee) / Number(bought)).toBeCloseTo(1.01010101 * (0.003 / 0.997), 8)
  })

  it('has no price impact for a trade that is tiny beside its pool', () => {
    const unit = 10n ** 18n
    const amounts = amountsFor(10n ** 6n, [{ ofIn: 10n ** 9n * unit, ofOut: 2n * 10n ** 9n * unit }], 0)
    if (amounts === undefined) throw new TypeError('the pool is deep enough')
    expect(numberOf(splitLoss(amounts, 10n ** 6n).priceImpact)).toBeLessThan(0.00001)
  })
})
