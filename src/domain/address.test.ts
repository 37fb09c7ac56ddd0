import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Address,
  addressFamily,
  addressFromBytes,
  addressToBytes,
  formatAddress,
  isZeroAddress,
  parseAddress,
  ZERO_ADDRESS,
} from './address.ts'

const CHECKSUMMED = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const TRON = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'

function read(text: string): Address {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(parsed.detail)
  return parsed.address
}

describe('parseAddress', () => {
  it.each([
    CHECKSUMMED,
    CHECKSUMMED.toLowerCase(),
    `0x${CHECKSUMMED.slice(2).toUpperCase()}`,
    CHECKSUMMED.replace('0x', '0X'),
  ])('reads %s as one address', (text) => {
    expect(read(text)).toBe(CHECKSUMMED.toLowerCase())
    expect(formatAddress(read(text))).toBe(CHECKSUMMED)
  })

  // @see https://eips.ethereum.org/EIPS/eip-55
  it.each([
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x27b1fdb04752bbc536007a920d24acb045561c26',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ])('writes %s with its checksum', (text) => {
    expect(formatAddress(read(text.toLowerCase()))).toBe(text)
  })

  it('reads Tron addresses as written', () => {
    expect(read(TRON)).toBe(TRON)
    expect(addressFamily(read(TRON))).toBe('TRON')
    expect(formatAddress(read(TRON))).toBe(TRON)
    expect(addressToBytes(read(TRON)).toString('hex')).toBe('41a614f803b6fd780986a42c78ec9c7f77e6ded13c')
  })

  it.each([
    '',
    '0x',
    CHECKSUMMED.slice(2),
    CHECKSUMMED.slice(0, -1),
    `${CHECKSUMMED}0`,
    ` ${CHECKSUMMED}`,
    `${CHECKSUMMED}\n`,
    CHECKSUMMED.replace('aA', 'Aa'),
    CHECKSUMMED.replace('F', 'f'),
    CHECKSUMMED.replace('5a', '5g'),
    TRON.toLowerCase(),
    `${TRON.slice(0, -1)}u`,
    TRON.slice(0, -1),
    'vitalik.eth',
    '41a614f803b6fd780986a42c78ec9c7f77e6ded13c',
  ])('refuses "%s"', (text) => {
    expect(parseAddress(text).ok).toBe(false)
  })

  it('writes the checksum that other software writes, and is unchanged by storage', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), (bytes) => {
        const hex = `0x${Buffer.from(bytes).toString('hex')}` as const
        expect(formatAddress(read(hex)).toLowerCase()).toBe(hex)
        expect(addressFromBytes(addressToBytes(read(hex)))).toBe(hex)
        const tron = addressFromBytes(Buffer.from([0x41, ...bytes]))
        expect(addressFromBytes(addressToBytes(read(tron)))).toBe(tron)
      }),
    )
  })
})

it('recognises the zero address', () => {
  expect(isZeroAddress(ZERO_ADDRESS)).toBe(true)
  expect(isZeroAddress(addressFromBytes(Buffer.concat([Buffer.from([0x41]), Buffer.alloc(20)])))).toBe(true)
  expect(isZeroAddress(read(CHECKSUMMED))).toBe(false)
})

it('refuses stored bytes that are not an address', () => {
  for (const length of [0, 20, 21, 22]) expect(() => addressFromBytes(Buffer.alloc(length))).toThrow(TypeError)
})
