import { describe, expect, it } from 'vitest'
import type { Address } from './address.ts'
import { parseTxHash } from './hex.ts'
import {
  parsePaymentReference,
  parseRequestId,
  parseSalt,
  parseUuid,
  paymentIdOf,
  paymentReferenceOf,
  topicOfReference,
} from './identifiers.ts'

const HASH = 'ab'.repeat(32)

describe('transaction hashes', () => {
  it.each([HASH, HASH.toUpperCase(), `0x${HASH}`, `0X${HASH}`.replace('0X', '0x')])('reads %s', (text) => {
    expect(parseTxHash(text)).toBe(`0x${HASH}`)
  })
  it.each(['', '0x', HASH.slice(1), `${HASH}0`, ` ${HASH}`, `0x${'g'.repeat(64)}`])('refuses "%s"', (text) => {
    expect(parseTxHash(text)).toBeUndefined()
  })
})

describe('payment references', () => {
  // https://docs.request.network: last8Bytes(hash(lowercase(requestId + salt + address)))
  it('is the last 8 bytes of the hash over id, salt and address in lower case', () => {
    const requestId = '01e273ecc29d4b526df3a0f1f05ffc59372af8752c2b678096e49ac270416a7cdb'
    const payee = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8' as Address
    expect(paymentReferenceOf(requestId, 'ea3bc7caf64110ca', payee)).toBe('0x9f61fa0fdbde4e8c')
  })
  it('has the topic that the proxies’ events have', () => {
    // keccak256 of the 8 bytes 0x1122334455667788
    expect(topicOfReference('0x1122334455667788')).toBe(
      '0x1360118a9c9fd897720cf4e26de80683f402dd7c28e000aa98ea51b85c60161c',
    )
  })
  it.each(['1122334455667788', '0x1122334455667788'])('reads %s', (text) => {
    expect(parsePaymentReference(text)).toBe('0x1122334455667788')
    expect(parseSalt(text)).toBe('1122334455667788')
  })
  it.each(['', '0x', '112233445566778', '11223344556677889', '0x112233445566778g'])('refuses "%s"', (text) => {
    expect(parsePaymentReference(text)).toBeUndefined()
    expect(parseSalt(text)).toBeUndefined()
  })
  it('reads only request ids that begin with 01', () => {
    expect(parseRequestId(`01${HASH.toUpperCase()}`)).toBe(`01${HASH}`)
    expect(parseRequestId(`0x01${HASH}`)).toBe(`01${HASH}`)
    for (const text of [`02${HASH}`, HASH, `01${HASH}0`, '']) expect(parseRequestId(text)).toBeUndefined()
  })
})

describe('payment ids', () => {
  const origin = { account: 'acme', chainId: 'eip155:1', txHash: `0x${HASH}`, eventIndex: 0 }

  it('are UUIDs of version 8 that depend on the origin alone', () => {
    const id = paymentIdOf(origin)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    // Databases store these ids: another rule would turn every payment into a new one.
    expect(id).toBe('941e575d-d888-8513-8534-31cc2a6e33ce')
    expect(paymentIdOf({ ...origin })).toBe(id)
  })

  it('differ in every part of the origin', () => {
    const others = [
      { ...origin, account: 'other' },
      { ...origin, chainId: 'eip155:10' },
      { ...origin, txHash: `0x${'cd'.repeat(32)}` },
      { ...origin, eventIndex: 1 },
    ]
    expect(new Set([origin, ...others].map(paymentIdOf)).size).toBe(5)
  })

  it.each([
    '',
    'x',
    '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c1',
    '{0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11}',
    '0b7d2a316f0e8c559d3b3d8f2f6f1c11',
  ])('refuses "%s"', (text) => {
    expect(parseUuid(text)).toBeUndefined()
  })
})
