import { afterEach, expect, it, vi } from 'vitest'
import { createPageOrigins } from './page-origins.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const SHOP = 'https://shop.example'

function originsOver(read: () => Promise<readonly string[]>) {
  const clock = { nowMs: 0 }
  const origins = createPageOrigins({ read, always: [], monotonicMs: () => clock.nowMs, logger: silent })
  return { origins, clock }
}

afterEach(() => void vi.useRealTimers())

it('waits a second at most for a database that does not answer, and not at all for a known page', async () => {
  let answer: Promise<readonly string[]> = Promise.resolve([SHOP])
  const { origins, clock } = originsOver(() => answer)
  expect(await origins.lookup(SHOP)).toBe(true)
  answer = new Promise(() => {})
  clock.nowMs += 60_000
  vi.useFakeTimers()
  expect(await origins.lookup(SHOP)).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
  const unknown = origins.lookup('https://other.example')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await unknown).toBe(false)
})

it('keeps what it knew when the database fails, and asks it once a second at most', async () => {
  const read = vi.fn<() => Promise<readonly string[]>>(async () => [SHOP])
  const { origins, clock } = originsOver(read)
  expect(await origins.lookup(SHOP)).toBe(true)
  read.mockRejectedValue(new Error('no database'))
  clock.nowMs += 6_000
  for (let n = 0; n < 3; n++) await origins.lookup(`https://shop${n}.example`)
  expect([await origins.lookup(SHOP), read.mock.calls.length]).toEqual([true, 2])
})
