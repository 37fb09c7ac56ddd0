import { describe, expect, it } from 'vitest'
import { balanceOf, type CountedSums } from './payment-request.ts'

const NOTHING: CountedSums = { final: '0', pending: '0', refunded: '0', allReturned: false }

describe('balanceOf a request of 100', () => {
  it.each<[string, Partial<CountedSums>, string, outstanding: string, overpaid: string]>([
    ['nothing paid', {}, 'OPEN', '100', '0'],
    ['a part', { final: '40' }, 'PARTIALLY_PAID', '60', '0'],
    ['a part that is not final', { pending: '40' }, 'PARTIALLY_PAID', '60', '0'],
    ['all but the last unit', { final: '99.999999' }, 'PARTIALLY_PAID', '0.000001', '0'],
    ['covered by both', { final: '40', pending: '60' }, 'PENDING', '0', '0'],
    ['covered by what is not final', { pending: '100' }, 'PENDING', '0', '0'],
    ['covered', { final: '100' }, 'PAID', '0', '0'],
    ['covered, and more to come', { final: '100', pending: '5' }, 'PAID', '0', '5'],
    ['over-paid', { final: '130' }, 'PAID', '0', '30'],
    ['over-paid and the surplus returned', { final: '130', refunded: '30' }, 'PAID', '0', '0'],
    ['covered and partly returned', { final: '100', refunded: '20' }, 'PAID', '0', '0'],
    ['fully returned', { final: '100', refunded: '100', allReturned: true }, 'REFUNDED', '0', '0'],
    ['a part, returned', { final: '40', refunded: '40', allReturned: true }, 'REFUNDED', '60', '0'],
  ])('%s', (_, sums, status, outstandingAmount, overpaidAmount) => {
    expect(balanceOf('100', { ...NOTHING, ...sums })).toMatchObject({ status, outstandingAmount, overpaidAmount })
  })
})
