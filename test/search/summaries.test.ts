import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { addDecimals, type Decimal, type DecimalString, formatDecimal, parseDecimal } from '../../src/domain/decimal.ts'
import { codeOfType, type Payment, rankOfStatus } from '../../src/domain/payment.ts'
import { createPaymentSearch } from '../../src/search/page/payment-search.ts'
import { type GroupName, groupNames, type Measure, measures } from '../../src/search/sql/read-summary.ts'
import {
  createSummarizePayments,
  isoWeekOf,
  type PaymentSummary,
  type SummarizePayments,
  type SummaryGroup,
  type SummaryInput,
} from '../../src/search/totals/summarize-payments.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  chains,
  generatePayments,
  hash,
  insertPayments,
  type StoredPayment,
  tokens,
} from '../support/data/search-payments.ts'
import { faultOf } from './open-search.ts'

// Summaries against sums over the same payments in memory.

const account = { id: 1, name: 'one' }
let database: TestDatabase
let summarize: SummarizePayments
let mine: readonly Payment[]

beforeAll(async () => {
  database = await createTestDatabase()
  const search = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 1) })
  summarize = createSummarizePayments({ knex: database.knex, parseFilter: (...asked) => search.parseFilter(...asked) })
  const ours = generatePayments(1, 600, 11)
  await insertPayments(database.knex, [...ours, ...generatePayments(2, 200, 12)])
  mine = ours.map(({ payment }) => payment)
})

afterAll(() => database.drop())

/** A key of the metadata that some payments carry. */
const KEY = 'order'

const ask = (input: Partial<SummaryInput>) => {
  const keyed = input.groupBy?.includes('metadata') === true ? { metadataKey: KEY } : {}
  return summarize(account, { groupBy: [], ...keyed, ...input })
}

/** The value of a grouping, and what groups are ordered by. */
type Named = Partial<Pick<SummaryGroup, GroupName>> & { rest: GroupName[] }

interface Sum {
  readonly named: Named
  readonly of: Payment[]
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** `2026-03-29`: the Swedish locale writes dates so. */
function isoDate(time: Date, timeZone: string): string {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone })
  formats.set(timeZone, format)
  return format.format(time)
}

function mondayOf(day: string): string {
  const time = new Date(`${day}T00:00:00Z`)
  time.setUTCDate(time.getUTCDate() - ((time.getUTCDay() + 6) % 7))
  return time.toISOString().slice(0, 10)
}

/** Of payments, or of lines. */
function usdOf(payments: readonly Pick<Payment, 'amountInUsd'>[]): string {
  return total(payments.flatMap(({ amountInUsd }) => amountInUsd ?? []))
}

function total(amounts: readonly string[]): string {
  return formatDecimal(
    amounts.map(parseDecimal).reduce<Decimal>((sum, each) => addDecimals(sum, each ?? sum), { units: 0n, places: 0 }),
  )
}

/** The parties with the largest sums; equal sums are ordered by number of payments, then by address. */
function topOf(name: 'payer' | 'payee', payments: readonly Payment[], top: number): string[] {
  const byParty = Map.groupBy(payments, (payment) => payment[name])
  return [...byParty]
    .flatMap(([party, theirs]) =>
      party === undefined ? [] : [{ party, usd: parseDecimal(sumsOf(theirs).amountInUsd), n: theirs.length }],
    )
    .toSorted((a, b) => {
      const [left, right] = [a.usd, b.usd].map((usd) => (usd?.units ?? 0n) * 10n ** BigInt(18 - (usd?.places ?? 0)))
      if (left !== right) return (left ?? 0n) > (right ?? 0n) ? -1 : 1
      return b.n - a.n || (a.party.toLowerCase() < b.party.toLowerCase() ? -1 : 1)
    })
    .slice(0, top)
    .map(({ party }) => party)
}

