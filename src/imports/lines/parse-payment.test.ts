import { describe, expect, it } from 'vitest'
import { type Reason } from '../../errors/reasons.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import { parsePayment } from './parse-payment.ts'

const least = {
  id: '0B7D2A31-6f0e-8c55-9d3b-3d8f2f6f1c11',
  timestamp: '2026-03-01T12:00:05.900+01:00',
  amount: '10.50',
  currency: 'USDC-BASE',
  network: 'base',
  status: 'CONFIRMED',
}
const hash = '5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060'

const refundOf = (fields: object) => ({
  refunds: [{ amount: '1', currency: 'USDC-BASE', network: 'BASE', txHash: hash, ...fields }],
})

function faultOf(json: unknown): { reason: Reason; message: string } | undefined {
  try {
    parsePayment(json)
    return undefined
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    return error
  }
}

/** 2^256 - 1 base units of a currency of 18, 8, 6 and 0 decimals, and one unit more. */
const most = 2n ** 256n - 1n
const units = (value: bigint, decimals: number) => {
  const digits = value.toString()
  const whole = digits.slice(0, digits.length - decimals)
  return decimals === 0 ? digits : `${whole}.${digits.slice(digits.length - decimals)}`
}

describe('an amount beyond what contracts hold', () => {
  const decimals: Readonly<Record<string, number>> = { 'USDC-BASE': 6, 'DAI-BASE': 18, 'ETH-BASE': 18, USD: 8, EUR: 8 }
  const decimalsOf = (currency: string) => decimals[currency] ?? 0
  it.each<[string, number, (amount: string) => object]>([
    ['of a token', 6, (amount) => ({ amount })],
    ['of a token with 18 decimals', 18, (amount) => ({ amount, currency: 'DAI-BASE' })],
    ['of an unknown currency', 0, (amount) => ({ amount, currency: 'OLD-BASE' })],
    ['in US dollars', 8, (amountInUSD) => ({ amountInUSD })],
    ['of an invoice', 8, (invoiceAmount) => ({ invoiceAmount, invoiceCurrency: 'EUR' })],
    ['that was returned', 6, (refundedAmount) => ({ refundedAmount })],
    ['of gas', 18, (amount) => ({ gas: { amount, currency: 'ETH-BASE' } })],
    ['of gas in US dollars', 8, (amountInUSD) => ({ gas: { amount: '1', currency: 'ETH-BASE', amountInUSD } })],
    ['of a fee', 6, (amount) => ({ fees: [{ type: 'SWAP', stage: 'SENDING', amount, currency: 'USDC-BASE' }] })],
    ['of a refund', 6, (amount) => ({ refunds: [{ amount, currency: 'USDC-BASE', network: 'BASE', txHash: hash }] })],
  ])('%s is refused, and the largest is taken', (_, places, fields) => {
    const read = (value: bigint) => parsePayment({ ...least, ...fields(units(value, places)) }, decimalsOf)
    expect(read(most)).toBeDefined()
    expect(() => read(most + 1n)).toThrow(/is above 2\^256 - 1 base units/)
  })
})

