import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PaymentStatus } from '../domain/payment.ts'
import { type LedgerPayment, type LedgerRefund, returnedSurplus, settle } from './settle.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')

interface Step {
  readonly kind: 'PAY' | 'REFUND'
  readonly amount: number
}

function payment(block: number, amount: number | string, given: Partial<LedgerPayment> = {}): LedgerPayment {
  return {
    id: `p${block}`,
    isNew: true,
    imported: false,
    final: true,
    timestamp: new Date(block * 1_000),
    blockNumber: BigInt(block),
    txHash: `0x${block}`,
    eventIndex: 0,
    amount: String(amount),
    counted: String(amount),
    status: 'PENDING',
    refunds: [],
    refundedAmount: '0',
    statusHistory: [],
    updatedAt: new Date(0),
    ...given,
  }
}

function refund(block: number, amount: number | string, given: Partial<LedgerRefund> = {}): LedgerRefund {
  return {
    txHash: `0x${block}`,
    eventIndex: 0,
    network: 'BASE',
    timestamp: new Date(block * 1_000),
    blockNumber: BigInt(block),
    final: true,
    amount: String(amount),
    currency: 'USDC-BASE',
    ...given,
  }
}

const statusesOf = (states: ReturnType<typeof settle>) => [...states.values()].map(({ status }) => status)
const returnedOf = (states: ReturnType<typeof settle>) =>
  [...states.values()].map(({ refundedAmount }) => refundedAmount)

describe('status', () => {
  it.each<[string, string, [number | string, boolean][], PaymentStatus[]]>([
    ['nothing final', '100', [[100, false]], ['PENDING']],
    ['covered', '100', [[100, true]], ['CONFIRMED']],
    ['one unit short, no tolerance', '100', [['99.999999', true]], ['PARTIAL']],
    [
      'covered by two at once',
      '100',
      [
        [60, true],
        [40, true],
      ],
      ['CONFIRMED', 'CONFIRMED'],
    ],
    [
      'covered only with a pending one',
      '100',
      [
        [60, true],
        [40, false],
      ],
      ['PARTIAL', 'PENDING'],
    ],
    [
      'pending beside covered',
      '100',
      [
        [100, true],
        [5, false],
      ],
      ['CONFIRMED', 'PENDING'],
    ],
  ])('%s', (_, amount, paid, expected) => {
    const payments = paid.map(([each, final], index) => payment(index + 1, each, { final }))
    expect(statusesOf(settle({ amount, payments, refunds: [], now: NOW }))).toEqual(expected)
  })

  it('counts what a payment is worth in the invoice currency, not what was paid', () => {
    const payments = [payment(1, 5, { counted: '10' })]
    expect(statusesOf(settle({ amount: '10', payments, refunds: [], now: NOW }))).toEqual(['CONFIRMED'])
    expect(statusesOf(settle({ amount: '10.1', payments, refunds: [], now: NOW }))).toEqual(['PARTIAL'])
  })

  it('leaves failed payments as they are and does not count them', () => {
    const payments = [payment(1, 100, { status: 'FAILED', imported: true }), payment(2, 50)]
    expect(statusesOf(settle({ amount: '100', payments, refunds: [], now: NOW }))).toEqual(['FAILED', 'PARTIAL'])
  })

  it('writes history and updatedAt when the status changes, and neither when it does not', () => {
    const [first] = settle({ amount: '100', payments: [payment(1, 100)], refunds: [], now: NOW }).values()
    expect(first).toMatchObject({ updatedAt: NOW, statusHistory: [{ status: 'CONFIRMED', at: NOW.toISOString() }] })
    const stored = payment(1, 100, { ...first, isNew: false })
    const later = new Date(NOW.getTime() + 1)
    expect(settle({ amount: '100', payments: [stored], refunds: [], now: later }).get('p1')).toBe(stored)
  })
})