/** Groups the payments in memory, in the order of the answer. */
function bruteForce(
  { groupBy, sums = [] }: { readonly groupBy: readonly GroupName[]; readonly sums?: readonly Measure[] },
  timeZone: string,
  top: number,
  payments: readonly Payment[],
) {
  const tops = { payer: topOf('payer', payments, top), payee: topOf('payee', payments, top) }
  const keyOf = (
    name: GroupName,
    payment: Payment,
  ): { order: string; named?: string | undefined; isRest?: boolean } => {
    const day = isoDate(payment.timestamp, timeZone)
    switch (name) {
      case 'day':
        return { order: day, named: day }
      case 'week':
        return { order: mondayOf(day), named: isoWeekOf(mondayOf(day)) }
      case 'month':
        return { order: day.slice(0, 7), named: day.slice(0, 7) }
      case 'status':
        return { order: String(rankOfStatus(payment.status)), named: payment.status }
      case 'payer':
      case 'payee': {
        const party = payment[name]
        if (party === undefined) return { order: 'unknown' }
        const place = tops[name].indexOf(party)
        return place < 0 ? { order: 'upmost', isRest: true } : { order: String(place).padStart(4, '0'), named: party }
      }
      case 'network':
      case 'currency':
        return { order: payment[name], named: payment[name] }
      case 'invoiceCurrency':
        return { order: payment[name] ?? '~', named: payment[name] }
      case 'metadata':
        return { order: payment.metadata?.[KEY] ?? '~', named: payment.metadata?.[KEY] }
      case 'type':
        return payment.type === undefined
          ? { order: '9' }
          : { order: `${codeOfType(payment.type)}`, named: payment.type }
    }
  }
  const groups = new Map<string, Sum>()
  for (const payment of payments) {
    const keys = groupBy.map((name) => ({ name, ...keyOf(name, payment) }))
    const order = keys.map((key) => key.order).join('\0')
    const named = {
      ...Object.fromEntries(keys.flatMap((key) => (key.named === undefined ? [] : [[key.name, key.named]]))),
      rest: keys.flatMap((key) => (key.isRest ? [key.name] : [])),
    }
    const group: Sum = groups.get(order) ?? { named, of: [] }
    group.of.push(payment)
    groups.set(order, group)
  }
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { named, of }]) => ({ ...named, ...sumsOf(of, sums, payments) }))
}

/** An amount that a measure adds up. */
interface Line {
  readonly currency: string | undefined
  readonly amount: string | undefined
  readonly amountInUsd?: DecimalString | undefined
  /** Set where it is subtracted from an amount that is counted already. */
  readonly isUncounted?: true
}

const linesOf: Record<Measure, (payment: Payment, gasOwners: ReadonlySet<Payment>) => readonly Line[]> = {
  AMOUNTS: (payment) => [payment],
  INVOICE_AMOUNTS: ({ invoiceCurrency, invoiceAmount, amountInUsd }) => [
    { currency: invoiceCurrency, amount: invoiceAmount, amountInUsd },
  ],
  FEES: ({ fees }) => fees,
  GAS: (payment, owners) => (payment.gas !== undefined && owners.has(payment) ? [payment.gas] : []),
  REFUNDS: ({ refunds }) => refunds,
  NET: ({ currency, amount, amountInUsd, refunds }) => [
    { currency, amount, amountInUsd: refunds.length === 0 ? amountInUsd : undefined },
    ...refunds.map((refund) => ({
      currency: refund.currency,
      amount: `-${refund.amount}`,
      isUncounted: true as const,
    })),
  ],
}

/** The payments for which the gas of their transaction counts: of those with gas the first by event, then by id. */
function gasOwnersOf(payments: readonly Payment[]): ReadonlySet<Payment> {
  const byTransaction = Map.groupBy(
    payments.filter(({ gas }) => gas !== undefined),
    ({ network, txHash, id }) => `${network} ${txHash ?? id}`,
  )
  const place = ({ eventIndex = Number.MAX_SAFE_INTEGER }: Payment) => eventIndex
  return new Set(
    [...byTransaction.values()].flatMap((of) =>
      of.toSorted((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1)).slice(0, 1),
    ),
  )
}

