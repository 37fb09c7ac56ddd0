import { describe, expect, it } from 'vitest'
import { DEMO_CHAINS } from '../network/chain-specs.ts'
import { earlierLines, planEarlierPayments } from './earlier-lines.ts'
import { createRandom } from './random.ts'
import { paymentsAnHour, waitSec } from './trade.ts'

const DAY_SEC = 86_400
/** A Wednesday, 12:00 UTC. */
const MADE_AT_SEC = Date.UTC(2026, 4, 20, 12) / 1_000
const SPAN = { toSec: MADE_AT_SEC - DAY_SEC, days: 120, madeAtSec: MADE_AT_SEC }
const PEOPLE = {
  payees: [`0x${'1a'.repeat(20)}`, `0x${'1b'.repeat(20)}`],
  feeCollector: `0x${'1c'.repeat(20)}`,
} as const
const CHAIN = { people: PEOPLE, beginsSec: SPAN.toSec, madeAtSec: MADE_AT_SEC }
const all = DEMO_CHAINS.flatMap((spec) => [...planEarlierPayments(spec, PEOPLE, SPAN)])

const dayOf = (date: Date) => date.toISOString().slice(0, 10)
function sumBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return counts
}
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

describe('earlier payments', () => {
  const linesOf = (days: number) =>
    Buffer.concat([
      ...earlierLines(
        DEMO_CHAINS.map((spec) => ({ spec, ...CHAIN })),
        days,
      ),
    ]).toString()

  it('are the same at every start, latest first, each with an id of its own', () => {
    const lines = linesOf(20)
    expect(linesOf(20) === lines).toBe(true)
    const payments = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; timestamp: string })
    const times = payments.map(({ timestamp }) => Date.parse(timestamp))
    expect(times).toEqual(times.toSorted((a, b) => b - a))
    expect(new Set(payments.map(({ id }) => id)).size).toBe(times.length)
  })

  it('stay as they are when more days are asked for', () => {
    expect(linesOf(40).startsWith(linesOf(20))).toBe(true)
  })

  it('lie in their days', () => {
    for (const { timestamp, updatedAt } of all) {
      expect(timestamp.getTime()).toBeGreaterThanOrEqual((SPAN.toSec - SPAN.days * DAY_SEC) * 1_000)
      expect(updatedAt.getTime()).toBeLessThanOrEqual(SPAN.toSec * 1_000)
    }
  })

  it('grow, and are fewer on Sundays and at night', () => {
    const days = [...sumBy(all, ({ timestamp }) => dayOf(timestamp))].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const counts = days.slice(1, -1).map(([, count]) => count)
    expect(mean(counts.slice(-28))).toBeGreaterThan(1.1 * mean(counts.slice(0, 28)))
    const of = (day: number) =>
      mean(days.slice(1, -1).flatMap(([date, n]) => (new Date(date).getUTCDay() === day ? n : [])))
    expect(of(5)).toBeGreaterThan(1.5 * of(0))
    const hours = sumBy(all, ({ timestamp }) => String(timestamp.getUTCHours()))
    expect(hours.get('11')).toBeGreaterThan(4 * (hours.get('3') ?? 0))
  })

  it('go on at the rate at which the live payer pays', () => {
    const lastDay = all.filter(({ timestamp }) => timestamp.getTime() > (SPAN.toSec - DAY_SEC) * 1_000).length
    const { next } = createRandom(1)
    let [timeSec, live] = [MADE_AT_SEC, 0]
    for (; timeSec < MADE_AT_SEC + DAY_SEC; live++)
      timeSec += waitSec(timeSec, { madeAtSec: MADE_AT_SEC, share: 1, next })
    expect(live / lastDay).toBeGreaterThan(0.75)
    expect(live / lastDay).toBeLessThan(1.33)
    expect(paymentsAnHour(MADE_AT_SEC, MADE_AT_SEC)).toBeGreaterThan(10)
  })

  it('have failures, refunds, conversions, bridges and subscriptions, and several hundred customers', () => {
    const statuses = sumBy(all, ({ status }) => status)
    expect([...statuses.keys()].toSorted()).toEqual(['CONFIRMED', 'FAILED', 'PARTIAL', 'REFUNDED'])
    expect(new Set(all.map(({ type }) => type)).size).toBe(4)
    expect(new Set(all.map(({ payer }) => payer)).size).toBeGreaterThan(200)
    expect(all.some(({ network, sourceNetwork }) => network !== sourceNetwork)).toBe(true)
    expect(all.every(({ refunds, status }) => refunds.length > 0 === (status === 'REFUNDED'))).toBe(true)
  })
})
