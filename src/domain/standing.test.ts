import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Address } from './address.ts'
import { readStoredDecimal as exact, formatDecimal } from './decimal.ts'
import type { PaymentRefund } from './payment.ts'
import { balanceAt, type SettledAmounts } from './payment-request.ts'
import { decideStanding, type Ledger, type LedgerPayment, type LedgerRefund } from './standing.ts'

const walletOf = (name: string) => `0x${name.charCodeAt(0).toString(16).repeat(20)}` as Address

/**
 * Writes a ledger of a request of 100 in the order of the chain, one block after the other: `A40` is a payment by A, `*40` one by an unknown
 * payer, `A-40` a refund to A. With `?` it is not final.
 */
function ledgerOf(text: string, expected = '100'): Ledger & { payments: LedgerPayment[]; refunds: LedgerRefund[] } {
  const payments: LedgerPayment[] = []
  const refunds: LedgerRefund[] = []
  for (const [index, word] of text.split(' ').filter(Boolean).entries()) {
    const [, who = '', sign, amount = '', pending] = /^(.)(-?)([0-9.]+)(\??)$/.exec(word) ?? []
    const common = { place: placeOf(index + 1), final: pending !== '?', amount: exact(amount), currency: 'USDC-BASE' }
    if (sign === '-') refunds.push(refund(index + 1, { ...common, recipient: walletOf(who) }))
    else payments.push(payment(index + 1, { ...common, payer: who === '*' ? undefined : walletOf(who) }))
  }
  return { expected: exact(expected), payments, refunds }
}

const placeOf = (block: number, logIndex = 0) => ({
  timestamp: new Date(block * 1_000),
  blockNumber: BigInt(block),
  logIndex,
})

function payment(block: number, given: Partial<LedgerPayment> = {}): LedgerPayment {
  return {
    id: `p${String(block).padStart(2, '0')}`,
    place: placeOf(block),
    final: true,
    status: 'PENDING',
    amount: exact('100'),
    currency: 'USDC-BASE',
    counted: given.amount ?? exact('100'),
    payer: walletOf('A'),
    isToSelf: false,
    importedRefunds: [],
    otherwiseReturned: exact('0'),
    ...given,
  }
}

function refund(block: number, given: Partial<LedgerRefund> = {}): LedgerRefund {
  return {
    txHash: `0x${String(block).padStart(2, '0')}`,
    eventIndex: 0,
    network: 'BASE',
    place: placeOf(block),
    final: true,
    amount: exact('100'),
    currency: 'USDC-BASE',
    recipient: walletOf('A'),
    ...given,
  }
}

const balanceOf = ({ expected }: Ledger, settled: SettledAmounts) => balanceAt({ amount: expected }, settled, 0)

const sayEntry = ({ txHash, amount, excess }: PaymentRefund) =>
  `${Number(txHash.slice(2))}:${amount}${excess ? '!' : ''}`

/** The request in one line, and each payment: its status and entries as `block:amount`, `!` where excess. */
function say(ledger: Ledger): string[] {
  const { payments, ...settled } = decideStanding(ledger)
  const { status, paidAmount, pendingAmount, outstandingAmount, overpaidAmount } = balanceOf(ledger, settled)
  const texts = [paidAmount, pendingAmount, outstandingAmount, overpaidAmount].map(formatDecimal)
  const inOrder = ledger.payments.map(({ id }) => payments.get(id))
  return [
    [status, ...texts].join(' '),
    ...inOrder.map((each) => [each?.status, ...(each?.refunds ?? []).map(sayEntry)].join(' ')),
  ]
}