describe('refunds', () => {
  it.each<[string, number, number[], number[], PaymentStatus[], string[]]>([
    ['the surplus first, changing no status', 100, [150], [50], ['CONFIRMED'], ['0']],
    ['beyond the surplus', 100, [150], [60], ['CONFIRMED'], ['10']],
    ['surplus and all the rest', 100, [150], [50, 100], ['REFUNDED'], ['100']],
    ['newest first', 100, [60, 40], [40], ['CONFIRMED', 'REFUNDED'], ['0', '40']],
    ['one refund over two payments', 100, [60, 40], [50], ['CONFIRMED', 'REFUNDED'], ['10', '40']],
    ['everything', 100, [60, 40], [100], ['REFUNDED', 'REFUNDED'], ['60', '40']],
    ['more than everything', 100, [60, 40], [500], ['REFUNDED', 'REFUNDED'], ['60', '40']],
    ['of a request that is not covered', 100, [60], [60], ['REFUNDED'], ['60']],
    ['beyond a payment that was all surplus', 100, [100, 50], [50, 1], ['CONFIRMED', 'CONFIRMED'], ['1', '0']],
    ['everything, surplus included', 100, [100, 50], [50, 100], ['REFUNDED', 'REFUNDED'], ['100', '0']],
  ])('%s', (_, amount, paid, returned, statuses, amounts) => {
    const payments = paid.map((each, index) => payment(index + 1, each))
    const refunds = returned.map((each, index) => refund(index + 10, each))
    const states = settle({ amount: String(amount), payments, refunds, now: NOW })
    expect(statusesOf(states)).toEqual(statuses)
    expect(returnedOf(states)).toEqual(amounts)
  })

  it('leave a payment of nothing but surplus REFUNDED when more is paid after all went back', () => {
    const payments = [payment(1, 100), payment(2, 50), payment(20, 10)]
    const states = settle({ amount: '100', payments, refunds: [refund(10, 150)], now: NOW })
    expect(statusesOf(states)).toEqual(['REFUNDED', 'REFUNDED', 'CONFIRMED'])
  })

  it('stay where they were laid when more is paid afterwards', () => {
    const payments = [payment(1, 100), payment(20, 100)]
    const states = settle({ amount: '100', payments, refunds: [refund(10, 100)], now: NOW })
    expect(statusesOf(states)).toEqual(['REFUNDED', 'CONFIRMED'])
  })

  it('show before they are final and change a status only then', () => {
    const pending = settle({
      amount: '100',
      payments: [payment(1, 100)],
      refunds: [refund(10, 100, { final: false })],
      now: NOW,
    })
    expect(statusesOf(pending)).toEqual(['CONFIRMED'])
    expect(returnedOf(pending)).toEqual(['100'])
  })

  it('of an import stay, once each, and go when a reorg takes them out', () => {
    const entry = { amount: '10', currency: 'USDC-BASE', network: 'BASE', txHash: '0x10', eventIndex: 0 }
    const kept = { amount: '20', currency: 'USDC-BASE', network: 'BASE', txHash: '0xaa' }
    const given = { imported: true, isNew: false, refunds: [entry, kept], refundedAmount: '30' }
    const payments = [payment(1, 100, given)]
    const seen = settle({ amount: '100', payments, refunds: [refund(10, 10)], now: NOW })
    expect(returnedOf(seen)).toEqual(['30'])
    const gone = settle({ amount: '100', payments, refunds: [], droppedRefunds: [refund(10, 10)], now: NOW })
    expect([...gone.values()][0]?.refunds).toEqual([kept])
  })

  it('of a payment in another currency than the invoice are counted at the payment’s own rate', () => {
    // 5 tokens for an invoice of 8 that they cover with 10: a fifth of the tokens was too much.
    const payments = [payment(1, 5, { counted: '10' })]
    const states = settle({ amount: '8', payments, refunds: [refund(2, 1), refund(3, 2)], now: NOW })
    expect(returnedOf(states)).toEqual(['2'])
    expect(statusesOf(states)).toEqual(['CONFIRMED'])
    const all = settle({ amount: '8', payments, refunds: [refund(2, 1), refund(3, 4)], now: NOW })
    expect(statusesOf(all)).toEqual(['REFUNDED'])
    const surplus = (returned: string) =>
      returnedSurplus({ amount: '8', payments, refunds: [refund(2, returned)], now: NOW })
    expect(['0.25', '1', '4'].map(surplus)).toEqual(['0.5', '2', '2'])
  })
})

