import { expect, test } from 'vitest'
import { readFreeText, type TextReading } from './read-free-text.ts'

const HASH = 'ab'.repeat(32)
const REQUEST = `01${HASH}`
const ID = '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11'
const WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const TRON = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'

test.each<[text: string, also: TextReading | undefined]>([
  ['INV-2026-0042', undefined],
  ['a,b', undefined],
  ['12', undefined],
  [HASH, { as: 'txHash', value: `0x${HASH}` }],
  [`0x${HASH.toUpperCase()}`, { as: 'txHash', value: `0x${HASH}` }],
  [REQUEST, { as: 'requestId', value: REQUEST }],
  [`0x${REQUEST.toUpperCase()}`, { as: 'requestId', value: REQUEST }],
  [`02${HASH}`, undefined],
  ['1122334455667788', { as: 'paymentReference', value: '0x1122334455667788' }],
  ['0xABCDEF4455667788', { as: 'paymentReference', value: '0xabcdef4455667788' }],
  ['112233445566778', undefined],
  [ID, { as: 'id', value: ID }],
  [ID.toUpperCase(), { as: 'id', value: ID }],
  [ID.replaceAll('-', ''), undefined],
  // the base58 checksum is wrong, so it is no address
  [`${TRON.slice(0, -1)}u`, undefined],
])('%s may be a merchant reference as written, and %o', (text, also) => {
  const readings = [...(also === undefined ? [] : [also]), { as: 'reference', value: text }]
  expect(readFreeText('q', text)).toEqual(readings)
  expect(readFreeText('q', ` \t${text}\n`)).toEqual(readings)
})

test.each([
  [WALLET, WALLET.toLowerCase()],
  [WALLET.toLowerCase(), WALLET.toLowerCase()],
  [`0x${WALLET.slice(2).toUpperCase()}`, WALLET.toLowerCase()],
  [`0X${WALLET.slice(2).toUpperCase()}`, WALLET.toLowerCase()],
  [TRON, TRON],
])('%s means the wallet alone', (text, address) => {
  expect(readFreeText('q', ` ${text} `)).toEqual([{ as: 'walletAddress', value: address }])
})

test.each([
  [WALLET.replace('c79', 'C79'), 'INVALID_ADDRESS'],
  ['', 'INVALID_REFERENCE'],
  [' \n ', 'INVALID_REFERENCE'],
  ['a\0b', 'INVALID_REFERENCE'],
  ['a\nb', 'INVALID_REFERENCE'],
  ['\ud800', 'INVALID_REFERENCE'],
  ['x'.repeat(257), 'INVALID_REFERENCE'],
])('%j is refused', (text, reason) => {
  expect(() => readFreeText('q', text)).toThrow(
    expect.objectContaining({ reason, metadata: expect.objectContaining({ field: 'q' }) }),
  )
})
