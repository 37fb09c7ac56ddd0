import { describe, expect, it } from 'vitest'
import { DEMO_CHAINS } from '../network/chain-specs.ts'
import type { DemoPeople } from '../network/people.ts'
import { referenceOf } from './demo-requests.ts'
import { PAYMENTS_PER_CHAIN, planHistory } from './history.ts'

const address = (place: number): `0x${string}` => `0x${place.toString(16).padStart(40, '0')}`

const PEOPLE: DemoPeople = {
  deployer: address(1),
  spoofer: address(4),
  feeCollector: address(5),
  relayer: address(11),
  screened: address(12),
  payers: [address(7), address(8)],
  payees: [address(9), address(10)],
  wallets: [],
}
const DAY_SEC = 86_400
const MADE_AT_SEC = 1_780_000_000
const spanTo = (madeAtSec: number) => ({ fromSec: madeAtSec - 6 * DAY_SEC, toSec: madeAtSec, madeAtSec })
const SPAN = spanTo(MADE_AT_SEC)

describe.each(DEMO_CHAINS)('the history of $name', (spec) => {
  const history = planHistory(spec, PEOPLE, SPAN)
  const payments = history.flatMap((entry) => entry.payments)

  it('has the same requests and amounts whenever it is planned', () => {
    const later = planHistory(spec, PEOPLE, spanTo(MADE_AT_SEC + 999_999))
    const withoutTimes = (entries: typeof history): unknown =>
      entries.map(({ terms, payments: paid }) => [{ ...terms, createdAt: undefined }, paid.map(({ amount }) => amount)])
    expect(withoutTimes(later)).toEqual(withoutTimes(history))
  })

  it('lies within its days and spreads over them', () => {
    const times = payments.map((payment) => payment.atSec)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(SPAN.fromSec)
    expect(Math.max(...times)).toBeLessThan(SPAN.toSec)
    const hours = new Set(times.map((time) => Math.floor(time / 3_600)))
    expect(hours.size).toBeGreaterThan(10)
  })

  it('has tokens, coins and conversions of both, with and without a fee', () => {
    expect(payments.length).toBeGreaterThanOrEqual(PAYMENTS_PER_CHAIN)
    const inCoins = (symbol: string): boolean => symbol === spec.native.symbol
    const kinds = new Set(payments.map(({ symbol, conversion }) => `${inCoins(symbol)} ${conversion}`))
    expect(kinds).toEqual(new Set(['true true', 'true false', 'false true', 'false false']))
    expect(payments.some((payment) => payment.feeAmount > 0n)).toBe(true)
    expect(payments.some((payment) => payment.feeAmount === 0n)).toBe(true)
    expect(new Set(payments.map((payment) => payment.payer)).size).toBe(PEOPLE.payers.length)
  })

  it('gives every request a reference of its own', () => {
    expect(new Set(history.map((entry) => referenceOf(entry.terms))).size).toBe(history.length)
  })
})
