import { describe, expect, it } from 'vitest'
import { priceAt } from './wandering-prices.ts'

const USD = 10n ** 8n

describe('priceAt', () => {
  it('says the same for the same time', () => {
    const at = { timeSec: 1_790_000_000, stable: false }
    expect(priceAt('ETH', 3_000n * USD, at)).toBe(priceAt('ETH', 3_000n * USD, at))
  })

  it('moves within a minute and stays within four percent for a coin', () => {
    const base = 3_000n * USD
    const prices = Array.from({ length: 2_000 }, (_, minute) =>
      priceAt('ETH', base, { timeSec: 1_790_000_000 + minute * 60, stable: false }),
    )
    const moved = prices.filter((price, index) => price !== prices[index - 1])
    expect(moved.length).toBe(prices.length)
    for (const price of prices) expect(price > (base * 96n) / 100n && price < (base * 104n) / 100n).toBe(true)
  })

  it('keeps a stablecoin within a tenth of a percent of its peg', () => {
    for (let hour = 0; hour < 2_000; hour++) {
      const price = priceAt('USDC', USD, { timeSec: 1_790_000_000 + hour * 3_600, stable: true })
      expect(price > (USD * 999n) / 1_000n && price < (USD * 1_001n) / 1_000n).toBe(true)
    }
  })
})
