import { describe, expect, it } from 'vitest'
import { type Paid, type Returned, settle } from './standing.ts'

/** The examples of the rules, by hand: the model must say what the rules say before it judges the service. */

const at = (order: number) => ({ timeSec: order, block: order, transaction: 0, log: 0 })
const paid = (order: number, amount: bigint, payer: string | undefined, final = true): Paid => ({
  key: `paid ${order}`,
  place: at(order),
  amount,
  worth: amount,
  payer,
  final,
})
const returned = (order: number, amount: bigint, to: string, final = true): Returned => ({
  place: at(order),
  txHash: `returned ${order}`,
  eventIndex: 0,
  to,
  amount,
  final,
})

function settled(amount: bigint, payments: readonly Paid[], refunds: readonly Returned[] = []) {
  const standing = settle({ amount, cancelled: false, expired: false }, payments, refunds)
  const { status, paid: gross, pending, outstanding, overpaid } = standing
  const payment = standing.payments.map((each) => {
    const entries = each.refunds.map((entry) => `${entry.amount}${entry.excess ? ' excess' : ''}`)
    return [each.status, ...entries].join(' ')
  })
  return { request: [status, gross, pending, outstanding, overpaid].join(' '), payment }
}

describe('what a request stands at', () => {
  it.each([
    ['nothing paid', settled(100n, []), 'OPEN 0 0 100 0', []],
    ['a part', settled(100n, [paid(1, 40n, 'a')]), 'PARTIALLY_PAID 40 0 60 0', ['PARTIAL']],
    ['all, not final', settled(5n, [paid(1, 5n, 'a', false)]), 'PENDING 0 5 0 0', ['PENDING']],
    ['more than all', settled(5n, [paid(1, 8n, 'a')]), 'PAID 8 0 0 3', ['CONFIRMED']],
    ['the surplus returned', settled(5n, [paid(1, 8n, 'a')], [returned(2, 3n, 'a')]), 'PAID 8 0 0 0', ['CONFIRMED 3']],
    [
      '40 of 100 returned before cover, to its payer',
      settled(100n, [paid(1, 40n, 'a')], [returned(2, 40n, 'a')]),
      'OPEN 0 0 100 0',
      ['REFUNDED 40'],
    ],
    [
      '40 of 100 returned, then 60 paid',
      settled(100n, [paid(1, 40n, 'a'), paid(3, 60n, 'a')], [returned(2, 40n, 'a')]),
      'PARTIALLY_PAID 60 0 40 0',
      ['REFUNDED 40', 'PARTIAL'],
    ],
    [
      'a refund before cover to another than its payer lowers nothing',
      settled(100n, [paid(1, 40n, 'a')], [returned(2, 40n, 'b')]),
      'PARTIALLY_PAID 40 0 60 0',
      ['REFUNDED 40'],
    ],
    [
      'a refund before its payment returns nothing of it',
      settled(5n, [paid(2, 5n, 'a')], [returned(1, 5n, 'a')]),
      'PAID 5 0 0 0',
      ['CONFIRMED 5 excess'],
    ],
    ['all returned', settled(5n, [paid(1, 5n, 'a')], [returned(2, 5n, 'a')]), 'REFUNDED 5 0 0 0', ['REFUNDED 5']],
    [
      'a refund that is not final is an entry, and lowers nothing',
      settled(5n, [paid(1, 5n, 'a')], [returned(2, 5n, 'a', false)]),
      'PAID 5 0 0 0',
      ['CONFIRMED 5'],
    ],
    [
      'a refund of a part re-opens nothing',
      settled(5n, [paid(1, 5n, 'a')], [returned(2, 4n, 'a')]),
      'PAID 5 0 0 0',
      ['CONFIRMED 4'],
    ],
    [
      'the recipient’s payments first, newest first, then others’, then excess on the newest',
      settled(5n, [paid(1, 2n, 'a'), paid(2, 3n, 'a'), paid(3, 4n, 'b')], [returned(4, 12n, 'a')]),
      'REFUNDED 9 0 0 0',
      ['REFUNDED 2', 'REFUNDED 3', 'REFUNDED 4 3 excess'],
    ],
  ])('%s', (_name, { request, payment }, expectedRequest, expectedPayments) => {
    expect(request).toBe(expectedRequest)
    expect(payment).toEqual(expectedPayments)
  })
})
