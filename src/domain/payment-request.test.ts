import { describe, expect, it } from 'vitest'
import { readStoredDecimal as exact, formatDecimal } from './decimal.ts'
import { balanceOf, type CountedPayment, closureOf, requestStatusOf } from './payment-request.ts'

const HUNDRED = exact('100')

interface Sums {
  readonly final?: string
  readonly pending?: string
  readonly surplusReturned?: string
  readonly allReturned?: boolean
}

describe('balanceOf a request of 100', () => {
  it.each<[string, Sums, string, outstanding: string, overpaid: string]>([
    ['nothing paid', {}, 'OPEN', '100', '0'],
    ['a part', { final: '40' }, 'PARTIALLY_PAID', '60', '0'],
    ['a part that is not final', { pending: '40' }, 'PARTIALLY_PAID', '60', '0'],
    ['all but the last unit', { final: '99.999999' }, 'PARTIALLY_PAID', '0.000001', '0'],
    ['covered by final and pending payments together', { final: '40', pending: '60' }, 'PENDING', '0', '0'],
    ['covered by pending payments', { pending: '100' }, 'PENDING', '0', '0'],
    ['covered', { final: '100' }, 'PAID', '0', '0'],
    ['covered, with more pending', { final: '100', pending: '5' }, 'PAID', '0', '5'],
    ['overpaid', { final: '130' }, 'PAID', '0', '30'],
    ['overpaid and the surplus returned', { final: '130', surplusReturned: '30' }, 'PAID', '0', '0'],
    ['covered and partly returned', { final: '100', surplusReturned: '20' }, 'PAID', '0', '0'],
    ['fully returned', { final: '100', surplusReturned: '100', allReturned: true }, 'REFUNDED', '0', '0'],
    ['a part, returned', { final: '40', surplusReturned: '40', allReturned: true }, 'REFUNDED', '60', '0'],
  ])('%s', (_, sums, status, outstanding, overpaid) => {
    const { final = '0', pending = '0', surplusReturned = '0', allReturned = false } = sums
    const balance = balanceOf(HUNDRED, {
      final: exact(final),
      pending: exact(pending),
      surplusReturned: exact(surplusReturned),
      allReturned,
    })
    expect(balance.status).toBe(status)
    expect(formatDecimal(balance.outstandingAmount)).toBe(outstanding)
    expect(formatDecimal(balance.overpaidAmount)).toBe(overpaid)
  })
})

describe('requestStatusOf a request of 100', () => {
  const paid = (counted: string, more: Partial<CountedPayment> = {}): CountedPayment => ({
    status: 'CONFIRMED',
    final: true,
    counted: exact(counted),
    ...more,
  })
  const returned = { status: 'REFUNDED' } as const
  it.each<[string, readonly CountedPayment[], string]>([
    ['no payment', [], 'OPEN'],
    ['failed payments alone', [paid('100', { status: 'FAILED' })], 'OPEN'],
    ['payments that count for nothing', [paid('0', returned), paid('0')], 'OPEN'],
    ['a part', [paid('99.999999')], 'PARTIALLY_PAID'],
    ['covered, but not finally', [paid('60'), paid('40', { final: false, status: 'PENDING' })], 'PENDING'],
    ['covered finally, with more pending', [paid('100'), paid('40', { final: false, status: 'PENDING' })], 'PAID'],
    ['covered, and one of two returned', [paid('100', returned), paid('1')], 'PAID'],
    ['all returned', [paid('60', returned), paid('40', returned)], 'REFUNDED'],
    ['all that counts returned', [paid('60', returned), paid('0'), paid('9', { status: 'FAILED' })], 'REFUNDED'],
  ])('%s', (_, payments, status) => {
    expect(requestStatusOf(HUNDRED, payments)).toBe(status)
  })
})

describe('closureOf', () => {
  const at = new Date(1_000)
  it.each<[string, Parameters<typeof closureOf>[0], nowMs: number, string | undefined]>([
    ['neither', {}, 1e15, undefined],
    ['the last millisecond before expiry', { expiresAt: at }, 999, undefined],
    ['the moment of expiry', { expiresAt: at }, 1_000, 'REQUEST_EXPIRED'],
    ['cancelled', { cancelledAt: at }, 0, 'REQUEST_CANCELLED'],
    ['cancelled and expired', { cancelledAt: at, expiresAt: at }, 1_000, 'REQUEST_CANCELLED'],
  ])('%s', (_, request, nowMs, closure) => {
    expect(closureOf(request, nowMs)).toBe(closure)
  })
})