describe('a request of 100: status, paid, pending, outstanding, overpaid', () => {
  it.each<[string, string, string, ...string[]]>([
    ['nothing', '', 'OPEN 0 0 100 0'],
    ['a part', 'A40', 'PARTIALLY_PAID 40 0 60 0', 'PARTIAL'],
    ['a part that is not final', 'A40?', 'PARTIALLY_PAID 0 40 60 0', 'PENDING'],
    ['one unit short: no tolerance', 'A99.999999', 'PARTIALLY_PAID 99.999999 0 0.000001 0', 'PARTIAL'],
    ['covered', 'A100', 'PAID 100 0 0 0', 'CONFIRMED'],
    ['covered by two at once', 'A60 B40', 'PAID 100 0 0 0', 'CONFIRMED', 'CONFIRMED'],
    ['covered, but not finally', 'A100?', 'PENDING 0 100 0 0', 'PENDING'],
    ['covered only with a pending one', 'A60 B40?', 'PENDING 60 40 0 0', 'PARTIAL', 'PENDING'],
    ['covered, with more pending', 'A100 B5?', 'PAID 100 5 0 5', 'CONFIRMED', 'PENDING'],
    ['overpaid', 'A130', 'PAID 130 0 0 30', 'CONFIRMED'],
  ])('%s: %s', (_, text, ...expected) => {
    expect(say(ledgerOf(text))).toEqual(expected)
  })
})

describe('a refund before the cover', () => {
  it.each<[string, string, string, ...string[]]>([
    ['to the payer makes it open again', 'A40 A-40', 'OPEN 0 0 100 0', 'REFUNDED 2:40'],
    ['in part', 'A40 A-10', 'PARTIALLY_PAID 30 0 70 0', 'PARTIAL 2:10'],
    ['to the payer leaves the rest to pay', 'A40 A-40 A60', 'PARTIALLY_PAID 60 0 40 0', 'REFUNDED 2:40', 'PARTIAL'],
    ['and then all is paid', 'A40 A-40 A100', 'PAID 140 0 0 0', 'REFUNDED 2:40', 'CONFIRMED'],
    ['to somebody else lowers nothing', 'A40 B-40', 'PARTIALLY_PAID 40 0 60 0', 'REFUNDED 2:40'],
    ['of an unknown payer lowers nothing', '*40 B-40', 'PARTIALLY_PAID 40 0 60 0', 'REFUNDED 2:40'],
    ['of two payers, one is given back', 'A40 B30 A-40', 'PARTIALLY_PAID 30 0 70 0', 'REFUNDED 3:40', 'PARTIAL'],
    [
      'to one payer beyond what they paid lowers only their part',
      'A40 B30 A-50',
      'PARTIALLY_PAID 30 0 70 0',
      'REFUNDED 3:40',
      'PARTIAL 3:10',
    ],
    ['that is not final lowers nothing yet', 'A40 A-40?', 'PARTIALLY_PAID 40 0 60 0', 'PARTIAL 2:40'],
    ['is not taken from what comes later', 'A40 A-40 A60?', 'PARTIALLY_PAID 0 60 40 0', 'REFUNDED 2:40', 'PENDING'],
  ])('%s: %s', (_, text, ...expected) => {
    expect(say(ledgerOf(text))).toEqual(expected)
  })
})

describe('a refund after the cover', () => {
  it.each<[string, string, string, ...string[]]>([
    ['re-opens nothing', 'A100 A-40', 'PAID 100 0 0 0', 'CONFIRMED 2:40'],
    ['of what was overpaid', 'A130 A-30', 'PAID 130 0 0 0', 'CONFIRMED 2:30'],
    ['of a part of what was overpaid', 'A130 A-10', 'PAID 130 0 0 20', 'CONFIRMED 2:10'],
    ['of everything', 'A100 A-100', 'REFUNDED 100 0 0 0', 'REFUNDED 2:100'],
    ['of everything, to anybody', 'A100 C-100', 'REFUNDED 100 0 0 0', 'REFUNDED 2:100'],
    ['of everything, in parts', 'A130 A-30 A-100', 'REFUNDED 130 0 0 0', 'REFUNDED 2:30 3:100'],
    ['that is not final: listed already', 'A100 A-100?', 'PAID 100 0 0 0', 'CONFIRMED 2:100'],
    ['and then more is paid', 'A100 A-100 B20', 'PAID 120 0 0 0', 'REFUNDED 2:100', 'CONFIRMED'],
    ['and then more is paid, not finally', 'A100 A-100 B20?', 'PAID 100 20 0 0', 'REFUNDED 2:100', 'PENDING'],
    ['of a payer who did not pay last', 'A60 B60 A-20', 'PAID 120 0 0 0', 'CONFIRMED 3:20', 'CONFIRMED'],
    ['newest first of one payer', 'A60 A60 A-70', 'PAID 120 0 0 0', 'CONFIRMED 3:10', 'REFUNDED 3:60'],
    ['the recipient’s first, then others', 'A60 B60 A-70', 'PAID 120 0 0 0', 'REFUNDED 3:60', 'CONFIRMED 3:10'],
    ['to nobody who paid: newest first', 'A60 B60 C-70', 'PAID 120 0 0 0', 'CONFIRMED 3:10', 'REFUNDED 3:60'],
    ['of more than everything', 'A100 A-130', 'REFUNDED 100 0 0 0', 'REFUNDED 2:100 2:30!'],
    ['again after everything', 'A100 A-100 A-5', 'REFUNDED 100 0 0 0', 'REFUNDED 2:100 3:5!'],
    ['excess stands on the newest', 'A60 B40 A-130', 'REFUNDED 100 0 0 0', 'REFUNDED 3:60', 'REFUNDED 3:40 3:30!'],
  ])('%s: %s', (_, text, ...expected) => {
    expect(say(ledgerOf(text))).toEqual(expected)
  })

  it('counts for a request that was covered although a refund before the cover lowered nothing', () => {
    // The payee holds nothing any more, but 40 of it went to somebody who had not paid.
    expect(say(ledgerOf('A40 C-40 A60 A-60'))).toEqual(['PAID 100 0 0 0', 'REFUNDED 2:40', 'REFUNDED 4:60'])
  })
})

