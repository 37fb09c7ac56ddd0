import fc from 'fast-check'
import { encodeAbiParameters } from 'viem'
import { describe, expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import {
  addressAt,
  addressOf,
  encodeAddress,
  encodeUint,
  intOf,
  readQuantity,
  splitWords,
  uintAt,
  uintOf,
} from './words.ts'

const uint = fc.bigInt(0n, 2n ** 256n - 1n)
const address = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as Address & Hex)

describe('words', () => {
  it('are encoded as viem encodes them, and read back', () => {
    const types = [{ type: 'uint256' }, { type: 'address' }, { type: 'int256' }] as const
    fc.assert(
      fc.property(uint, address, fc.bigInt(-(2n ** 255n), 2n ** 255n - 1n), (number, account, signed) => {
        const digits = encodeAbiParameters(types, [number, account, signed]).slice(2)
        expect(digits.startsWith(encodeUint(number) + encodeAddress(account))).toBe(true)
        const [first = '', second = '', third = ''] = splitWords(digits, 3) ?? []
        expect([uintOf(first), addressOf(second), intOf(third)]).toEqual([number, account, signed])
        expect([uintAt(digits, 0), addressAt(digits, 1)]).toEqual([number, account])
      }),
    )
  })

  it.each([
    ['no data', undefined],
    ['empty data', ''],
    ['less than a word', 'f'.repeat(63)],
  ])('are none in %s', (_, digits) => {
    expect([uintAt(digits, 0), addressAt(digits, 0)]).toEqual([undefined, undefined])
  })

  it('are split only where there are exactly as many', () => {
    const digits = 'f'.repeat(128)
    expect([splitWords(digits, 1), splitWords(digits, 2)?.length, splitWords(digits, 3)]).toEqual([
      undefined,
      2,
      undefined,
    ])
    expect(splitWords(`${digits}f`, 2)).toBeUndefined()
  })
})

it.each([
  ['0x0', 0n],
  ['0xFF', 255n],
  [`0x${'f'.repeat(64)}`, 2n ** 256n - 1n],
  [`0x1${'0'.repeat(64)}`, undefined],
  ['0x', undefined],
  ['12', undefined],
  [12, undefined],
  [null, undefined],
])('the quantity %s is %s', (value, quantity) => {
  expect(readQuantity(value)).toBe(quantity)
})
