import { describe, expect, it } from 'vitest'
import { balanceOf, type CountedPayment, type CountedSums, closureOf, requestStatusOf } from './payment-request.ts'

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

describe('requestStatusOf a request of 100', () => {
  const paid = (counted: string, more: Partial<CountedPayment> = {}): CountedPayment => ({
    status: 'CONFIRMED',
    final: true,
    counted,
    ...more,
  })
  const returned = { status: 'REFUNDED' } as const
  it.each<[string, readonly CountedPayment[], string]>([
    ['no payment', [], 'OPEN'],
    ['failed payments alone', [paid('100', { status: 'FAILED' })], 'OPEN'],
    ['payments that count for nothing', [paid('0', returned), paid('0')], 'OPEN'],
    ['a part', [paid('99.999999')], 'PARTIALLY_PAID'],
    ['covered, but not finally', [paid('60'), paid('40', { final: false, status: 'PENDING' })], 'PENDING'],
    ['covered finally, and more to come', [paid('100'), paid('40', { final: false, status: 'PENDING' })], 'PAID'],
    ['covered, and one of two returned', [paid('100', returned), paid('1')], 'PAID'],
    ['all returned', [paid('60', returned), paid('40', returned)], 'REFUNDED'],
    ['all that counts returned', [paid('60', returned), paid('0'), paid('9', { status: 'FAILED' })], 'REFUNDED'],
  ])('%s', (_, payments, status) => {
    expect(requestStatusOf('100', payments)).toBe(status)
  })
})

describe('closureOf', () => {
  const at = new Date(1_000)
  it.each<[string, Parameters<typeof closureOf>[0], nowMs: number, string | undefined]>([
    ['a request without an end', {}, 1e15, undefined],
    ['the last millisecond', { expiresAt: at }, 999, undefined],
    ['the moment of expiry', { expiresAt: at }, 1_000, 'REQUEST_EXPIRED'],
    ['cancelled', { cancelledAt: at }, 0, 'REQUEST_CANCELLED'],
    ['cancelled and expired', { cancelledAt: at, expiresAt: at }, 1_000, 'REQUEST_CANCELLED'],
  ])('%s', (_, request, nowMs, closure) => {
    expect(closureOf(request, nowMs)).toBe(closure)
  })
})