describe('the order', () => {
  it('is that of the chain within a block, whatever the hashes', () => {
    const at = (logIndex: number) => placeOf(1, logIndex)
    const paid = payment(1, { place: at(5) })
    const before = refund(9, { place: at(4) })
    const after = refund(8, { place: at(6) })
    const ledger = { expected: exact('100'), payments: [paid] }
    expect(say({ ...ledger, refunds: [before] })).toEqual(['PAID 100 0 0 0', 'CONFIRMED 9:100!'])
    expect(say({ ...ledger, refunds: [after] })).toEqual(['REFUNDED 100 0 0 0', 'REFUNDED 8:100'])
  })

  it('has a refund before its payment return nothing: it is excess', () => {
    expect(say(ledgerOf('A-100 A100'))).toEqual(['PAID 100 0 0 0', 'CONFIRMED 1:100!'])
  })

  it('is by time for imported rows, which may name no block', () => {
    const imported = payment(3, { id: 'import', place: { timestamp: new Date(3_000) }, payer: walletOf('B') })
    const { payments, refunds } = ledgerOf('A40 B-40')
    const earlier = { ...imported, place: { timestamp: new Date(1_500) } }
    const expected = exact('200')
    expect(say({ expected, payments: [...payments, imported], refunds })).toEqual([
      'PARTIALLY_PAID 140 0 60 0',
      'REFUNDED 2:40',
      'PARTIAL',
    ])
    expect(say({ expected, payments: [...payments, earlier], refunds })).toEqual([
      'PARTIALLY_PAID 100 0 100 0',
      'PARTIAL',
      'PARTIAL 2:40',
    ])
  })
})

describe('what counts for nothing', () => {
  it.each<[string, Partial<LedgerPayment>, string]>([
    ['a FAILED payment', { status: 'FAILED' }, 'FAILED'],
    ['a payment to oneself', { isToSelf: true }, 'PARTIAL'],
    ['a payment of unknown worth', { counted: exact('0') }, 'PARTIAL'],
  ])('%s', (_, given, status) => {
    const payments = [payment(1, given)]
    expect(say({ expected: exact('100'), payments, refunds: [] })).toEqual(['OPEN 0 0 100 0', status])
  })

  it('a refund in another currency', () => {
    const [paid] = ledgerOf('A100').payments
    const refunds = [refund(2, { currency: 'DAI-BASE' })]
    expect(say({ expected: exact('100'), payments: [paid!], refunds })).toEqual(['PAID 100 0 0 0', 'CONFIRMED 2:100!'])
  })

  it('has no refund either: it stands on a payment that counts', () => {
    const payments = [payment(1, { amount: exact('40'), counted: exact('40') }), payment(2, { status: 'FAILED' })]
    expect(say({ expected: exact('100'), payments, refunds: [refund(3)] })).toEqual([
      'OPEN 0 0 100 0',
      'REFUNDED 3:40 3:60!',
      'FAILED',
    ])
  })
})

