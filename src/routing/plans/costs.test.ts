import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Address } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Token } from '../../domain/currency.ts'
import { addDecimals, type Decimal, formatDecimal, MAX_DECIMAL_PLACES } from '../../domain/decimal.ts'
import type { RouteFeeLine } from '../../domain/route.ts'
import { platformFeeOf } from '../question/parse-question.ts'
import { assembleRoute, type UnrankedRoute } from '../quotes/assemble-route.ts'
import type { ChainState, Price } from '../scan/wallet-state.ts'
import { breakDownCosts, fractionOf } from './costs.ts'

const aToken = (symbol: string, decimals: number, address?: Address): Token => ({
  id: `${symbol}-BASE`,
  symbol,
  chain: 'BASE',
  decimals,
  bridged: false,
  approveReset: false,
  ...(address === undefined ? {} : { address }),
})

function neverSent(): never {
  throw new TypeError('nothing is sent here')
}

const price = fc.record({ units: fc.bigInt(1n, 10n ** 14n), places: fc.integer({ min: 0, max: 18 }) })
const percentage = fc.record({ units: fc.bigInt(0n, 10n ** 6n), places: fc.constant<number>(4) })

const cases = fc.record({
  decimals: fc.integer({ min: 0, max: 18 }),
  amount: fc.bigInt(1n, 10n ** 30n),
  percentage,
  gas: fc.bigInt(0n, 10n ** 20n),
  gasPrice: fc.bigInt(0n, 10n ** 12n),
  nativePrice: fc.option(price, { nil: undefined }),
  tokenPrice: fc.option(price, { nil: undefined }),
  isNative: fc.boolean(),
})
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never

/** One base unit to pay, with gas that costs far more, at the lowest and highest prices that feeds can tell. */
const extremes = fc.record({
  decimals: fc.constantFrom(0, 6, 18),
  amount: fc.oneof(fc.constantFrom<bigint>(1n, 2n, 3n), fc.bigInt(2n ** 250n, 2n ** 255n)),
  percentage,
  gas: fc.bigInt(0n, 10n ** 8n),
  gasPrice: fc.oneof(fc.bigInt(0n, 2n), fc.bigInt(10n ** 12n, 2n ** 256n - 1n)),
  nativePrice: fc.option(
    fc.record({ units: fc.oneof(fc.constant(1n), fc.bigInt(1n, 2n ** 255n)), places: fc.integer({ min: 0, max: 36 }) }),
    { nil: undefined },
  ),
  tokenPrice: fc.option(
    fc.record({ units: fc.oneof(fc.constant(1n), fc.bigInt(1n, 2n ** 255n)), places: fc.integer({ min: 0, max: 36 }) }),
    { nil: undefined },
  ),
  isNative: fc.boolean(),
})

/** Whether no double is nearer to a number than this one: compared exactly, by its neighbours. */
function isNearest(double: number, exact: Decimal): boolean {
  if (!Number.isFinite(double)) return false
  const distance = (candidate: number) => {
    const { numerator, denominator } = fractionOfDouble(candidate)
    const difference = numerator * 10n ** BigInt(exact.places) - exact.units * denominator
    return { size: difference < 0n ? -difference : difference, denominator }
  }
  const own = distance(double)
  return neighboursOf(double).every((neighbour) => {
    const other = distance(neighbour)
    return own.size * other.denominator <= other.size * own.denominator
  })
}

function fractionOfDouble(double: number): { numerator: bigint; denominator: bigint } {
  let [scaled, exponent] = [double, 0]
  while (!Number.isInteger(scaled)) [scaled, exponent] = [scaled * 2, exponent + 1]
  return { numerator: BigInt(scaled), denominator: 2n ** BigInt(exponent) }
}

function neighboursOf(double: number): number[] {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, double)
  const bits = view.getBigUint64(0)
  return (bits === 0n ? [1n] : [bits - 1n, bits + 1n]).map((neighbour) => {
    view.setBigUint64(0, neighbour)
    return view.getFloat64(0)
  })
}

