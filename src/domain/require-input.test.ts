import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WaybillError } from '../errors/waybill-error.ts'
import { formatDecimal, isCanonicalAmount } from './decimal.ts'
import {
  type AmountRule,
  requireAddress,
  requireAmount,
  requireDate,
  requireDateRange,
  requireFewValues,
  requireMerchantReference,
  requireMetadataPair,
  requirePageLimit,
  requirePaymentReference,
  requireReceiver,
  requireRequestId,
  requireSalt,
  requireShortTexts,
  requireTxHash,
} from './require-input.ts'

const EVM = `0x${'ab'.repeat(20)}`
const TRON = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'
const BASE = { name: 'BASE', family: 'EVM' } as const
const USDC = { id: 'USDC-BASE', decimals: 6 }

/** The reason and the message of what a rule throws. */
function faultOf(rule: () => unknown): { readonly reason: string; readonly message: string } {
  try {
    rule()
  } catch (error) {
    if (error instanceof WaybillError) return error
    throw error
  }
  throw new Error('the rule accepted the value')
}

describe('a rule of input refuses', () => {
  it.each<[string, () => unknown, string, string]>([
    ['a reference of 15 digits', () => requirePaymentReference('f', '1'.repeat(15)), 'INVALID_PAYMENT_REFERENCE', 'f'],
    ['a request id without 01', () => requireRequestId('f', 'ab'.repeat(33)), 'INVALID_REQUEST_ID', 'f'],
    ['a salt of 15 digits', () => requireSalt('f', '1'.repeat(15)), 'INVALID_SALT', 'f'],
    ['a hash of 63 digits', () => requireTxHash('f', '1'.repeat(63)), 'INVALID_TX_HASH', 'f'],
    ['an address of 39 digits', () => requireAddress('f', EVM.slice(1)), 'INVALID_ADDRESS', 'neither 0x and 40'],
    ['a receiver of another family', () => requireReceiver('f', TRON, BASE), 'INVALID_ADDRESS', 'an address of BASE'],
    ['the zero address', () => requireReceiver('f', `0x${'0'.repeat(40)}`), 'INVALID_ADDRESS', 'nobody owns'],
    ['an empty merchant reference', () => requireMerchantReference('f', ''), 'INVALID_REFERENCE', 'it is empty'],
    ['257 characters', () => requireMerchantReference('f', 'é'.repeat(257)), 'INVALID_REFERENCE', 'more than 256'],
    ['a date without an offset', () => requireDate('f', '2026-01-01T00:00:00'), 'INVALID_DATE', 'it has no offset'],
    [
      'a range that ends before it begins',
      () => requireDateRange({ fromDate: '2026-01-02', toDate: '2026-01-01' }),
      'INVALID_RANGE',
      'fromDate',
    ],
    ['a negative page limit', () => requirePageLimit(-1), 'INVALID_LIMIT', '"-1"'],
    ['101 values', () => requireFewValues('f', Array(101).fill('x')), 'TOO_MANY_VALUES', '101, at most 100'],
    ['no =', () => requireMetadataPair('f', 'order'), 'INVALID_METADATA', '"order" is not KEY=VALUE'],
    ['an empty pair', () => requireMetadataPair('f', ''), 'INVALID_METADATA', 'is not KEY=VALUE'],
    ['an empty key', () => requireMetadataPair('f', '=1'), 'INVALID_METADATA', '"" is no key'],
    ['an empty value', () => requireMetadataPair('f', 'order='), 'INVALID_METADATA', 'it is empty'],
    ['a long key', () => requireMetadataPair('f', `${'k'.repeat(41)}=1`), 'INVALID_METADATA', 'is no key'],
    ['a long value', () => requireMetadataPair('f', `k=${'x'.repeat(501)}`), 'INVALID_METADATA', '500 characters'],
    ['24 KiB and one byte', () => requireShortTexts('f', ['x'.repeat(24_577)]), 'VALUE_TOO_LONG', '24577 bytes'],
  ])('%s', (_, rule, reason, message) => {
    const fault = faultOf(rule)
    expect(fault.reason).toBe(reason)
    expect(fault.message).toContain(message)
  })
})

it.each([
  [undefined, undefined],
  [0, undefined],
  [1, 1],
  [100, 100],
  [101, 100],
])('a page limit of %s is read as %s', (limit, read) => {
  expect(requirePageLimit(limit)).toBe(read)
})

describe('requireAmount', () => {
  const max = (2n ** 256n - 1n).toString()

  it.each<[string, AmountRule]>([
    ['0.000001', { currency: USDC }],
    ['1.0000000000', { currency: USDC }],
    [`${max.slice(0, -6)}.${max.slice(-6)}`, { currency: USDC }],
    ['0', { mayBeZero: true }],
    [max, { mayBeZero: true, fewestDecimals: 0 }],
    ['1.000000000000000001', {}],
  ])('accepts %s by %o', (text, rule) => {
    expect(() => requireAmount('amount', text, rule)).not.toThrow()
  })

  it.each<[string, AmountRule, string]>([
    ['', {}, 'not a plain decimal number of at most 18 places'],
    ['1e3', {}, 'not a plain decimal number'],
    ['1.0000000000000000001', {}, 'not a plain decimal number'],
    ['9'.repeat(18_446), { mayBeZero: true, fewestDecimals: 0 }, 'not a plain decimal number'],
    ['0', {}, 'it is not above 0'],
    ['-1', { mayBeZero: true }, 'it is negative'],
    ['1.0000001', { currency: USDC }, 'it has more places than the 6 decimals of USDC-BASE'],
    [max, { currency: USDC }, 'it is above 2^256 - 1 base units'],
    [`${max}.1`, { mayBeZero: true, fewestDecimals: 0 }, 'it is above 2^256 - 1 base units'],
  ])('refuses %s by %o', (text, rule, detail) => {
    const fault = faultOf(() => requireAmount('amount', text, rule))
    expect(fault.reason).toBe('INVALID_AMOUNT')
    expect(fault.message).toContain(detail)
  })

  it('returns unchanged what isCanonicalAmount accepts', () => {
    const digits = fc.stringMatching(/^[0-9]{0,80}$/)
    fc.assert(
      fc.property(digits, fc.option(digits), (whole, fraction) => {
        const text = fraction === null ? whole : `${whole}.${fraction}`
        if (!isCanonicalAmount(text)) return
        const amount = requireAmount('amount', text, { mayBeZero: true, fewestDecimals: 0 })
        expect(formatDecimal(amount)).toBe(text)
      }),
      { numRuns: 2_000 },
    )
  })
})

it('requireDateRange gives whole days to their last millisecond, and undefined for an absent bound', () => {
  expect(requireDateRange({ toDate: '2026-01-01' })).toEqual({ toDate: Date.UTC(2026, 0, 2) - 1 })
  expect(requireDateRange({})).toEqual({})
})
