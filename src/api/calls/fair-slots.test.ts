import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createFairSlots, type FairSlotsOptions } from './take-slots.ts'

const NEVER = new AbortController().signal

/** Slots, and the list of those who have begun. */
function open(options: Partial<FairSlotsOptions>) {
  const take = createFairSlots({ places: 4, placesEach: 3, ...options })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const ask = async (name: string, { signal = NEVER, withinMs = 1_000 } = {}) => {
    const end = await take(name.charAt(0), { signal, untilMs: performance.now() + withinMs })
    begun.push(name)
    ends.set(name, end)
  }
  const askAll = (names: string) => names.split(' ').map((name) => ask(name))
  const end = async (name: string) => {
    ends.get(name)?.()
    await vi.advanceTimersByTimeAsync(0)
  }
  return { begun, ask, askAll, end }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('slots', () => {
  it('come at once to a user alone, up to the part of one user', async () => {
    const { begun, askAll } = open({})
    void askAll('a1 a2 a3 a4')
    await vi.advanceTimersByTimeAsync(0)
    expect(begun).toEqual(['a1', 'a2', 'a3'])
  })

  it('are left for users who come later, without a wait', async () => {
    const { begun, askAll } = open({})
    void askAll('a1 a2 a3 a4 a5 b1')
    await vi.advanceTimersByTimeAsync(0)
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1'])
  })

  it('go to the user who has the fewest, in the order in which its calls came', async () => {
    const { begun, askAll, end } = open({})
    void askAll('a1 a2 a3 a4 a5 b1 b2 b3')
    await vi.advanceTimersByTimeAsync(0)
    await end('a1')
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'b2'])
    await end('a2')
    expect(begun.slice(5)).toEqual(['a4'])
    await end('b1')
    await end('a3')
    expect(begun.slice(6)).toEqual(['b3', 'a5'])
  })

  it('go round among users who have equally many', async () => {
    const { begun, askAll, end } = open({ places: 1, placesEach: 1 })
    void askAll('a1 a2 a3 b1 b2 c1')
    for (const name of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']) {
      await vi.advanceTimersByTimeAsync(0)
      expect(begun.at(-1)).toBe(name)
      await end(name)
    }
  })

  it('are not given to a call that was aborted', async () => {
    const { begun, ask, end } = open({ places: 1, placesEach: 1 })
    const left = new AbortController()
    void ask('a1')
    const gone = ask('a2', { signal: left.signal }).catch((error: unknown) => error)
    void ask('a3')
    left.abort(new Error('hung up'))
    expect(await gone).toEqual(new Error('hung up'))
    await end('a1')
    expect(begun).toEqual(['a1', 'a3'])
    await expect(ask('a4', { signal: left.signal })).rejects.toThrow('hung up')
  })

  it('are refused when the time to wait is over', async () => {
    const { begun, ask, end } = open({ places: 1, placesEach: 1 })
    void ask('a1')
    const late = ask('a2', { withinMs: 300 }).catch((error: unknown) => error)
    void ask('a3')
    await vi.advanceTimersByTimeAsync(300)
    expect(await late).toMatchObject({ reason: 'TOO_MANY_AT_ONCE', metadata: { limit: '1', retryAfterSeconds: '1' } })
    await end('a1')
    expect(begun).toEqual(['a1', 'a3'])
    expect(vi.getTimerCount()).toBe(0)
  })
})