/** The route of a wallet that has enough of everything. */
function routeOf(terms: Case): UnrankedRoute {
  const native = aToken('ETH', 18)
  const source = terms.isNative ? native : aToken('TKN', terms.decimals, '0x01' as Address)
  const fee = platformFeeOf(terms.amount, terms.percentage)
  const priceOf = (token: Token): Price | undefined => {
    const usd = token.id === native.id ? terms.nativePrice : terms.tokenPrice
    return usd && { usd, source: 'feed' }
  }
  const state: ChainState = {
    chain: { chainId: 8453 } as ChainState['chain'],
    timestampSec: 0,
    gasPrice: terms.gasPrice,
    maxFeePerGas: terms.gasPrice,
    walletIsContract: false,
    l1FeeOf: () => 0n,
    balanceOf: () => 2n ** 400n,
    priceOf,
    answerTo: () => undefined,
    isListed: undefined,
  }
  const route = assembleRoute({
    id: 'X',
    provider: 'p',
    candidate: { kind: 'DIRECT', source, destination: source },
    quote: {
      sourceAmount: terms.amount + fee,
      maxPulled: terms.amount + fee,
      received: terms.amount,
      costs: [{ type: 'PLATFORM', stage: 'SENDING', provider: 'p', token: source, amount: fee }],
      priceImpact: { units: 0n, places: 0 },
      steps: [{ kind: 'PAY', gasLimit: terms.gas, transaction: neverSent }],
      durationSeconds: 2,
      atomic: true,
    },
    state,
    native,
    priceOf,
    expiresAt: new Date(0),
  })
  if ('reason' in route) throw new TypeError(route.message)
  return route
}

function sumOf(lines: readonly RouteFeeLine[], field: 'amountInFeeCurrency' | 'amountInUsd', counted = lines): Decimal {
  return counted.reduce<Decimal>((sum, line) => addDecimals(sum, read(line[field] ?? '0')), { units: 0n, places: 0 })
}

/** False feeds and gas prices may make fees larger than any valid amount. */
function read(text: string): Decimal {
  if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(text)) throw new TypeError(`"${text}" is no decimal string`)
  const [whole = '', fraction = ''] = text.split('.')
  return { units: BigInt(whole + fraction), places: fraction.length }
}

