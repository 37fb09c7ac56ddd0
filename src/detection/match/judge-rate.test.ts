import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Address } from '../../domain/address.ts'
import type { PathRate } from '../read/path-rates.ts'
import { judgeRate, type Match, type PaymentMatch } from './match-event.ts'
import type { SeenEvent } from './read-transaction.ts'

const payment = { kind: 'PAYMENT', amount: 1n, invoiceAmount: 1n, invoiceDecimals: 8 } as unknown as PaymentMatch
const at = 1_000_000
const conversion = (amount: bigint, invoiced: bigint) => {
  const reported = { amount: invoiced, currency: '0x01' as Address, feeAmount: 0n }
  return { amount, conversion: reported } as unknown as SeenEvent
}
const rate = (units: bigint, { ageSec = 0, scale = 100n } = {}): PathRate => ({
  rate: units,
  scale,
  oldestSec: BigInt(at - ageSec),
})
const judge = (event: SeenEvent, rates: readonly PathRate[] | undefined, match: Match = payment) =>
  judgeRate(match, event, { path: rates && { maxAgeSeconds: 66, rates }, timestampSec: at })
const off = (rateProblem: string, more = {}) => ({
  kind: 'UNMATCHED',
  reason: 'RATE_OFF',
  detail: { rateProblem, ...more },
})

describe('judgeRate', () => {
  it.each<[string, SeenEvent, readonly PathRate[] | undefined, unknown]>([
    ['counts a payment at the rate of our path', conversion(50n, 100n), [rate(50n)], payment],
    ['counts a payment above it', conversion(51n, 100n), [rate(50n)], payment],
    ['counts 98 %', conversion(98n, 100n), [rate(100n)], payment],
    ['does not count 97 %', conversion(97n, 100n), [rate(100n)], off('TOO_LITTLE', { expectedAmount: '100' })],
    ['truncates as the contract does', conversion(1n, 199n), [rate(1n)], payment],
    ['takes the rate that favours the payer', conversion(50n, 100n), [rate(100n), rate(51n)], payment],
    ['takes that rate in either order', conversion(50n, 100n), [rate(51n), rate(100n)], payment],
    [
      'does not take a stale rate',
      conversion(50n, 100n),
      [rate(100n), rate(50n, { ageSec: 67 })],
      off('TOO_LITTLE', { expectedAmount: '100' }),
    ],
    [
      'refuses where all rates are stale',
      conversion(50n, 100n),
      [rate(50n, { ageSec: 67 }), rate(50n, { ageSec: 68 })],
      {
        kind: 'UNMATCHED',
        reason: 'STALE_RATE',
        detail: { rateUpdatedAtSec: '999933', maxRateAgeSeconds: '66' },
      },
    ],
    ['takes a rate that is just fresh enough', conversion(50n, 100n), [rate(50n, { ageSec: 66 })], payment],
    ['takes a rate from after the block as fresh', conversion(50n, 100n), [rate(50n, { ageSec: -60 })], payment],
    ['refuses where there is no rate', conversion(50n, 100n), [], off('NO_RATE')],
    ['refuses where no path is configured', conversion(50n, 100n), undefined, off('NO_PATH')],
  ])('%s', (_, event, rates, verdict) => {
    expect(judge(event, rates)).toEqual(verdict)
  })

  it.each<Match>([{ kind: 'UNMATCHED', reason: 'WRONG_PAYEE' }, { kind: 'REFUND' } as Match])(
    'returns what is no payment as it is: %o',
    (match) => {
      expect(judge(conversion(1n, 100n), undefined, match)).toBe(match)
    },
  )

  it('returns a payment without conversion as it is', () => {
    expect(judge({ amount: 1n } as SeenEvent, undefined)).toBe(payment)
  })

  it('agrees with the exact fraction', () => {
    const big = fc.bigInt({ min: 0n, max: 2n ** 200n })
    const scales = fc.bigInt({ min: 1n, max: 10n ** 30n })
    fc.assert(
      fc.property(big, big, fc.bigInt({ min: 1n, max: 2n ** 100n }), scales, (amount, invoiced, units, scale) => {
        // amount ≥ 0.98 × floor(invoiced × units / scale), without a division: floor(x) ≤ n exactly when x < n + 1.
        const most = (amount * 100n) / 98n
        const counts = invoiced * units < (most + 1n) * scale
        expect(judge(conversion(amount, invoiced), [rate(units, { scale })]).kind === 'PAYMENT').toBe(counts)
      }),
    )
  })
})
