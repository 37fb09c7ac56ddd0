import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Reason } from '../../src/errors/reasons.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { generatePayments, hash, insertPayments, PAYERS } from '../support/data/search-payments.ts'
import { faultOf, type OpenedSearch, openSearch } from './open-search.ts'

let opened: OpenedSearch

beforeAll(async () => {
  opened = await openSearch()
})

afterAll(() => opened.database.drop())

const search: OpenedSearch['search'] = (input, as) => opened.search(input, as)

describe('invalid input', () => {
  const checksummed = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
  const bad: [SearchInput, Reason, string][] = [
    [{ fromDate: '2021-02-30' }, 'INVALID_DATE', 'fromDate: "2021-02-30" is not a valid date: there is no such day'],
    [{ toDate: '2026-03-01T00:00:00' }, 'INVALID_DATE', 'it has no offset'],
    [{ toDate: '2026-03-01T00:00:00 01:00' }, 'INVALID_DATE', 'write it as %2B'],
    [{ fromDate: '' }, 'INVALID_DATE', 'fromDate'],
    [
      { timeZone: 'Pacific/Apia', fromDate: '2011-12-30' },
      'INVALID_DATE',
      'the clocks of Pacific/Apia skipped that day',
    ],
    [{ timeZone: 'Pacific/Apia', toDate: '2011-12-30' }, 'INVALID_DATE', 'toDate: "2011-12-30"'],
    [{ timeZone: '' }, 'UNKNOWN_TIME_ZONE', 'timeZone'],
    [{ timeZone: 'IST' }, 'UNKNOWN_TIME_ZONE', 'use UTC or a name such as Europe/Zurich'],
    [{ timeZone: 'EST5EDT' }, 'UNKNOWN_TIME_ZONE', 'unknown time zone "EST5EDT"'],
    [{ timeZone: '+01:00' }, 'UNKNOWN_TIME_ZONE', 'timeZone'],
    [{ timeZone: 'Europe/Zurick', fromDate: 'soon' }, 'UNKNOWN_TIME_ZONE', 'did you mean "Europe/Zurich"?'],
    [{ timeZone: 'Asia/Tokyo', fromDate: '2026-03-02', toDate: '2026-03-01T14:59:59Z' }, 'INVALID_RANGE', 'fromDate'],
    [{ fromDate: '2026-03-02', toDate: '2026-03-01' }, 'INVALID_RANGE', 'fromDate "2026-03-02" lies beyond toDate'],
    [{ fromDate: '2026-03-01T00:00:00.002Z', toDate: '2026-03-01T00:00:00.001Z' }, 'INVALID_RANGE', 'fromDate'],
    [{ minAmount: '1e3' }, 'INVALID_AMOUNT', 'minAmount: "1e3" is not a valid amount'],
    [{ minAmount: '0x10' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: ' 1' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '+1' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '-0' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: 'NaN' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '01' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ maxAmount: '-1' }, 'INVALID_AMOUNT', 'it is negative'],
    [{ maxAmount: '1,5' }, 'INVALID_AMOUNT', 'maxAmount'],
    [{ maxAmount: '0.0000000000000000001' }, 'INVALID_AMOUNT', 'at most 18 places'],
    [{ maxAmount: '9'.repeat(79) }, 'INVALID_AMOUNT', 'maxAmount'],
    [{ minAmount: '2', maxAmount: '1.99' }, 'INVALID_RANGE', 'minAmount "2" lies beyond maxAmount "1.99"'],
    [{ currency: ['USDCC'] }, 'UNKNOWN_CURRENCY', 'did you mean "USDC"?'],
    [{ paymentCurrency: ['USCD'] }, 'UNKNOWN_CURRENCY', 'did you mean "USDC"?'],
    [{ currency: ['USDC', ''] }, 'UNKNOWN_CURRENCY', 'unknown currency ""'],
    [{ currency: ['Odd-coi'] }, 'UNKNOWN_CURRENCY', 'did you mean "Odd-coin"?'],
    [{ currency: ['USDC-ETHEREUM'] }, 'UNKNOWN_CURRENCY', 'unknown currency "USDC-ETHEREUM"'],
    [{ currency: ['USDC-137'] }, 'UNKNOWN_CURRENCY', 'unknown currency "USDC-137"'],
    [{ currency: ['USDT-bnb'] }, 'UNKNOWN_CURRENCY', 'unknown currency "USDT-bnb"'],
    [{ paymentCurrency: ['EUR'] }, 'UNKNOWN_CURRENCY', 'paymentCurrency: unknown currency "EUR"'],
    [{ invoiceCurrency: ['EURO'] }, 'UNKNOWN_CURRENCY', 'invoiceCurrency'],
    [{ network: ['polygn'] }, 'UNKNOWN_NETWORK', 'did you mean "POLYGON"?'],
    [{ network: ['BASE', '424242'] }, 'UNKNOWN_NETWORK', '424242'],
    [{ sourceNetwork: ['polygn'] }, 'UNKNOWN_NETWORK', 'sourceNetwork: unknown network "polygn"'],
    [{ destinationNetwork: ['BASE', ''] }, 'UNKNOWN_NETWORK', 'destinationNetwork'],
    [{ network: [''] }, 'UNKNOWN_NETWORK', 'network'],
    [{ payer: ['0x12'] }, 'INVALID_ADDRESS', 'payer: "0x12" is not a valid address'],
    [{ payee: [checksummed.replace('C44', 'c44')] }, 'INVALID_ADDRESS', 'its EIP-55 checksum is wrong'],
    [{ walletAddress: ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T'] }, 'INVALID_ADDRESS', 'base58 checksum'],
    [{ walletAddress: [''] }, 'INVALID_ADDRESS', 'walletAddress'],
    [{ txHash: ['0x12'] }, 'INVALID_TX_HASH', 'txHash'],
    [{ txHash: [`${hash(1)} `] }, 'INVALID_TX_HASH', 'txHash'],
    [{ requestId: [`02${'0'.repeat(64)}`] }, 'INVALID_REQUEST_ID', 'requestId'],
    [{ paymentReference: ['0x11223344556677'] }, 'INVALID_PAYMENT_REFERENCE', 'paymentReference'],
    [{ reference: [''] }, 'INVALID_REFERENCE', 'it is empty'],
    [{ reference: ['a\u0000b'] }, 'INVALID_REFERENCE', 'control character'],
    [{ reference: ['\ud800'] }, 'INVALID_REFERENCE', 'not valid Unicode'],
    [{ reference: ['x'.repeat(257)] }, 'INVALID_REFERENCE', '256 characters'],
    [{ payer: Array.from({ length: 101 }, () => PAYERS[0] ?? '') }, 'TOO_MANY_VALUES', '101, at most 100'],
    [{ reference: Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(256, '✓')) }, 'VALUE_TOO_LONG', 'reference'],
    [{ referencePrefix: '\u{1f600}' }, 'INVALID_REFERENCE', 'it has fewer than 2 characters'],
    [{ referencePrefix: 'IN\ud800' }, 'INVALID_REFERENCE', 'not valid Unicode'],
    [{ referencePrefix: 'x'.repeat(257) }, 'INVALID_REFERENCE', '256 characters'],
    [
      { 'exclude.network': ['BASE', 'polygn'] },
      'UNKNOWN_NETWORK',
      'exclude.network: unknown network "polygn"; did you mean',
    ],
    [{ 'exclude.currency': ['USDCC'] }, 'UNKNOWN_CURRENCY', 'exclude.currency: unknown currency "USDCC"; did you mean'],
    [{ 'exclude.payee': [''] }, 'INVALID_ADDRESS', 'exclude.payee'],
    [{ 'exclude.payer': Array.from({ length: 101 }, () => PAYERS[0] ?? '') }, 'TOO_MANY_VALUES', '101, at most 100'],
    [{ limit: -1 }, 'INVALID_LIMIT', 'limit "-1" is not a valid page size'],
    [{ limit: 1.5 }, 'INVALID_LIMIT', '1.5'],
    [{ limit: Number.NaN }, 'INVALID_LIMIT', 'NaN'],
    [{ cursor: '' }, 'INVALID_CURSOR', 'it is empty'],
    [{ cursor: 'abc' }, 'INVALID_CURSOR', 'the cursor cannot be used'],
    [{ cursor: 'x'.repeat(65_536) }, 'INVALID_CURSOR', 'the cursor cannot be used'],
  ]

  test.each(bad)('%j is refused as %s', async (input, reason, words) => {
    const fault = await faultOf(search(input))
    expect(fault.reason).toBe(reason)
    expect(fault.message).toContain(words)
  })

  test('a value of 1 MB is refused without being repeated in the message', async () => {
    const fault = await faultOf(search({ network: ['x'.repeat(1_000_000)] }))
    expect(fault.reason).toBe('UNKNOWN_NETWORK')
    expect(fault.message.length).toBeLessThan(1_000)
  })
})

test('a name from imported payments is known as soon as the first is stored, and to that account alone', async () => {
  const [other, nobody] = [
    { id: 77, name: 'other' },
    { id: 78, name: 'nobody' },
  ]
  const asked: SearchInput = { network: ['Newnet'], currency: ['newcoin', 'NEWCOIN-NEWNET'] }
  const [stored] = generatePayments(other.id, 1, 77)
  if (stored === undefined) throw new TypeError('nothing was generated')
  const payment = { ...stored.payment, network: 'NEWNET', currency: 'NEWCOIN-NEWNET' }
  for (const account of [other, nobody]) {
    expect(await faultOf(search(asked, account))).toMatchObject({ reason: expect.stringMatching(/^UNKNOWN_/) })
  }
  await insertPayments(opened.database.knex, [stored])
  expect(await faultOf(search(asked, other))).toMatchObject({ reason: expect.stringMatching(/^UNKNOWN_/) })
  await insertPayments(opened.database.knex, [
    { ...stored, payment: { ...payment, id: '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c99' } },
  ])
  expect((await search(asked, other)).payments).toHaveLength(1)
  expect(await faultOf(search(asked, nobody))).toMatchObject({ reason: expect.stringMatching(/^UNKNOWN_/) })
})

test('a symbol that was only invoiced in is a payment currency as soon as one is paid in it, however often it was asked for before', async () => {
  const account = { id: 79, name: 'widening' }
  const [stored, next] = generatePayments(account.id, 2, 79)
  if (stored === undefined || next === undefined) throw new TypeError('nothing was generated')
  const invoiced = { ...stored.payment, invoiceCurrency: 'WIDE-BASE', invoiceAmount: '1' } as const
  await insertPayments(opened.database.knex, [{ ...stored, payment: invoiced }])
  for (let nth = 0; nth < 3; nth++) {
    const { payments } = await search({ currency: ['WIDE'] }, account)
    expect(payments.map(({ id }) => id)).toEqual([invoiced.id])
  }
  const paid = { ...next.payment, network: 'BASE', currency: 'WIDE-BASE' }
  await insertPayments(opened.database.knex, [{ ...next, payment: paid }])
  for (let nth = 0; nth < 3; nth++) {
    const { payments } = await search({ currency: ['WIDE'] }, account)
    expect(payments.map(({ id }) => id)).toEqual([paid.id])
  }
})
