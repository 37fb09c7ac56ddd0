import { beforeEach, describe, expect, it } from 'vitest'
import { waybillError } from '../../errors/waybill-error.ts'
import { type AbuseCounter, costOfRefusal, createAbuseCounter } from './abuse.ts'

const limits = { probation: { burst: 10, perSecond: 1 }, bar: { burst: 100, perSecond: 10 }, maxAddresses: 3 }
const there = '192.0.2.1'

let nowMs: number
let barred: string[]
let abuse: AbuseCounter
beforeEach(() => {
  nowMs = 0
  barred = []
  abuse = createAbuseCounter({
    limits,
    isManyClients: (peer) => peer === '192.0.2.99',
    nowMs: () => nowMs,
    onBarred: (address) => barred.push(address),
  })
})

const standing = (peer: string) => {
  if (abuse.isBarred(peer)) return 'barred'
  return abuse.isOnProbation(peer) ? 'on probation' : 'free'
}

describe('an address', () => {
  it('is on probation beyond one allowance, barred beyond the other, and reported once', () => {
    const standings = [10, 1, 89, 1, 50].map((units) => {
      abuse.charge(there, units)
      return standing(there)
    })
    expect(standings).toEqual(['free', 'on probation', 'on probation', 'barred', 'barred'])
    expect(barred).toEqual([there])
    expect(standing('192.0.2.2')).toBe('free')
  })

  it('is let in again when the time of its burst has passed', () => {
    abuse.charge(there, 1_000_000)
    const standings = [9_900, 10_000, 20_000].map((atMs) => {
      nowMs = atMs
      return standing(there)
    })
    // The debt of probation is at most its burst: 10 units, for 10 seconds.
    expect(standings).toEqual(['barred', 'free', 'free'])
  })

  it('stays barred while it goes on', () => {
    abuse.charge(there, 101)
    const standings = new Set<string>()
    for (; nowMs < 60_000; nowMs += 50) {
      abuse.charge(there, 1)
      standings.add(standing(there))
    }
    expect([...standings]).toEqual(['barred'])
  })

  it('that cancels half of its calls is free, however many they are', () => {
    for (let n = 0; n < 10_000; n++) {
      abuse.charge(there, 1)
      abuse.makeUp(there)
    }
    expect(standing(there)).toBe('free')
  })

  it('earns at most its burst by answered calls', () => {
    abuse.charge(there, 1)
    for (let n = 0; n < 1_000; n++) abuse.makeUp(there)
    abuse.charge(there, 11)
    expect(standing(there)).toBe('on probation')
  })

  it('of many clients is not charged', () => {
    abuse.charge('192.0.2.99', 1_000)
    expect(standing('192.0.2.99')).toBe('free')
  })

  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1'])('of this machine, %s, is never barred', (peer) => {
    abuse.charge(peer, 1_000)
    expect([standing(peer), barred]).toEqual(['on probation', []])
  })

  it('of IPv6 shares the account of its /64', () => {
    abuse.charge('2001:db8::1', 101)
    expect([standing('2001:db8::2'), standing('2001:db8:0:1::1'), barred]).toEqual([
      'barred',
      'free',
      ['2001:db8:0:0::/64'],
    ])
  })
})

it('remembers up to the limit the addresses that were charged last', () => {
  for (let n = 0; n < 10_000; n++) {
    abuse.charge(`198.18.${n >> 8}.${n & 255}`, 101)
    abuse.charge(there, 101)
  }
  const last = [9_996, 9_997, 9_998, 9_999].map((n) => standing(`198.18.${n >> 8}.${n & 255}`))
  expect([standing(there), last]).toEqual(['barred', ['free', 'free', 'barred', 'barred']])
})

it('charges nothing for mistakes of a caller with a key, except for what is too large', () => {
  const cost = (error: Parameters<typeof costOfRefusal>[0], isKeyless = false) => costOfRefusal(error, isKeyless)
  const limited = waybillError('RATE_LIMITED', { limit: 1, retryAfterSeconds: 1 })
  expect([cost(limited), cost(waybillError('MISSING_API_KEY', {}), true)]).toEqual([0, 0])
  expect([cost(limited, true), cost(waybillError('BODY_TOO_LARGE', { limit: 1 }))]).toEqual([2, 20])
})

describe('many addresses at once', () => {
  const counterOf = () =>
    createAbuseCounter({
      limits: { ...limits, maxAddresses: 1_000 },
      isManyClients: () => false,
      nowMs: () => nowMs,
      onBarred: (address) => barred.push(address),
    })
  const addressOf = (n: number) => `192.0.2.${n}`

  it('share two bursts, and each has a twentieth of one', () => {
    const many = counterOf()
    for (let n = 1; n <= 10; n++) many.charge(addressOf(n), 20)
    expect(barred).toEqual([])
    many.charge(addressOf(1), 1)
    expect(barred).toEqual([addressOf(1)])
    for (let n = 11; n <= 100; n++) many.charge(addressOf(n), 5)
    expect(many.isBarred(addressOf(100))).toBe(false)
    many.charge(addressOf(100), 1)
    expect(many.isBarred(addressOf(100))).toBe(true)
  })

  it('that have stopped long ago leave the whole burst to others', () => {
    const many = counterOf()
    for (let n = 1; n <= 100; n++) many.charge(addressOf(n), 5)
    nowMs += 20_001
    many.charge(addressOf(200), 100)
    expect(many.isBarred(addressOf(200))).toBe(false)
    many.charge(addressOf(200), 1)
    expect(many.isBarred(addressOf(200))).toBe(true)
  })
})
