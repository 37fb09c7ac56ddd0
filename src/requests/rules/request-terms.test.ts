import { describe, expect, it } from 'vitest'
import { chains, tokens } from '../../../test/support/data/search-payments.ts'
import { differingTerms, hashTerms, parseTerms, requestOfTerms } from './request-terms.ts'

const known = { chains, tokens }
const input = {
  payee: `0x${'ab'.repeat(20)}`,
  amount: '10.50',
  invoiceCurrency: 'USDC',
  paymentCurrency: 'USDC-BASE',
}
const allTerms = {
  ...input,
  requestId: `01${'ab'.repeat(32)}`,
  salt: 'ab'.repeat(8),
  reference: 'x',
  expiresAt: '2026-01-01',
  refundAddress: `0x${'cd'.repeat(20)}`,
}
const [ANN, BOB] = ['11', '22'].map((digits) => `0x${digits.repeat(20)}`) as [string, string]
const listed = { ...input, allowedPayers: [ANN, BOB] }

// The hashes are stored with idempotency keys and in the ids of imported requests: they were made before this test and must not change.
describe('hashTerms', () => {
  it.each([
    ['few terms', input, {}, 'e3f09c8495064fde9c6714054804385bd97dcfc0d0653a3ad14b85c70b552226'],
    [
      'all terms',
      { ...allTerms, title: 'x', metadata: { order: '1' } },
      {},
      '59b0a70b9e929eea79673cea4916a0411327dedd31c617f6de3cd151fbaeb327',
    ],
    [
      'no allowed payer',
      { ...input, allowedPayers: [] },
      {},
      'e3f09c8495064fde9c6714054804385bd97dcfc0d0653a3ad14b85c70b552226',
    ],
  ])('of %s is stable', (_, terms, beside, hash) => {
    expect(hashTerms(parseTerms(terms, known), beside).toString('hex')).toBe(hash)
  })

  it('of an imported line without a time is stable', () => {
    const hash = hashTerms(parseTerms(input, known), { createdAt: undefined }).toString('hex')
    expect(hash).toBe('6dcb020a72d180bdb31888389efc98acd41085bb05f1263edf1031b1212cae1d')
  })
})

describe('allowedPayers', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `0x${String(i + 1).padStart(40, '0')}`)
  const TRON = ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8']

  it('are a set: of the same hash, and the same terms, in any order and case', () => {
    const [one, other] = [
      [ANN, BOB],
      [BOB.toUpperCase().replace('X', 'x'), ANN],
    ].map((allowedPayers) => parseTerms({ ...input, allowedPayers }, known)) as [
      ReturnType<typeof parseTerms>,
      ReturnType<typeof parseTerms>,
    ]
    expect(hashTerms(one)).toEqual(hashTerms(other))
    expect(differingTerms(one, requestOfTerms(other, new Date(0)))).toEqual([])
    expect(one.allowedPayers).toEqual([ANN, BOB])
    for (const allowedPayers of [undefined, [], [ANN], [ANN, BOB, input.payee.replace('ab', 'ac')]]) {
      const terms = parseTerms({ ...input, allowedPayers }, known)
      expect([
        hashTerms(terms).equals(hashTerms(one)),
        differingTerms(terms, requestOfTerms(one, new Date(0))),
      ]).toEqual([false, ['allowedPayers']])
    }
  })

  it('may be a hundred', () => {
    expect(parseTerms({ ...input, allowedPayers: many(100) }, known).allowedPayers).toHaveLength(100)
  })

  it.each<[string, readonly string[], string, string]>([
    ['101', many(101), 'TOO_MANY_VALUES', 'allowedPayers'],
    ['no address', [ANN, 'ann.eth'], 'INVALID_ADDRESS', 'allowedPayers[1]'],
    ['an empty text', [''], 'INVALID_ADDRESS', 'allowedPayers[0]'],
    ['a wrong checksum', ['0x70997970c51812dc3A010C7d01b50e0d17dc79C8'], 'INVALID_ADDRESS', 'allowedPayers[0]'],
    ['one twice', [ANN, BOB, ANN], 'INVALID_ADDRESS', 'allowedPayers[2]'],
    [
      'one twice in another case',
      [input.payee.replace('abab', 'acac'), input.payee.toUpperCase().replace('ABAB', 'ACAC')],
      'INVALID_ADDRESS',
      'allowedPayers[1]',
    ],
    ['the payee', [ANN, input.payee], 'INVALID_ADDRESS', 'allowedPayers[1]'],
    ['the zero address', [`0x${'0'.repeat(40)}`], 'INVALID_ADDRESS', 'allowedPayers[0]'],
    ['a Tron address on an EVM chain', [ANN, ...TRON], 'INVALID_ADDRESS', 'allowedPayers[1]'],
  ])('are refused: %s', (_, allowedPayers, reason, field) => {
    expect(() => parseTerms({ ...input, allowedPayers }, known)).toThrowError(
      expect.objectContaining({ reason, metadata: expect.objectContaining({ field }) }),
    )
  })

  it('names every wrong one', () => {
    const read = () => parseTerms({ ...listed, allowedPayers: ['x', ANN, 'y', ANN] }, known)
    expect(read).toThrowError(
      expect.objectContaining({
        violations: ['[0]', '[2]', '[3]'].map((at) => expect.objectContaining({ field: `allowedPayers${at}` })),
      }),
    )
  })
})

describe('differingTerms', () => {
  const stored = requestOfTerms(parseTerms(allTerms, known), new Date(0))

  it.each<[string, object, string[]]>([
    ['the same terms', {}, []],
    ['the same amount in other words', { amount: '10.5000' }, []],
    ['no salt', { salt: undefined }, []],
    ['another salt', { salt: 'cd'.repeat(8) }, ['salt']],
    ['another amount and payee', { amount: '10.51', payee: `0x${'11'.repeat(20)}` }, ['payee', 'amount']],
    ['no reference, no expiry', { reference: undefined, expiresAt: undefined }, ['reference']],
    ['own data', { title: 'x', metadata: { order: '1' } }, []],
  ])('of %s', (_, change, names) => {
    expect(differingTerms(parseTerms({ ...allTerms, ...change }, known), stored)).toEqual(names)
  })
})