function ownSumsOf(payments: readonly Payment[], asked: readonly Measure[], gasOwners: ReadonlySet<Payment>) {
  return measures
    .filter((measure) => asked.includes(measure))
    .flatMap((measure) => {
      const lines = payments
        .flatMap((payment) => linesOf[measure](payment, gasOwners))
        .flatMap(({ currency, amount, ...line }) =>
          currency === undefined || amount === undefined ? [] : [{ ...line, currency, amount }],
        )
      const bySymbol = Map.groupBy(lines, ({ currency }) => currency.replace(/-[^-]*$/, ''))
      return [...bySymbol].toSorted(byName).map(([symbol, ofSymbol]) => ({
        measure,
        symbol,
        amount: total(ofSymbol.map(({ amount }) => amount)),
        ...usdSumsOf(ofSymbol.filter(({ isUncounted }) => isUncounted !== true)),
        parts: [...Map.groupBy(ofSymbol, ({ currency }) => currency)].toSorted(byName).map(([currency, ofId]) => ({
          currency,
          amount: total(ofId.map(({ amount }) => amount)),
          count: ofId.filter(({ isUncounted }) => isUncounted !== true).length,
        })),
      }))
    })
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

const usdSumsOf = (lines: readonly Pick<Line, 'amountInUsd'>[]) => ({
  count: lines.length,
  amountInUsd: usdOf(lines),
  countWithoutUsd: lines.filter(({ amountInUsd }) => amountInUsd === undefined).length,
})

/** Sums of payments of all statuses: those that are FAILED are only counted. @param matching - all that match, also of other groups */
function sumsOf(payments: readonly Payment[], asked: readonly Measure[] = [], matching: readonly Payment[] = payments) {
  const moved = (of: readonly Payment[]) => of.filter(({ status }) => status !== 'FAILED')
  const summed = moved(payments)
  const sums = ownSumsOf(summed, asked, gasOwnersOf(moved(matching)))
  return { ...usdSumsOf(summed), count: payments.length, sums }
}

/** Each by itself, and half of the pairs, so that each stands first and second. */
const groupings: GroupName[][] = groupNames.flatMap((one, at) => [
  [one],
  ...groupNames.filter((two, place) => two !== one && (at + place) % 2 === 1).map((two) => [one, two]),
])
const zones = [
  ['UTC', 2],
  ['Asia/Kathmandu', 3],
  ['America/New_York', 1],
] as const

test.each(groupings.map((groupBy, n) => [groupBy.join(' and '), groupBy, n] as const))(
  'by %s',
  async (_, groupBy, n) => {
    const [timeZone, top] = zones[n % zones.length] ?? ['UTC', 1]
    const sums = measures.filter((_each, at) => ((n + 1) >> at) % 2 === 1)
    const summary = await ask({ groupBy, timeZone, top, sums })
    expect(summary).toEqual({ groups: bruteForce({ groupBy, sums }, timeZone, top, mine), ...sumsOf(mine, sums) })
  },
)

test('a date range may begin and end within a day, a week and a month', async () => {
  const range = { fromDate: '2026-03-03T12:00:00Z', toDate: '2026-03-15T07:00:00Z' }
  const within = mine.filter(
    ({ timestamp }) => timestamp >= new Date(range.fromDate) && timestamp <= new Date(range.toDate),
  )
  for (const groupBy of [
    ['day', 'week'],
    ['month', 'day'],
  ] as GroupName[][]) {
    expect(await ask({ ...range, groupBy, timeZone: 'Asia/Tokyo' })).toEqual({
      groups: bruteForce({ groupBy }, 'Asia/Tokyo', 1, within),
      ...sumsOf(within),
    })
  }
})

test('without a grouping there is only the sum, even of no payments', async () => {
  expect(await ask({})).toEqual({ groups: [], ...sumsOf(mine) })
  const nothing = { groups: [], count: 0, amountInUsd: '0', countWithoutUsd: 0, sums: [] }
  expect(await ask({ q: 'nothing' })).toEqual(nothing)
  expect(await ask({ q: 'nothing', sums: measures })).toEqual(nothing)
  expect(await ask({ q: 'nothing', groupBy: ['day'], sums: measures })).toEqual(nothing)
})

test('payments that are FAILED are counted, and summed only where they alone are asked for', async () => {
  const failed = mine.filter(({ status }) => status === 'FAILED')
  const pending = mine.filter(({ status }) => status === 'PENDING')
  expect(failed.length).toBeGreaterThan(10)
  const ofFailed = { ...usdSumsOf(failed), sums: ownSumsOf(failed, measures, gasOwnersOf(failed)) }
  expect(await ask({ status: ['FAILED'], sums: measures })).toEqual({ groups: [], ...ofFailed })
  const both = mine.filter(({ status }) => ['FAILED', 'PENDING'].includes(status))
  expect(await ask({ status: ['FAILED', 'PENDING'], sums: measures })).toEqual({
    groups: [],
    ...sumsOf(both, measures),
  })
  const { amountInUsd, countWithoutUsd, sums } = sumsOf(pending, measures)
  expect(sumsOf(both, measures)).toEqual({ count: both.length, amountInUsd, countWithoutUsd, sums })
  const byStatus = await ask({ groupBy: ['status'], sums: ['AMOUNTS'] })
  expect(byStatus.groups.find(({ status }) => status === 'FAILED')).toEqual({
    status: 'FAILED',
    count: failed.length,
    amountInUsd: '0',
    countWithoutUsd: 0,
    sums: [],
    rest: [],
  })
})

test('gas is summed once for each transaction, whatever the filter and the groups', async () => {
  const batch = { id: 16, name: 'batch' }
  const [row] = generatePayments(batch.id, 1, 16)
  const { payment } = row as StoredPayment
  const of = (n: number, more: Partial<Payment>): StoredPayment => {
    const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
    const gas = { amount: '0.001', currency: 'ETH-BASE', amountInUsd: '3' } as const
    const common = {
      id,
      txHash: hash(1),
      network: 'BASE',
      eventIndex: n,
      status: 'CONFIRMED',
      gas,
      refunds: [],
    } as const
    return { accountId: batch.id, final: true, payment: { ...payment, ...common, ...more } }
  }
  const reference = 'INV-1'
  await insertPayments(database.knex, [
    of(0, { status: 'FAILED' }),
    of(1, { gas: undefined }),
    of(2, { reference: 'INV-2' }),
    of(3, { reference, status: 'PENDING' }),
    of(4, { reference }),
    // others of unknown event; another chain's transaction of the same hash; a payment without a transaction
    of(5, { reference, eventIndex: undefined }),
    of(6, { reference, network: 'POLYGON', eventIndex: 0 }),
    of(7, { reference, txHash: undefined, eventIndex: undefined }),
    // superseded by the second payment of its transaction
    of(8, { reference: 'INV-3', txHash: hash(2), eventIndex: 0 }),
    of(9, { reference: 'INV-3', txHash: hash(2), eventIndex: 1 }),
  ])
  const superseded = { account_id: batch.id, reference: 'INV-3', event_index: 0 }
  await database.knex('payments').where(superseded).update({ superseded: true })
  const gasOf = async (input: Partial<SummaryInput>) => {
    const { groups, sums } = await summarize(batch, { groupBy: [], ...input, sums: ['GAS'] })
    return [sums[0]?.amount, sums[0]?.count, ...groups.map((group) => [group.status, group.sums[0]?.count])]
  }
  expect(await gasOf({})).toEqual(['0.004', 4])
  expect(await gasOf({ reference: ['INV-3'] })).toEqual(['0.001', 1])
  expect(await gasOf({ reference: [reference] })).toEqual(['0.003', 3])
  expect(await gasOf({ destinationNetwork: ['BASE'], reference: [reference, 'INV-2'], q: reference })).toEqual([
    '0.002',
    2,
  ])
  expect(await gasOf({ reference: [reference], groupBy: ['status'] })).toEqual([
    '0.003',
    3,
    ['PENDING', 1],
    ['CONFIRMED', 2],
  ])
  expect(await gasOf({ reference: ['INV-2'] })).toEqual(['0.001', 1])
})

test('what was taken in a currency on a network in a month is asked for in one call, net of refunds', async () => {
  const shop = { id: 17, name: 'shop' }
  const [row] = generatePayments(shop.id, 1, 17)
  const { payment } = row as StoredPayment
  const of = (n: number, amount: DecimalString, more: Partial<Payment>): StoredPayment => {
    const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
    const timestamp = new Date('2026-10-15T00:00:00Z')
    const common = {
      currency: 'USDC-BASE',
      network: 'BASE',
      sourceNetwork: 'BASE',
      status: 'CONFIRMED',
      refunds: [],
    } as const
    return {
      accountId: shop.id,
      final: true,
      payment: { ...payment, id, amount, eventIndex: n, timestamp, ...common, ...more },
    }
  }
  const back = (amount: DecimalString, timestamp: string) => ({
    amount,
    currency: 'USDC-BASE',
    network: 'BASE',
    txHash: hash(9),
    timestamp,
  })
  await insertPayments(database.knex, [
    of(0, '100', { timestamp: new Date('2026-09-30T22:00:00Z') }),
    of(1, '40', {
      refunds: [back('10', '2026-10-20T00:00:00Z'), back('5', '2026-12-01T00:00:00Z')],
      timestamp: new Date('2026-10-31T22:59:59Z'),
    }),
    of(2, '7', { status: 'REFUNDED', refunds: [back('7', '2026-10-16T00:00:00Z')] }),
    of(3, '1000', { status: 'FAILED' }),
    // paid on Base, received elsewhere; received on Base, paid elsewhere
    of(4, '9', { network: 'POLYGON', currency: 'USDC-POLYGON' }),
    of(5, '3', { sourceNetwork: 'POLYGON' }),
    // in November, and of another month in UTC
    of(6, '50', { timestamp: new Date('2026-10-31T23:00:00Z') }),
  ])
  const asked = { currency: ['USDC'], fromDate: '2026-10-01', toDate: '2026-10-31', timeZone: 'Europe/Zurich' }
  const amountsOf = async (input: Partial<SummaryInput>) => {
    const { sums } = await summarize(shop, { groupBy: [], ...asked, ...input, sums: ['AMOUNTS', 'REFUNDS', 'NET'] })
    return sums.map(({ measure, amount, count }) => [measure, amount, count])
  }
  expect(await amountsOf({ destinationNetwork: ['base'] })).toEqual([
    ['AMOUNTS', '150', 4],
    ['REFUNDS', '22', 3],
    ['NET', '128', 4],
  ])
  expect(await amountsOf({ sourceNetwork: ['base'], destinationNetwork: ['POLYGON'] })).toEqual([
    ['AMOUNTS', '9', 1],
    ['NET', '9', 1],
  ])
  expect((await amountsOf({ network: ['base'] }))[0]).toEqual(['AMOUNTS', '159', 5])
})

describe('days', () => {
  const changing = { id: 5, name: 'changing' }
  const at = async (times: readonly string[], accountId: number) => {
    const [row] = generatePayments(accountId, 1, 1)
    const { payment } = row as StoredPayment
    const stored = times.map((time, n): StoredPayment => {
      const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
      return { accountId, final: true, payment: { ...payment, id, eventIndex: n, timestamp: new Date(time) } }
    })
    await insertPayments(database.knex, stored)
  }
  const countsOf = ({ groups }: PaymentSummary, name: 'day' | 'week' | 'month') =>
    groups.map((group) => `${group[name]}: ${group.count}`)

  test('have 23 and 25 hours where daylight saving time begins and ends', async () => {
    // in Zurich clocks go from 2 to 3 on 29 March 2026, and from 3 to 2 on 25 October
    const hours = (from: string, count: number) =>
      Array.from({ length: count }, (_, n) => new Date(Date.parse(from) + n * 3_600_000).toISOString())
    await at([...hours('2026-03-28T22:30:00Z', 26), ...hours('2026-10-24T21:30:00Z', 28)], changing.id)
    const summary = await summarize(changing, { groupBy: ['day'], timeZone: 'Europe/Zurich' })
    expect(countsOf(summary, 'day')).toEqual([
      '2026-03-28: 1',
      '2026-03-29: 23',
      '2026-03-30: 2',
      '2026-10-24: 1',
      '2026-10-25: 25',
      '2026-10-26: 2',
    ])
  })

  test('begin at 1:00 where a zone skips midnight, and are missing where it skips a day', async () => {
    // in Cairo clocks go from 0 to 1 on 28 April 2023; Apia went from 29 to 31 December 2011
    const [cairo, apia] = [
      { id: 7, name: 'cairo' },
      { id: 8, name: 'apia' },
    ]
    await at(['2023-04-27T21:59:59Z', '2023-04-27T22:00:00Z', '2023-04-28T20:59:59Z', '2023-04-28T21:00:00Z'], cairo.id)
    await at(['2011-12-30T09:59:59Z', '2011-12-30T10:00:00Z', '2011-12-31T10:00:00Z'], apia.id)
    const daysOf = async (of: typeof cairo, timeZone: string) =>
      countsOf(await summarize(of, { groupBy: ['day'], timeZone }), 'day')
    expect(await daysOf(cairo, 'Africa/Cairo')).toEqual(['2023-04-27: 1', '2023-04-28: 2', '2023-04-29: 1'])
    expect(await daysOf(apia, 'Pacific/Apia')).toEqual(['2011-12-29: 1', '2011-12-31: 1', '2012-01-01: 1'])
  })

  test('begin at the first of two midnights', async () => {
    // clocks go back in Havana from 1 to 0 on 2 November 2025, in St. John's from 0:01 to 23:01 of the day before on 2 November 2008
    const [havana, stJohns] = [
      { id: 9, name: 'havana' },
      { id: 10, name: 'st-johns' },
    ]
    await at(
      ['2025-11-02T03:59:59Z', '2025-11-02T04:00:00Z', '2025-11-02T05:00:00Z', '2025-11-03T05:00:00Z'],
      havana.id,
    )
    await at(['2008-11-02T02:29:59Z', '2008-11-02T03:29:59Z', '2008-11-02T03:30:00Z'], stJohns.id)
    const daysOf = async (of: typeof havana, timeZone: string) =>
      countsOf(await summarize(of, { groupBy: ['day'], timeZone }), 'day')
    expect(await daysOf(havana, 'America/Havana')).toEqual(['2025-11-01: 1', '2025-11-02: 2', '2025-11-03: 1'])
    // the hour that is shown again belongs to the day that has begun
    expect(await daysOf(stJohns, 'America/St_Johns')).toEqual(['2008-11-01: 1', '2008-11-02: 2'])
  })

  test('belong to the weeks of ISO 8601', async () => {
    const weeks = { id: 6, name: 'weeks' }
    await at(['2024-12-29T12:00:00Z', '2024-12-30T12:00:00Z', '2027-01-03T12:00:00Z', '2027-01-04T12:00:00Z'], weeks.id)
    const summary = await summarize(weeks, { groupBy: ['week'] })
    expect(countsOf(summary, 'week')).toEqual(['2024-W52: 1', '2025-W01: 1', '2026-W53: 1', '2027-W01: 1'])
  })

  test('have the same form and stay in order in the earliest and latest years', async () => {
    const [beginning, end, both] = [
      { id: 11, name: 'beginning' },
      { id: 12, name: 'end' },
      { id: 13, name: 'both' },
    ]
    const [first, last] = [
      ['0001-01-01T00:00:00Z', '0009-12-31T00:00:00Z'],
      ['9999-12-31T00:00:00Z', '9999-12-31T23:59:59Z'],
    ]
    await at(first, beginning.id)
    await at(last, end.id)
    await at([...first, '2026-03-29T22:00:00Z', ...last], both.id)
    const of = async (account: typeof end, name: 'day' | 'week' | 'month', timeZone: string) =>
      countsOf(await summarize(account, { groupBy: [name], timeZone }), name)
    for (const [name, timeZone, ofFirst, ofMiddle, ofLast] of [
      ['day', 'Etc/GMT+1', ['0000-12-31: 1', '0009-12-30: 1'], ['2026-03-29: 1'], ['9999-12-30: 1', '9999-12-31: 1']],
      [
        'day',
        'Etc/GMT-2',
        ['0001-01-01: 1', '0009-12-31: 1'],
        ['2026-03-30: 1'],
        ['9999-12-31: 1', '+010000-01-01: 1'],
      ],
      ['week', 'Etc/GMT-2', ['0001-W01: 1', '0009-W53: 1'], ['2026-W14: 1'], ['9999-W52: 2']],
      ['month', 'Etc/GMT-2', ['0001-01: 1', '0009-12: 1'], ['2026-03: 1'], ['9999-12: 1', '+010000-01: 1']],
    ] as const) {
      expect(await of(beginning, name, timeZone)).toEqual(ofFirst)
      expect(await of(end, name, timeZone)).toEqual(ofLast)
      expect(await of(both, name, timeZone)).toEqual([...ofFirst, ...ofMiddle, ...ofLast])
    }
  })
})

test('days over five years are those that the runtime shows', async () => {
  const years = { id: 14, name: 'years' }
  const random = seededRandom(14)
  const [row] = generatePayments(years.id, 1, 1)
  // At the hours and half hours where days begin in one zone or another, and a second before.
  const times = Array.from({ length: 600 }, () => {
    const halfHour = Date.UTC(2022, 0, 1) + Math.floor(random() * 5 * 365 * 48) * 1_800_000
    return halfHour - (random() < 0.5 ? 1_000 : 0)
  })
  const stored = times.map((ms, n): StoredPayment => {
    const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
    const { payment } = row as StoredPayment
    return { accountId: years.id, final: true, payment: { ...payment, id, eventIndex: n, timestamp: new Date(ms) } }
  })
  await insertPayments(database.knex, stored)
  const zones = ['UTC', 'Asia/Kolkata', 'Australia/Lord_Howe', 'Africa/Cairo', 'America/Havana', 'Europe/Zurich']
  // here PostgreSQL's data is older
  for (const timeZone of [...zones, 'Africa/Casablanca', 'Africa/El_Aaiun', 'America/Edmonton']) {
    const { groups } = await summarize(years, { groupBy: ['day'], timeZone })
    const shown = Map.groupBy(times, (ms) => isoDate(new Date(ms), timeZone))
    const counts = Object.fromEntries([...shown].map(([day, of]) => [day, of.length]))
    expect({ timeZone, ...Object.fromEntries(groups.map(({ day, count }) => [day, count])) }).toEqual({
      timeZone,
      ...counts,
    })
  }
})

test('a date is the same day as a filter and as a group', async () => {
  const year = { id: 14, name: 'years' }
  for (const timeZone of ['Africa/Casablanca', 'America/Edmonton', 'Asia/Kolkata', 'Africa/Cairo', 'Pacific/Apia']) {
    const { groups } = await summarize(year, { groupBy: ['day'], timeZone })
    for (const { day, count } of groups.slice(0, 20)) {
      const ofDay = await summarize(year, { groupBy: [], timeZone, fromDate: day, toDate: day })
      expect({ timeZone, day, count: ofDay.count }).toEqual({ timeZone, day, count })
    }
  }
})

test('payments that come while summaries are read are in their periods', async () => {
  const growing = { id: 15, name: 'growing' }
  const [row] = generatePayments(growing.id, 1, 15)
  const storeOn = (day: number) => {
    const id = `00000000-0000-4000-8000-${String(Math.abs(day)).padStart(12, '0')}`
    const timestamp = new Date(Date.UTC(2026, 0, day, 12))
    const payment = { ...(row as StoredPayment).payment, id, eventIndex: Math.abs(day), timestamp }
    return insertPayments(database.knex, [{ accountId: growing.id, final: true, payment }])
  }
  await storeOn(1)
  const storing = (async () => {
    for (let day = 2; day <= 80; day++) await storeOn(day % 2 === 0 ? day : -day)
  })()
  for (let time = 0; time < 60; time++) {
    const { groups } = await summarize(growing, { groupBy: ['day', 'month'], timeZone: 'Europe/Zurich' })
    expect(groups.filter(({ day, month }) => day === undefined || !day.startsWith(month ?? '-'))).toEqual([])
  }
  await storing
})

test.each<[Partial<SummaryInput>, string, string | undefined]>([
  [{ groupBy: ['day', 'week', 'month'] }, 'TOO_MANY_VALUES', 'groupBy'],
  [{ groupBy: ['day', 'day'] }, 'INVALID_FIELD', 'groupBy'],
  [{ groupBy: ['invoiceCurrency', 'invoiceCurrency'] }, 'INVALID_FIELD', 'groupBy'],
  [{ groupBy: ['metadata'], metadataKey: undefined }, 'MISSING_FIELD', 'metadataKey'],
  [{ groupBy: ['metadata'], metadataKey: '' }, 'INVALID_METADATA', 'metadataKey'],
  [{ groupBy: ['metadata'], metadataKey: 'a key' }, 'INVALID_METADATA', 'metadataKey'],
  [{ groupBy: ['day'], metadataKey: 'order' }, 'INVALID_FIELD', 'metadataKey'],
  [{ sums: ['GAS', 'GAS'] }, 'INVALID_FIELD', 'sums'],
  [{ timeZone: 'Europe/Zurick' }, 'UNKNOWN_TIME_ZONE', 'timeZone'],
  [{ timeZone: '+01:00' }, 'UNKNOWN_TIME_ZONE', 'timeZone'],
  [{ timeZone: '' }, 'UNKNOWN_TIME_ZONE', 'timeZone'],
  [{ top: 101 }, 'INVALID_FIELD', 'top'],
  [{ top: -1 }, 'INVALID_FIELD', 'top'],
  [{ status: ['PENDING'], network: ['etherium'] }, 'UNKNOWN_NETWORK', 'network'],
])('%j is refused', async (input, reason, field) => {
  expect(await faultOf(ask(input))).toMatchObject({ reason, field })
})

test('a misspelt time zone is refused with the nearest name', async () => {
  expect((await faultOf(ask({ timeZone: 'Europe/Zurick' }))).message).toContain('did you mean "Europe/Zurich"?')
})
