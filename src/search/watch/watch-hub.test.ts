import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createWatchHub } from './watch-hub.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const never = new AbortController().signal

/** A hub over a log that tests write to, and the accounts of each poll. */
function hubOver(last: Map<number, bigint>) {
  const asked: (readonly number[])[] = []
  const readLastChanges = async (accountIds: readonly number[]) => {
    asked.push(accountIds)
    return last
  }
  return { hub: createWatchHub({ readLastChanges, logger: silent }), asked }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('one poll serves all who wait, naming each account once, and none runs while nobody waits', async () => {
  const last = new Map([[1, 5n]])
  const { hub, asked } = hubOver(last)
  const waiting = [1, 1, 2].map((accountId) => hub.waitForChange(accountId, accountId === 1 ? 5n : 0n, 60_000, never))
  await vi.advanceTimersByTimeAsync(750)
  expect(asked).toEqual([
    [1, 2],
    [1, 2],
    [1, 2],
  ])
  last.set(1, 6n).set(2, 1n)
  await vi.advanceTimersByTimeAsync(250)
  expect(await Promise.all(waiting)).toEqual([true, true, true])
  expect(vi.getTimerCount()).toBe(0)
})

test('a wait ends at its timeout, when its signal fires, and at once where the last change differs already', async () => {
  const { hub } = hubOver(new Map([[1, 5n]]))
  const [same, other] = [hub.waitForChange(1, 5n, 400, never), hub.waitForChange(1, 6n, 60_000, never)]
  await vi.advanceTimersByTimeAsync(500)
  expect([await same, await other]).toEqual([false, true])
  const aborter = new AbortController()
  const aborted = hub.waitForChange(1, 5n, 60_000, aborter.signal)
  aborter.abort(new Error('enough'))
  await expect(aborted).rejects.toThrow('enough')
  await expect(hub.waitForChange(1, 5n, 60_000, aborter.signal)).rejects.toThrow('enough')
})

test('polls that fail are repeated; waiters get the error when they fail for long', async () => {
  let fails = 3
  const readLastChanges = async () => {
    if (fails-- > 0) throw new Error('no database')
    return new Map([[1, 1n]])
  }
  const hub = createWatchHub({ readLastChanges, logger: silent })
  const found = hub.waitForChange(1, 0n, 60_000, never)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await found).toBe(true)
  fails = Number.POSITIVE_INFINITY
  const failed = hub.waitForChange(1, 0n, 60_000, never)
  failed.catch(() => {})
  await vi.advanceTimersByTimeAsync(15_000)
  expect(vi.getTimerCount()).toBe(2)
  await vi.advanceTimersByTimeAsync(500)
  await expect(failed).rejects.toThrow('no database')
})

test('an account has a limited number of places, and one that is left can be taken again', () => {
  const { hub } = hubOver(new Map())
  const first = hub.enter(1)
  for (let place = 2; place <= 100; place++) hub.enter(1)
  expect(() => hub.enter(1)).toThrow(expect.objectContaining({ reason: 'TOO_MANY_STREAMS' }))
  hub.enter(2)
  first[Symbol.dispose]()
  hub.enter(1)
})
