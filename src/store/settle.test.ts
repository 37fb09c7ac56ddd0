import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readStoredDecimal as exact, formatDecimal } from '../domain/decimal.ts'
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
    amount: exact(String(amount)),
    counted: exact(String(amount)),
    status: 'PENDING',
    refunds: [],
    refundedAmount: exact('0'),
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
    amount: exact(String(amount)),
    currency: 'USDC-BASE',
    ...given,
  }
}

const statusesOf = (states: ReturnType<typeof settle>) => [...states.values()].map(({ status }) => status)
const returnedOf = (states: ReturnType<typeof settle>) =>
  [...states.values()].map(({ refundedAmount }) => formatDecimal(refundedAmount))

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
    expect(statusesOf(settle({ amount: exact(amount), payments, refunds: [], now: NOW }))).toEqual(expected)
  })

  it('counts what a payment is worth in the invoice currency, not what was paid', () => {
    const payments = [payment(1, 5, { counted: exact('10') })]
    expect(statusesOf(settle({ amount: exact('10'), payments, refunds: [], now: NOW }))).toEqual(['CONFIRMED'])
    expect(statusesOf(settle({ amount: exact('10.1'), payments, refunds: [], now: NOW }))).toEqual(['PARTIAL'])
  })

  it('leaves failed payments as they are and does not count them', () => {
    const payments = [payment(1, 100, { status: 'FAILED', imported: true }), payment(2, 50)]
    expect(statusesOf(settle({ amount: exact('100'), payments, refunds: [], now: NOW }))).toEqual(['FAILED', 'PARTIAL'])
  })

  it('writes history and updatedAt when the status changes, and neither when it does not', () => {
    const [first] = settle({ amount: exact('100'), payments: [payment(1, 100)], refunds: [], now: NOW }).values()
    expect(first).toMatchObject({ updatedAt: NOW, statusHistory: [{ status: 'CONFIRMED', at: NOW.toISOString() }] })
    const stored = payment(1, 100, { ...first, isNew: false })
    const later = new Date(NOW.getTime() + 1)
    expect(settle({ amount: exact('100'), payments: [stored], refunds: [], now: later }).get('p1')).toBe(stored)
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
    const states = settle({ amount: exact(String(amount)), payments, refunds, now: NOW })
    expect(statusesOf(states)).toEqual(statuses)
    expect(returnedOf(states)).toEqual(amounts)
  })

  it('leave a payment that was all surplus REFUNDED when more is paid after everything was returned', () => {
    const payments = [payment(1, 100), payment(2, 50), payment(20, 10)]
    const states = settle({ amount: exact('100'), payments, refunds: [refund(10, 150)], now: NOW })
    expect(statusesOf(states)).toEqual(['REFUNDED', 'REFUNDED', 'CONFIRMED'])
  })

  it('stay on their payments when more is paid afterwards', () => {
    const payments = [payment(1, 100), payment(20, 100)]
    const states = settle({ amount: exact('100'), payments, refunds: [refund(10, 100)], now: NOW })
    expect(statusesOf(states)).toEqual(['REFUNDED', 'CONFIRMED'])
  })

  it('are listed before they are final and change a status only then', () => {
    const pending = settle({
      amount: exact('100'),
      payments: [payment(1, 100)],
      refunds: [refund(10, 100, { final: false })],
      now: NOW,
    })
    expect(statusesOf(pending)).toEqual(['CONFIRMED'])
    expect(returnedOf(pending)).toEqual(['100'])
  })

  it('of an import stay, once each, and are dropped when a reorg removes them', () => {
    const entry = { amount: '10', currency: 'USDC-BASE', network: 'BASE', txHash: '0x10', eventIndex: 0 } as const
    const kept = { amount: '20', currency: 'USDC-BASE', network: 'BASE', txHash: '0xaa' } as const
    const given = { imported: true, isNew: false, refunds: [entry, kept], refundedAmount: exact('30') }
    const payments = [payment(1, 100, given)]
    const seen = settle({ amount: exact('100'), payments, refunds: [refund(10, 10)], now: NOW })
    expect(returnedOf(seen)).toEqual(['30'])
    const gone = settle({ amount: exact('100'), payments, refunds: [], droppedRefunds: [refund(10, 10)], now: NOW })
    expect([...gone.values()][0]?.refunds).toEqual([kept])
  })

  it('of a payment in another currency than the invoice are counted at the payment’s own rate', () => {
    // 5 tokens count for 10, for an invoice of 8: a fifth of the tokens is surplus.
    const payments = [payment(1, 5, { counted: exact('10') })]
    const states = settle({ amount: exact('8'), payments, refunds: [refund(2, 1), refund(3, 2)], now: NOW })
    expect(returnedOf(states)).toEqual(['2'])
    expect(statusesOf(states)).toEqual(['CONFIRMED'])
    const all = settle({ amount: exact('8'), payments, refunds: [refund(2, 1), refund(3, 4)], now: NOW })
    expect(statusesOf(all)).toEqual(['REFUNDED'])
    const surplus = (returned: string) =>
      formatDecimal(returnedSurplus({ amount: exact('8'), payments, refunds: [refund(2, returned)], now: NOW }))
    expect(['0.25', '1', '4'].map(surplus)).toEqual(['0.5', '2', '2'])
  })
})

