import { describe, expect, it } from 'vitest'
import type { LimitState } from './caller.ts'
import { createCountCall, MAX_KEYS } from './limit-calls.ts'
import type { LeaseCalls } from './sql/call-windows-repository.ts'

/** The shared counts of the database, on one clock. */
function shareMinute() {
  let nowMs = 0
  let asked = 0
  const minutes = new Map<string, { minute: number; used: number }>()
  const lease: LeaseCalls = async ({ keyId, limit, wanted }) => {
    asked += 1
    const minute = Math.floor(nowMs / 60_000)
    const before = minutes.get(keyId)
    const used = before?.minute === minute ? before.used : 0
    const granted = Math.min(limit - used, Math.max(wanted, Math.ceil((limit - used) / 10)))
    minutes.set(keyId, { minute, used: used + granted })
    return { granted, remaining: limit - used - granted, leftMs: (minute + 1) * 60_000 - nowMs }
  }
  return {
    lease,
    clock: () => nowMs,
    asked: () => asked,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

const warnings: object[] = []
const ignore = () => {}
const logger = { debug: ignore, info: ignore, warn: (fields: object) => void warnings.push(fields), error: ignore }

/** One process: whether each call got through, and the states that were reported. */
function startProcess(lease: LeaseCalls, monotonicMs: () => number, leaseTimeoutMs = 60_000) {
  const count = createCountCall({ lease, monotonicMs, logger, leaseTimeoutMs })
  const states: (LimitState | undefined)[] = []
  const call = async (keyId: string, limit: number) => {
    try {
      await count(keyId, limit, (state) => states.push(state))
      return 'through'
    } catch (error) {
      return (error as { reason: string }).reason
    }
  }
  const through = async (times: number, keyId: string, limit: number) => {
    const outcomes = await Promise.all(Array.from({ length: times }, () => call(keyId, limit)))
    return outcomes.filter((outcome) => outcome === 'through').length
  }
  return { call, through, last: () => states.at(-1), reported: () => states.length }
}

describe('one process', () => {
  it.each([1, 2, 10, 299, 300, 5000])(
    'lets exactly %i calls a minute through, one by one or at once',
    async (limit) => {
      const shared = shareMinute()
      const { call, through } = startProcess(shared.lease, shared.clock)
      for (let i = 0; i < limit; i++) expect(await call('one', limit)).toBe('through')
      expect(await call('one', limit)).toBe('RATE_LIMITED')
      expect(await through(limit + 50, 'two', limit)).toBe(limit)
    },
  )

  it('reports how many calls are left, and for how long', async () => {
    const shared = shareMinute()
    shared.pass(12_300)
    const { call, last } = startProcess(shared.lease, shared.clock)
    const state = { policy: 'key', limit: 3, resetSeconds: 48 }
    for (const remaining of [2, 1, 0]) {
      await call('one', 3)
      expect(last()).toEqual({ ...state, remaining })
    }
    expect(await call('one', 3)).toBe('RATE_LIMITED')
    expect(last()).toEqual({ ...state, remaining: 0 })
  })

  it('starts again with the next minute, and not earlier', async () => {
    const shared = shareMinute()
    const { call } = startProcess(shared.lease, shared.clock)
    expect([await call('one', 1), await call('one', 1)]).toEqual(['through', 'RATE_LIMITED'])
    shared.pass(59_999)
    expect(await call('one', 1)).toBe('RATE_LIMITED')
    shared.pass(1)
    expect([await call('one', 1), await call('one', 1)]).toEqual(['through', 'RATE_LIMITED'])
  })

  it('neither counts nor reports the calls of a key without limit', async () => {
    const shared = shareMinute()
    const { through, reported } = startProcess(shared.lease, shared.clock)
    expect(await through(1000, 'one', 0)).toBe(1000)
    expect([reported(), shared.asked()]).toEqual([0, 0])
  })

  it('leases 38 times for 300 calls, less than once in 100 for 30,000, and not again once refused', async () => {
    const asked = async (limit: number) => {
      const shared = shareMinute()
      const { call } = startProcess(shared.lease, shared.clock)
      for (let i = 0; i < limit; i++) await call('one', limit)
      const whole = shared.asked()
      await call('one', limit)
      expect(shared.asked()).toBe(whole)
      return whole
    }
    expect(await asked(300)).toBe(38)
    expect(await asked(30_000)).toBeLessThan(30_000 / 100)
  })

  it('evicts keys beyond MAX_KEYS, which the shared count still limits', async () => {
    const shared = shareMinute()
    const { call } = startProcess(shared.lease, shared.clock)
    expect([await call('first', 1), await call('first', 1)]).toEqual(['through', 'RATE_LIMITED'])
    for (let i = 0; i < MAX_KEYS; i++) await call(`key ${i}`, 1)
    const asked = shared.asked()
    expect(await call('first', 1)).toBe('RATE_LIMITED')
    expect(shared.asked()).toBe(asked + 1)
  })
})

describe('several processes', () => {
  it('never let more than the limit through together, and at most a tenth less for each other process', async () => {
    const limit = 300
    for (const others of [1, 2, 4]) {
      const shared = shareMinute()
      const processes = Array.from({ length: others + 1 }, () => startProcess(shared.lease, shared.clock))
      const [first, ...rest] = processes
      // Each of the others takes one call, keeps the rest of its batch, and is not called again.
      for (const { call } of rest) expect(await call('one', limit)).toBe('through')
      const through = others + ((await first?.through(2 * limit, 'one', limit)) ?? 0)
      expect(through).toBeGreaterThanOrEqual(limit - others * (limit / 10))
      expect(through).toBeLessThanOrEqual(limit)
      // The other processes let through the calls that they had leased, and no more.
      const left = await Promise.all(rest.map((each) => each.through(limit, 'one', limit)))
      expect(through + left.reduce((sum, each) => sum + each, 0)).toBe(limit)
    }
  })
})

describe('with a database', () => {
  const never: LeaseCalls = () => new Promise(() => {})
  const broken: LeaseCalls = () => Promise.reject(new Error('gone'))

  it.each([
    ['does not answer', never, 1],
    ['fails', broken, 60_000],
  ])('that %s, each process grants the whole limit by itself', async (_, lease, timeoutMs) => {
    let nowMs = 0
    const [first, second] = [0, 1].map(() => startProcess(lease, () => nowMs, timeoutMs))
    warnings.length = 0
    expect([await first?.through(40, 'one', 10), await second?.through(40, 'one', 10)]).toEqual([10, 10])
    expect(warnings).toHaveLength(2)
    nowMs = 59_999
    expect(await first?.call('one', 10)).toBe('RATE_LIMITED')
    nowMs = 60_000
    expect(await first?.through(40, 'one', 10)).toBe(10)
  })

  it('that is lost in the middle of a minute, a process grants what was left', async () => {
    const shared = shareMinute()
    let isLost = false
    const { through, call } = startProcess((terms) => (isLost ? broken(terms) : shared.lease(terms)), shared.clock)
    expect(await call('one', 100)).toBe('through')
    isLost = true
    expect(await through(200, 'one', 100)).toBe(99)
    isLost = false
    shared.pass(60_000)
    expect(await through(200, 'one', 100)).toBe(100)
  })
})