describe('the costs of a route', () => {
  it('add up exactly, whatever the amounts, percentages, decimals and prices', () => {
    fc.assert(
      fc.property(cases, (terms) => {
        const { route, unpriced } = routeOf(terms)
        const lines = route.feeBreakdown
        expect(route.feeAmount).toBe(formatDecimal(sumOf(lines, 'amountInFeeCurrency')))
        const counted = lines.filter((line) => line.amountInFeeCurrency !== undefined)
        if (route.feeInUsd !== undefined) {
          expect(route.feeInUsd).toBe(formatDecimal(sumOf(lines, 'amountInUsd', counted)))
        }
        expect(unpriced).toBe(counted.length < lines.length)
        expect(route.warnings.map((warning) => warning.reason)).toEqual(unpriced ? ['GAS_UNPRICED'] : [])
      }),
      { numRuns: 3_000 },
    )
  })

  it('give fee as the double nearest to feeAmount, whatever the amounts', () => {
    fc.assert(
      fc.property(fc.oneof(cases, extremes), (terms) => {
        const { fee, feeAmount } = routeOf(terms).route
        expect(fee).toBe(Number(feeAmount))
        expect(JSON.parse(JSON.stringify(fee))).toBe(fee)
        expect(isNearest(fee, read(feeAmount))).toBe(true)
      }),
      { numRuns: 3_000 },
    )
  })

  it('give feeRate as feeAmount / amount, rounded half-even to 8 places, a finite number', () => {
    fc.assert(
      fc.property(fc.oneof(cases, extremes), (terms) => {
        const { feeRate, totalCost, ...route } = routeOf(terms).route
        const feeAmount = read(route.feeAmount)
        const numerator = feeAmount.units * 10n ** BigInt((terms.isNative ? 18 : terms.decimals) + 8)
        const denominator = terms.amount * 10n ** BigInt(feeAmount.places)
        // Half-even rounding by hand: the remainder decides, and a tie goes to the even neighbour.
        const [floor, left] = [numerator / denominator, (numerator % denominator) * 2n]
        const isUp = left > denominator || (left === denominator && floor % 2n === 1n)
        const units = isUp ? floor + 1n : floor
        expect(isNearest(feeRate, { units, places: 8 })).toBe(true)
        expect(JSON.parse(JSON.stringify(feeRate))).toBe(feeRate)
        expect(totalCost).toBe(feeRate)
      }),
      { numRuns: 3_000 },
    )
  })

  it('never has more than 18 places, an exponent or a sign', () => {
    fc.assert(
      fc.property(cases, (terms) => {
        const { route } = routeOf(terms)
        const texts = route.feeBreakdown.flatMap((line) => [line.amount, line.amountInFeeCurrency, line.amountInUsd])
        for (const text of [...texts, route.feeAmount, route.feeInUsd, route.sourceAmount]) {
          if (text === undefined) continue
          expect(text).toMatch(/^(0|[1-9]\d*)(\.\d*[1-9])?$/)
          expect(text.split('.')[1]?.length ?? 0).toBeLessThanOrEqual(MAX_DECIMAL_PLACES)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('list a line without a price, and leave it out of the sum', () => {
    const [native, token] = [aToken('ETH', 18), aToken('TKN', 6, '0x01' as Address)]
    const costs = [
      { type: 'GAS', stage: 'SENDING', token: native, amount: 5n } as const,
      { type: 'PLATFORM', stage: 'SENDING', token, amount: 7n } as const,
    ]
    const one: Price = { usd: { units: 1n, places: 0 }, source: 'peg' }
    const withoutNative = breakDownCosts(costs, token, (asked) => (asked.id === token.id ? one : undefined))
    expect(withoutNative.unpriced).toBe(native)
    expect(withoutNative.lines[0]).toEqual({
      type: 'GAS',
      stage: 'SENDING',
      amount: '0.000000000000000005',
      currency: 'ETH-BASE',
    })
    expect(withoutNative.feeInUsd && formatDecimal(withoutNative.feeInUsd)).toBe('0.000007')
    const withoutToken = breakDownCosts(costs, token, (asked) => (asked.id === native.id ? one : undefined))
    expect(withoutToken.unpriced).toBe(token)
    expect(withoutToken.lines[0]?.amountInUsd).toBe('0.000000000000000005')
    expect(withoutToken.feeInUsd).toBeUndefined()
  })

  it.each([
    ['1', '3', '0.33333333'],
    ['0.000000005', '1', '0'],
    ['0.000000015', '1', '0.00000002'],
    ['0.000000025', '1', '0.00000002'],
    ['0', '7', '0'],
  ])('are a fraction: %s of %s is %s', (cost, received, fraction) => {
    expect(formatDecimal(fractionOf(read(cost), read(received)))).toBe(fraction)
  })
})

describe('the platform fee', () => {
  it.each([
    [150_000000n, '0.5', 750000n],
    [199n, '0.5', 0n],
    [200n, '0.5', 1n],
    [333n, '100', 333n],
    [1n, '99.999999999999999999', 0n],
    [10n ** 30n, '0.000000000000000001', 10n ** 10n],
  ])('of %s base units at %s percent is %s, never more', (amount, percent, fee) => {
    expect(platformFeeOf(amount, read(percent))).toBe(fee)
  })
})

it('names the chain as CAIP-2', () => {
  const terms = { decimals: 6, amount: 1n, percentage: { units: 0n, places: 4 }, gas: 0n, gasPrice: 0n, isNative: true }
  const { route } = routeOf({ ...terms, nativePrice: undefined, tokenPrice: undefined })
  expect(route.chainId).toBe(caip2Of(8453))
})
