import { expect, it } from 'vitest'
import { localMinuteIn, noTerms, sayViolations, termsOf } from './new-request-page.tsx'

it('leaves out what is not typed and takes the invoice to be in the payment currency', () => {
  const typed = { ...noTerms, payee: ' 0x12 ', amount: '5', paymentCurrency: 'USDC-BASE' }
  expect(termsOf(typed)).toEqual({
    payee: '0x12',
    amount: '5',
    paymentCurrency: 'USDC-BASE',
    invoiceCurrency: 'USDC-BASE',
  })
  const all = { ...typed, invoiceCurrency: 'EUR', reference: 'INV 1', refundAddress: '0x34' }
  expect(termsOf(all)).toMatchObject({ invoiceCurrency: 'EUR', reference: 'INV 1', refundAddress: '0x34' })
})

it('reads back the moment that it offers for the input', () => {
  const now = new Date('2026-11-23T12:34:00Z')
  const expiresAt = localMinuteIn(24, now)
  expect(termsOf({ ...noTerms, expiresAt })).toMatchObject({ expiresAt: '2026-11-24T12:34:00.000Z' })
})

it('says what is wrong at the field where it was typed', () => {
  const said = sayViolations(
    [
      { field: 'payee', reason: 'INVALID_ADDRESS', description: 'payee: "0x12" is not a valid address' },
      { field: 'amount', reason: 'MISSING_FIELD', description: 'amount is missing; send a value for amount' },
      { field: 'invoiceCurrency', reason: 'MISSING_FIELD', description: 'invoiceCurrency is missing' },
      { field: 'network', reason: 'MISSING_FIELD', description: 'network is missing; send a value for network' },
    ],
    'Needed.',
  )
  expect(said).toEqual({
    payee: '"0x12" is not a valid address',
    amount: 'Needed.',
    paymentCurrency: 'network is missing; send a value for network',
  })
})