describe('a payment in another currency than the invoice', () => {
  // 5 tokens count for 10.
  const paid = payment(1, { amount: exact('5'), counted: exact('10') })

  it.each<[string, string, string]>([
    ['10', '', 'PAID 10 0 0 0'],
    ['10.1', '', 'PARTIALLY_PAID 10 0 0.1 0'],
    ['8', '', 'PAID 10 0 0 2'],
    ['8', '1', 'PAID 10 0 0 0'],
    ['8', '0.25', 'PAID 10 0 0 1.5'],
    ['8', '5', 'REFUNDED 10 0 0 0'],
    ['100', '2', 'PARTIALLY_PAID 6 0 94 0'],
    ['100', '5', 'OPEN 0 0 100 0'],
  ])('of a request of %s, %s returned', (expected, returned, request) => {
    const refunds = returned === '' ? [] : [refund(2, { amount: exact(returned) })]
    expect(say({ expected: exact(expected), payments: [paid], refunds })[0]).toBe(request)
  })

  it('is returned to the last unit by parts that cannot be divided', () => {
    const thirds = payment(1, { amount: exact('3'), counted: exact('1') })
    const refunds = [2, 3, 4].map((block) => refund(block, { amount: exact('1') }))
    expect(say({ expected: exact('100'), payments: [thirds], refunds })[0]).toBe('OPEN 0 0 100 0')
  })
})

describe('refunds that an import brought', () => {
  const entry = (given: Partial<PaymentRefund> = {}): PaymentRefund => ({
    amount: '40',
    currency: 'USDC-BASE',
    network: 'BASE',
    txHash: '0x77',
    timestamp: new Date(9_000).toISOString(),
    imported: true,
    ...given,
  })
  const stand = (given: Partial<LedgerPayment>, expected = '100') =>
    say({ expected: exact(expected), payments: [payment(1, given)], refunds: [] })

  it.each<[string, Partial<LedgerPayment>, string, ...string[]]>([
    ['stay on their payment', { importedRefunds: [entry()] }, 'PAID 100 0 0 0', 'CONFIRMED 77:40'],
    ['return it', { importedRefunds: [entry({ amount: '100' })] }, 'REFUNDED 100 0 0 0', 'REFUNDED 77:100'],
    [
      'without a time return it as well',
      { importedRefunds: [entry({ amount: '100', timestamp: undefined as never })] },
      'REFUNDED 100 0 0 0',
      'REFUNDED 77:100',
    ],
    [
      'return nothing where they are excess',
      { importedRefunds: [entry({ amount: '100', excess: true })] },
      'PAID 100 0 0 0',
      'CONFIRMED 77:100!',
    ],
    ['may be known without entries', { otherwiseReturned: exact('100') }, 'REFUNDED 100 0 0 0', 'REFUNDED'],
  ])('%s', (_, given, ...expected) => {
    expect(stand(given)).toEqual(expected)
  })

  it('before the cover lower what is held only where they went to the known payer', () => {
    const to = (recipient: string | undefined) => ({
      importedRefunds: [{ ...entry(), ...(recipient && { recipient }) }],
    })
    expect(stand(to(walletOf('A')), '200')[0]).toBe('PARTIALLY_PAID 60 0 140 0')
    expect(stand(to(walletOf('B')), '200')[0]).toBe('PARTIALLY_PAID 100 0 100 0')
    expect(stand(to(undefined), '200')[0]).toBe('PARTIALLY_PAID 100 0 100 0')
  })

  it('come after their payment, also within its second', () => {
    const given = entry({ recipient: walletOf('A'), timestamp: new Date(1_000).toISOString() })
    expect(stand({ importedRefunds: [given] }, '200')).toEqual(['PARTIALLY_PAID 60 0 140 0', 'PARTIAL 77:40'])
  })
})