/** An oracle: each unit of money is a coin, and coins move one at a time. */
function settleByCoins(amount: number, steps: readonly Step[]) {
  type Coin = { readonly payment: number; readonly surplus: boolean; returned: 'NO' | 'SURPLUS' | 'ALLOCATED' }
  const coins: Coin[] = []
  const returned = new Set<number>()
  let made = 0
  for (const step of steps) {
    for (let unit = 0; unit < step.amount; unit++) {
      if (step.kind === 'PAY') coins.push({ payment: made, surplus: coins.length >= amount, returned: 'NO' })
      else {
        const open = coins.toReversed().filter((coin) => coin.returned === 'NO')
        const coin = open.find(({ surplus }) => surplus) ?? open[0]
        if (coin !== undefined) coin.returned = coin.surplus ? 'SURPLUS' : 'ALLOCATED'
      }
    }
    if (step.kind === 'PAY') made++
    const isAllBack =
      coins.every((coin) => coin.returned !== 'NO') && coins.some((coin) => coin.returned === 'ALLOCATED')
    for (let index = 0; index < made; index++) {
      const own = coins.filter((coin) => coin.payment === index)
      const isBack = own.every((coin) => coin.returned !== 'NO') && own.some((coin) => coin.returned === 'ALLOCATED')
      if (isBack || isAllBack) returned.add(index)
    }
  }
  const isCovered = coins.length >= amount
  const surplus = String(coins.filter((coin) => coin.returned === 'SURPLUS').length)
  const payments = Array.from({ length: made }, (_, index) => {
    const own = coins.filter((coin) => coin.payment === index)
    const status: PaymentStatus = returned.has(index) ? 'REFUNDED' : isCovered ? 'CONFIRMED' : 'PARTIAL'
    return { status, refunded: String(own.filter((coin) => coin.returned === 'ALLOCATED').length) }
  })
  return { payments, surplus }
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('PAY', 'PAY', 'REFUND'),
  amount: fc.integer({ min: 1, max: 12 }),
})

describe('compared with the oracle', () => {
  it('gives each payment the same status and the same returned amount', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(anyStep, { maxLength: 10 }), (amount, steps) => {
        const payments = steps.flatMap((step, at) => (step.kind === 'PAY' ? [payment(at + 1, step.amount)] : []))
        const refunds = steps.flatMap((step, at) => (step.kind === 'REFUND' ? [refund(at + 1, step.amount)] : []))
        const ledger = { amount: exact(String(amount)), payments, refunds, now: NOW }
        const states = [...settle(ledger).values()]
        const found = states.map(({ status, refundedAmount }) => ({ status, refunded: formatDecimal(refundedAmount) }))
        expect({ payments: found, surplus: formatDecimal(returnedSurplus(ledger)) }).toEqual(
          settleByCoins(amount, steps),
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('changes nothing when it settles again', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(anyStep, { maxLength: 10 }), (amount, steps) => {
        const payments = steps.flatMap((step, at) => (step.kind === 'PAY' ? [payment(at + 1, step.amount)] : []))
        const refunds = steps.flatMap((step, at) => (step.kind === 'REFUND' ? [refund(at + 1, step.amount)] : []))
        const once = settle({ amount: exact(String(amount)), payments, refunds, now: NOW })
        const stored = payments.map((each) => ({ ...each, ...once.get(each.id), isNew: false }))
        const again = settle({
          amount: exact(String(amount)),
          payments: stored,
          refunds,
          now: new Date(NOW.getTime() + 5),
        })
        for (const each of stored) expect(again.get(each.id)).toBe(each)
      }),
    )
  })
})
