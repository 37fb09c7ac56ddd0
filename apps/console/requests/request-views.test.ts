import { PaymentRequest_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { readPaymentReference, readSearch } from './find-request.ts'
import { filtersOfView, type ViewName, viewNameOf, viewNames } from './requests-page.tsx'

it('has a view of each status, and one of what is overpaid', () => {
  const names = Object.values(Status).filter((name) => typeof name === 'string' && name !== 'STATUS_UNSPECIFIED')
  expect(new Set(viewNames)).toEqual(new Set(['ALL', 'OVERPAID', ...names]))
  for (const name of names)
    expect(filtersOfView(name as ViewName)).toEqual({ status: [Status[name as keyof typeof Status]] })
})

it.each([
  [null, 'ALL'],
  ['open', 'OPEN'],
  ['OVERPAID', 'OVERPAID'],
  ['toString', 'ALL'],
  ['settled', 'ALL'],
])('the status %s in a link names the view %s', (text, name) => {
  expect(viewNameOf(text)).toBe(name)
})

it.each([
  ['', {}],
  [' INV-2026-0042 ', { reference: ['INV-2026-0042'] }],
  [`01${'a'.repeat(64)}`, { requestId: [`01${'a'.repeat(64)}`] }],
  [`02${'a'.repeat(64)}`, { reference: [`02${'a'.repeat(64)}`] }],
  [`0x${'Ab'.repeat(20)}`, { payee: [`0x${'Ab'.repeat(20)}`] }],
])('searches %o by %o', (text, asked) => {
  expect(readSearch(text)).toEqual(asked)
})

it.each([
  ['0x1122334455667788', '0x1122334455667788'],
  [' 11223344556677AA ', '0x11223344556677aa'],
  ['112233445566778', undefined],
  ['0x11223344556677zz', undefined],
])('reads %s as the payment reference %s', (text, reference) => {
  expect(readPaymentReference(text)).toBe(reference)
})
