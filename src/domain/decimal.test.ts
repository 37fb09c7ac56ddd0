import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addDecimals,
  compareDecimals,
  decimalToNumber,
  divideDecimals,
  divideHalfEven,
  explainAboveMaximum,
  formatAmount,
  formatDecimal,
  multiplyDecimals,
  parseAmount,
  parseDecimal,
  readStoredDecimal,
  rescale,
  subtractDecimals,
} from './decimal.ts'

const decimals = fc.record({
  units: fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
  places: fc.integer({ min: 0, max: 18 }),
})

describe('parseDecimal', () => {
  it.each([
    ['0', '0'],
    ['100', '100'],
    ['0.05', '0.05'],
    ['1.50', '1.5'],
    ['1.0', '1'],
    ['-1.5', '-1.5'],
    ['0.000000000000000001', '0.000000000000000001'],
    ['1.1000000000000000000000', '1.1'],
    ['9'.repeat(78), '9'.repeat(78)],
  ])('reads %s as %s', (text, canonical) => {
    const decimal = parseDecimal(text)
    expect(decimal && formatDecimal(decimal)).toBe(canonical)
  })

  it.each([
    '',
    ' ',
    '.',
    '-',
    '+1',
    '1e3',
    '1E3',
    '0x10',
    ' 1',
    '1 ',
    '-0',
    '-0.0',
    '.5',
    '5.',
    '01',
    '00',
    '1,5',
    '1_000',
    '1.2.3',
    '١',
    '½',
    'NaN',
    'Infinity',
    '--1',
    '0.0000000000000000001',
    '9'.repeat(79),
    '9'.repeat(1000),
    '1\n',
    '1\u0000',
  ])('refuses "%s"', (text) => {
    expect(parseDecimal(text)).toBeUndefined()
  })

  it('reads back what formatDecimal writes', () => {
    fc.assert(
      fc.property(decimals, (decimal) => {
        const read = parseDecimal(formatDecimal(decimal))
        expect(read && compareDecimals(read, decimal)).toBe(0)
      }),
    )
  })
})

describe('readStoredDecimal', () => {
  it.each([
    ['0', '0'],
    ['10.50', '10.5'],
    ['100.000000000000000000', '100'],
    ['0.3333333333333333333333', '0.333333333333333333'],
    ['-0.50', '-0.5'],
    ['9'.repeat(200), '9'.repeat(200)],
  ])('reads %s as %s', (numeric, canonical) => {
    expect(formatDecimal(readStoredDecimal(numeric))).toBe(canonical)
  })

  it.each(['', 'NaN', 'Infinity', '1e3', '.5', '1.', ' 1'])('throws on "%s"', (numeric) => {
    expect(() => readStoredDecimal(numeric)).toThrow(RangeError)
  })
})

describe('arithmetic', () => {
  it.each([
    [5n, 2n, 2n],
    [7n, 2n, 4n],
    [-5n, 2n, -2n],
    [-7n, 2n, -4n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
    [-2n, 3n, -1n],
    [5n, -2n, -2n],
    [0n, 7n, 0n],
  ])('%s / %s rounds half to even to %s', (numerator, denominator, quotient) => {
    expect(divideHalfEven(numerator, denominator)).toBe(quotient)
  })

  it('adds and subtracts exactly', () => {
    fc.assert(
      fc.property(decimals, decimals, (a, b) => {
        expect(compareDecimals(subtractDecimals(addDecimals(a, b), b), a)).toBe(0)
      }),
    )
  })

  it('is off by at most half a unit of the last place when it multiplies or divides', () => {
    fc.assert(
      fc.property(decimals, decimals, fc.integer({ min: 0, max: 18 }), (a, b, places) => {
        const product = multiplyDecimals(a, b, places)
        const exact = { units: a.units * b.units, places: a.places + b.places }
        const error = subtractDecimals(product, exact)
        const doubled = { units: (error.units < 0n ? -error.units : error.units) * 2n, places: error.places }
        expect(compareDecimals(doubled, { units: 1n, places })).toBeLessThanOrEqual(0)
        if (b.units === 0n) return
        const back = subtractDecimals(multiplyDecimals(divideDecimals(a, b, 60), b, 60), a)
        expect(Math.abs(decimalToNumber(rescale(back, 18)))).toBeLessThan(1)
      }),
    )
  })

  it('never gives NaN, Infinity or -0 as a number', () => {
    expect(Object.is(decimalToNumber({ units: 0n, places: 3 }), 0)).toBe(true)
    expect(decimalToNumber({ units: 10n ** 78n, places: 0 })).toBe(1e78)
    expect(decimalToNumber({ units: 10n ** 400n, places: 0 })).toBe(Number.MAX_VALUE)
    expect(decimalToNumber({ units: -(10n ** 400n), places: 18 })).toBe(-Number.MAX_VALUE)
    expect(decimalToNumber(divideDecimals({ units: 1n, places: 0 }, { units: 3n, places: 0 }, 8))).toBe(0.33333333)
  })
})

describe('amounts', () => {
  it.each([
    [1_500_000n, 6, '1.5'],
    [0n, 6, '0'],
    [1n, 18, '0.000000000000000001'],
    [-25n, 1, '-2.5'],
    [7n, 0, '7'],
  ])('%s base units of %s decimals are %s', (baseUnits, places, text) => {
    expect(formatAmount(baseUnits, places)).toBe(text)
    expect(parseAmount(text, places)).toBe(baseUnits)
  })

  it('refuses more places than the token has, trailing zeros apart', () => {
    expect(parseAmount('1.0000001', 6)).toBeUndefined()
    expect(parseAmount('1.0000000', 6)).toBe(1_000_000n)
  })

  const most = 2n ** 256n - 1n

  it.each([0, 6, 18])('of %s decimals are at most 2^256 - 1 base units', (places) => {
    expect(explainAboveMaximum({ units: most, places }, places)).toBeUndefined()
    expect(explainAboveMaximum({ units: most + 1n, places }, places)).toBe(
      `it is above 2^256 - 1 base units, which are ${formatAmount(most, places)}`,
    )
  })

  it('are compared in human units', () => {
    expect(explainAboveMaximum({ units: most, places: 0 }, 0)).toBeUndefined()
    expect(explainAboveMaximum({ units: most, places: 0 }, 1)).toMatch(/^it is above/)
    expect(explainAboveMaximum({ units: 10n ** 78n - 1n, places: 0 }, 0)).toMatch(/^it is above/)
  })
})
