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
  ])('of %s is stable', (_, terms, beside, hash) => {
    expect(hashTerms(parseTerms(terms, known), beside).toString('hex')).toBe(hash)
  })

  it('of an imported line without a time is stable', () => {
    const hash = hashTerms(parseTerms(input, known), { createdAt: undefined }).toString('hex')
    expect(hash).toBe('6dcb020a72d180bdb31888389efc98acd41085bb05f1263edf1031b1212cae1d')
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