/** Every unit of money as a coin of its own, moved one at a time. */
function settleByCoins(amount: number, steps: readonly Step[]) {
  type Coin = { readonly payment: number; readonly surplus: boolean; returned: 'NO' | 'SURPLUS' | 'LAID' }
  const coins: Coin[] = []
  const returned = new Set<number>()
  let made = 0
  for (const step of steps) {
    for (let unit = 0; unit < step.amount; unit++) {
      if (step.kind === 'PAY') coins.push({ payment: made, surplus: coins.length >= amount, returned: 'NO' })
      else {
        const open = coins.toReversed().filter((coin) => coin.returned === 'NO')
        const coin = open.find(({ surplus }) => surplus) ?? open[0]
        if (coin !== undefined) coin.returned = coin.surplus ? 'SURPLUS' : 'LAID'
      }
    }
    if (step.kind === 'PAY') made++
    const isAllBack = coins.every((coin) => coin.returned !== 'NO') && coins.some((coin) => coin.returned === 'LAID')
    for (let index = 0; index < made; index++) {
      const own = coins.filter((coin) => coin.payment === index)
      const isBack = own.every((coin) => coin.returned !== 'NO') && own.some((coin) => coin.returned === 'LAID')
      if (isBack || isAllBack) returned.add(index)
    }
  }
  const isCovered = coins.length >= amount
  const surplus = String(coins.filter((coin) => coin.returned === 'SURPLUS').length)
  const payments = Array.from({ length: made }, (_, index) => {
    const own = coins.filter((coin) => coin.payment === index)
    const status: PaymentStatus = returned.has(index) ? 'REFUNDED' : isCovered ? 'CONFIRMED' : 'PARTIAL'
    return { status, refunded: String(own.filter((coin) => coin.returned === 'LAID').length) }
  })
  return { payments, surplus }
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('PAY', 'PAY', 'REFUND'),
  amount: fc.integer({ min: 1, max: 12 }),
})

describe('against moving every coin by itself', () => {
  it('gives each payment the same status and the same amount returned', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(anyStep, { maxLength: 10 }), (amount, steps) => {
        const payments = steps.flatMap((step, at) => (step.kind === 'PAY' ? [payment(at + 1, step.amount)] : []))
        const refunds = steps.flatMap((step, at) => (step.kind === 'REFUND' ? [refund(at + 1, step.amount)] : []))
        const ledger = { amount: String(amount), payments, refunds, now: NOW }
        const states = [...settle(ledger).values()]
        const found = states.map(({ status, refundedAmount }) => ({ status, refunded: refundedAmount }))
        expect({ payments: found, surplus: returnedSurplus(ledger) }).toEqual(settleByCoins(amount, steps))
      }),
      { numRuns: 1_000 },
    )
  })

  it('finds nothing to change when it settles again', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(anyStep, { maxLength: 10 }), (amount, steps) => {
        const payments = steps.flatMap((step, at) => (step.kind === 'PAY' ? [payment(at + 1, step.amount)] : []))
        const refunds = steps.flatMap((step, at) => (step.kind === 'REFUND' ? [refund(at + 1, step.amount)] : []))
        const once = settle({ amount: String(amount), payments, refunds, now: NOW })
        const stored = payments.map((each) => ({ ...each, ...once.get(each.id), isNew: false }))
        const again = settle({ amount: String(amount), payments: stored, refunds, now: new Date(NOW.getTime() + 5) })
        for (const each of stored) expect(again.get(each.id)).toBe(each)
      }),
    )
  })
})