describe('parsePayment', () => {
  it('fills in what a line may leave out', () => {
    const timestamp = new Date('2026-03-01T11:00:05Z')
    expect(parsePayment(least)).toEqual({
      id: '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11',
      timestamp,
      updatedAt: timestamp,
      amount: '10.5',
      currency: 'USDC-BASE',
      network: 'BASE',
      status: 'CONFIRMED',
      fees: [],
      exchangeRates: [],
      refunds: [],
      refundedAmount: '0',
      statusHistory: [],
      marks: [],
    })
  })

  it('reads marks, and refuses others', () => {
    expect(parsePayment({ ...least, marks: ['PAYER_NOT_ALLOWED'] }).marks).toEqual(['PAYER_NOT_ALLOWED'])
    for (const marks of [['payer_not_allowed'], ['MARK_UNSPECIFIED'], [1], [null]]) {
      expect(() => parsePayment({ ...least, marks })).toThrowError(
        expect.objectContaining({
          reason: 'UNKNOWN_ENUM_VALUE',
          metadata: expect.objectContaining({ field: 'marks[0]' }),
        }),
      )
    }
    expect(() => parsePayment({ ...least, marks: 'PAYER_NOT_ALLOWED' })).toThrowError(/marks/)
  })

  it('ignores derived fields', () => {
    const derived = {
      completed: true,
      destinationNetwork: 'BASE',
      destinationTxHash: `0x${hash}`,
      links: {},
      payer: null,
    }
    expect(parsePayment({ ...least, ...derived })).toEqual(parsePayment(least))
    expect(parsePayment({ ...least, confirmations: 12 }).confirmations).toBe(12)
    expect(parsePayment({ ...least, status: 'PENDING', confirmations: 12 })).not.toHaveProperty('confirmations')
  })

  it('reads values in all accepted forms', () => {
    const read = parsePayment({
      ...least,
      network: 'matic',
      sourceNetwork: 'some-new chain',
      txHash: hash.toUpperCase(),
      blockNumber: 9_007_199_254_740_991,
      payer: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      payee: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      requestId: `0x01${hash}`,
      paymentReference: '1122334455667788',
      updatedAt: '2026-03-02',
      refunds: [
        { amount: '1', currency: 'USDC-BASE', network: 'BASE', txHash: hash },
        { amount: '0.5', currency: 'USDC-BASE', network: 'BASE', txHash: hash, timestamp: '2026-03-01T12:00:00.5Z' },
      ],
    })
    expect(read).toMatchObject({
      network: 'POLYGON',
      sourceNetwork: 'SOME_NEW_CHAIN',
      txHash: `0x${hash}`,
      blockNumber: 9_007_199_254_740_991n,
      payer: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      payee: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      requestId: `01${hash}`,
      paymentReference: '0x1122334455667788',
      updatedAt: new Date('2026-03-02T00:00:00Z'),
      refundedAmount: '1.5',
    })
    expect(read.refunds[1]?.timestamp).toBe('2026-03-01T12:00:00.000Z')
  })

  it.each(Object.keys(least))('requires %s', (name) => {
    const { [name]: _, ...rest } = least as Record<string, unknown>
    expect(faultOf(rest)?.reason).toBe('MISSING_FIELD')
    expect(faultOf({ ...least, [name]: null })?.reason).toBe('MISSING_FIELD')
  })

  it.each<[string, object, Reason, string]>([
    ['an unknown field', { netwrok: 'BASE' }, 'UNKNOWN_LINE_FIELD', 'did you mean "network"?'],
    ['a name of another style', { tx_hash: hash }, 'UNKNOWN_LINE_FIELD', 'did you mean "txHash"?'],
    ['an unknown field within', { gas: { amount: '1', currency: 'E', usd: '1' } }, 'UNKNOWN_LINE_FIELD', '"gas.usd"'],
    ['__proto__', JSON.parse('{"__proto__":{}}') as object, 'UNKNOWN_LINE_FIELD', '"__proto__"'],
    ['constructor', { constructor: 1 }, 'UNKNOWN_LINE_FIELD', '"constructor"'],
    ['an id that is no UUID', { id: 'x' }, 'INVALID_PAYMENT_ID', 'id: "x"'],
    ['an amount of 78 nines', { amount: '9'.repeat(78) }, 'INVALID_AMOUNT', '2^256 - 1 base units'],
    ['a status in lower case', { status: 'confirmed' }, 'UNKNOWN_ENUM_VALUE', 'did you mean "CONFIRMED"?'],
    ['a status by number', { status: 3 }, 'UNKNOWN_ENUM_VALUE', 'use one of: PENDING'],
    ['an unknown type', { type: 'CRYPTO' }, 'UNKNOWN_ENUM_VALUE', 'type has no value "CRYPTO"'],
    ['an amount as a number', { amount: 10.5 }, 'INVALID_AMOUNT', 'JSON numbers lose digits'],
    ['an amount with an exponent', { amount: '1e3' }, 'INVALID_AMOUNT', '"1e3"'],
    ['an amount of 19 places', { amount: '0.0000000000000000001' }, 'INVALID_AMOUNT', '18 places'],
    ['a negative amount', { amount: '-1' }, 'INVALID_AMOUNT', 'it is negative'],
    ['a huge amount', { amount: '9'.repeat(79) }, 'INVALID_AMOUNT', 'plain decimal'],
    ['an amount in US dollars that is none', { amountInUSD: '' }, 'INVALID_AMOUNT', 'amountInUSD'],
    ['a day that no calendar has', { timestamp: '2021-02-30T00:00:00Z' }, 'INVALID_DATE', 'no such day'],
    ['the 29th of a short February', { timestamp: '2021-02-29T00:00:00Z' }, 'INVALID_DATE', 'no such day'],
    ['an hour that no day has', { timestamp: '2021-02-03T24:00:00Z' }, 'INVALID_DATE', 'no such time'],
    ['a time without offset', { updatedAt: '2026-03-01T12:00:00' }, 'INVALID_DATE', 'no offset'],
    ['a time as a number', { timestamp: 1_772_366_400 }, 'INVALID_FIELD', 'is not a string'],
    ['a network that is no name', { network: '!' }, 'UNKNOWN_NETWORK', '"!"'],
    ['an empty currency', { currency: '' }, 'INVALID_FIELD', 'it is empty'],
    ['a currency with NUL', { currency: 'USDC\u0000' }, 'INVALID_FIELD', 'control character'],
    ['half a character', { reference: '\ud800' }, 'INVALID_REFERENCE', 'Unicode'],
    ['a reference with NUL', { reference: 'a\u0000' }, 'INVALID_REFERENCE', 'control character'],
    ['a long reference', { reference: 'x'.repeat(257) }, 'INVALID_REFERENCE', '256'],
    ['a wrong checksum', { payer: '0x70997970c51812dc3A010C7d01b50e0d17dc79C8' }, 'INVALID_ADDRESS', 'checksum'],
    ['a short hash', { txHash: '0x12' }, 'INVALID_TX_HASH', '"0x12"'],
    ['a negative index', { eventIndex: -1 }, 'INVALID_FIELD', 'eventIndex'],
    ['an index as text', { eventIndex: '1' }, 'INVALID_FIELD', 'eventIndex'],
    ['a block beyond 2^63', { blockNumber: '9223372036854775808' }, 'INVALID_FIELD', '2^63'],
    ['a chain id that is a number', { chainId: '137' }, 'INVALID_FIELD', 'CAIP-2'],
    ['a wrong request id', { requestId: hash }, 'INVALID_REQUEST_ID', 'requestId'],
    ['a wrong payment reference', { paymentReference: '0x12' }, 'INVALID_PAYMENT_REFERENCE', '"0x12"'],
    ['fees that are no list', { fees: {} }, 'INVALID_FIELD', 'fees is not valid: an object is not a list'],
    [
      'a fee without currency',
      { fees: [{ type: 'GAS', stage: 'SENDING', amount: '1' }] },
      'MISSING_FIELD',
      'fees[0].currency',
    ],
    ['too many fees', { fees: Array.from({ length: 1_001 }, () => ({})) }, 'TOO_MANY_VALUES', '1000'],
    [
      'a status change without time',
      { statusHistory: [{ status: 'PENDING' }] },
      'MISSING_FIELD',
      'statusHistory[0].at',
    ],
    ['a refund without hash', refundOf({ txHash: null }), 'MISSING_FIELD', 'refunds[0].txHash'],
    ['a recipient that is no address', refundOf({ recipient: '0x12' }), 'INVALID_ADDRESS', 'refunds[0].recipient'],
    ['a recipient of another type', refundOf({ recipient: 12 }), 'INVALID_FIELD', 'refunds[0].recipient'],
    ['an excess as text', refundOf({ excess: 'true' }), 'INVALID_FIELD', 'refunds[0].excess'],
    ['an excess as a number', refundOf({ excess: 1 }), 'INVALID_FIELD', 'refunds[0].excess'],
  ])('refuses %s', (_, change, reason, words) => {
    expect(faultOf({ ...least, ...change })).toMatchObject({ reason, message: expect.stringContaining(words) })
  })

  it.each([[[]], ['x'], [null], [1]])('refuses a line that is no object: %j', (json) => {
    expect(faultOf(json)?.reason).toBe('INVALID_FIELD')
  })
})
