import { expect, it } from 'vitest'
import { sayViolations, termsOf } from './typed-terms.ts'

it('leaves out what is not typed and takes the invoice to be in the payment currency', () => {
  const typed = { payee: '0x12', amount: '5', paymentCurrency: 'USDC-BASE' }
  expect(termsOf(typed)).toEqual({
    payee: '0x12',
    amount: '5',
    paymentCurrency: 'USDC-BASE',
    invoiceCurrency: 'USDC-BASE',
  })
  const more = { invoiceCurrency: 'EUR', reference: 'INV 1', title: 'Two books', refundAddress: '0x34' }
  expect(termsOf({ ...typed, ...more })).toMatchObject(more)
})

it('takes a time of an input in the zone of the browser', () => {
  const expiresAt = '2026-11-24T12:34'
  expect(termsOf({ expiresAt })).toMatchObject({ expiresAt: new Date(2026, 10, 24, 12, 34).toISOString() })
})

it('takes the decimal sign of the viewer, and sends nothing that may mean two amounts', () => {
  expect(termsOf({ amount: '19,90' }).amount).toBe('19.90')
  expect(termsOf({ amount: '1,234' }).amount).toBe('1234 or 1.234')
})

it('says in plain words what is wrong at the field where it was typed', () => {
  const violations = [
    { field: 'payee', reason: 'INVALID_ADDRESS', description: 'payee: "0x12" is not a valid address' },
    { field: 'amount', reason: 'MISSING_FIELD', description: 'amount is missing; send a value for amount' },
    { field: 'invoiceCurrency', reason: 'MISSING_FIELD', description: 'invoiceCurrency is missing' },
    { field: 'network', reason: 'MISSING_FIELD', description: 'network is missing; send a value for network' },
    { field: 'reference', reason: 'INVALID_REFERENCE', description: 'reference: it is too long' },
  ] as const
  expect(sayViolations(violations, '')).toEqual({
    payee: 'This address is incomplete or mistyped. Copy it again.',
    amount: 'Required.',
    paymentCurrency: 'Say on which network, as in USDC-BASE.',
    reference: 'It is too long.',
  })
})

it.each([
  ['1,234', /^Is this 1234 or 1\.234\?/],
  ['0', /^Enter an amount above 0, such as 19\.90/],
  ['abc', /^Enter an amount above 0/],
])('says what is wrong with the amount %s', (typed, said) => {
  const violations = [{ field: 'amount', reason: 'INVALID_AMOUNT', description: 'amount: it is not a number' }] as const
  expect(sayViolations(violations, typed).amount).toMatch(said)
})