/** An oracle: each unit of money is a coin that remembers its payment, and coins move one at a time. */
function standByCoins(expected: number, steps: readonly Move[]) {
  const coins: { payment: number; payer: string; isBack: boolean }[] = []
  const entries: string[][] = []
  let held = 0
  let isCovered = false
  for (const [at, { kind, who, amount }] of steps.entries()) {
    if (kind === 'PAY') {
      for (let n = 0; n < amount; n++) coins.push({ payment: entries.length, payer: who, isBack: false })
      entries.push([])
      held += amount
      isCovered ||= held >= expected
      continue
    }
    for (let n = 0; n < amount; n++) {
      const open = coins.toReversed().filter(({ isBack }) => !isBack)
      const coin = open.find(({ payer }) => payer === who && who !== '*') ?? open[0]
      if (coin !== undefined) coin.isBack = true
      if (coin !== undefined && (isCovered || (coin.payer === who && who !== '*'))) held--
      if (entries.length > 0)
        entries[coin?.payment ?? entries.length - 1]!.push(`${at}${coin === undefined ? '!' : ''}`)
    }
  }
  const statuses = entries.map((_, index) => {
    const isReturned = coins.every(({ payment: of, isBack }) => of !== index || isBack)
    return isReturned ? 'REFUNDED' : isCovered ? 'CONFIRMED' : 'PARTIAL'
  })
  const status = isCovered ? (held === 0 ? 'REFUNDED' : 'PAID') : held > 0 ? 'PARTIALLY_PAID' : 'OPEN'
  const sums = [isCovered ? coins.length : held, isCovered ? 0 : expected - held, Math.max(0, held - expected)]
  return { status, sums: sums.map(String), statuses, entries: entries.map((list) => list.toSorted()) }
}

interface Move {
  readonly kind: 'PAY' | 'REFUND'
  readonly who: string
  readonly amount: number
}

const anyMove: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom('PAY', 'PAY', 'REFUND'),
  who: fc.constantFrom('A', 'B', '*'),
  amount: fc.integer({ min: 1, max: 12 }),
})

/** Moves whose first is a payment. */
const anyMoves = fc
  .array(anyMove, { maxLength: 10 })
  .map((moves) =>
    moves.slice(
      Math.max(
        0,
        moves.findIndex(({ kind }) => kind === 'PAY'),
      ),
    ),
  )
  .filter(([first]) => first?.kind !== 'REFUND')

function ledgerOfMoves(moves: readonly Move[], expected: number) {
  const text = moves.map(({ kind, who, amount }) => `${who}${kind === 'REFUND' ? '-' : ''}${amount}`).join(' ')
  return ledgerOf(text, String(expected))
}

describe('compared with coins that move one at a time', () => {
  it('gives the request and each payment the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), anyMoves, (expected, moves) => {
        const ledger = ledgerOfMoves(moves, expected)
        const found = decideStanding(ledger)
        const { paidAmount, outstandingAmount, overpaidAmount } = balanceOf(ledger, found)
        const sums = [paidAmount, outstandingAmount, overpaidAmount].map(formatDecimal)
        const payments = ledger.payments.map(({ id }) => found.payments.get(id))
        const coinsOf = ({ txHash, amount, excess }: PaymentRefund) =>
          Array.from({ length: Number(amount) }, () => `${Number(txHash.slice(2)) - 1}${excess ? '!' : ''}`)
        expect({
          status: found.status,
          sums,
          statuses: payments.map((each) => each?.status),
          entries: payments.map((each) => each?.refunds.flatMap(coinsOf).toSorted()),
        }).toEqual(standByCoins(expected, moves))
      }),
      { numRuns: 2_000 },
    )
  })

  it('does not depend on the order in which rows are given', () => {
    const shuffled = fc.tuple(anyMoves, fc.array(fc.double({ noNaN: true }), { minLength: 10, maxLength: 10 }))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), shuffled, (expected, [moves, weights]) => {
        const ledger = ledgerOfMoves(moves, expected)
        const mix = <T>(rows: readonly T[]) =>
          rows
            .map((row, at) => ({ row, by: weights[at]! }))
            .toSorted((a, b) => a.by - b.by)
            .map(({ row }) => row)
        const mixed = decideStanding({ ...ledger, payments: mix(ledger.payments), refunds: mix(ledger.refunds) })
        const { payments, ...amounts } = decideStanding(ledger)
        expect(mixed).toMatchObject(amounts)
        for (const [id, standing] of payments) expect(mixed.payments.get(id)).toEqual(standing)
      }),
    )
  })
})
