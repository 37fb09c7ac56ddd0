import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Answers, Call, type IncomingCall } from './call.ts'
import { keepDeadline } from './keep-deadline.ts'
import type { ServedMethod } from './served-method.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('frees the timers and listeners of a stream that was abandoned before anybody began to read it', async () => {
  const { signal: stopping } = new AbortController()
  let hangUp = () => {}
  const incoming = {
    readTimeoutMs: () => undefined,
    onHangUp: (listener: () => void) => {
      hangUp = listener
    },
    stopping,
  }
  const method = { desc: { methodKind: 'server_streaming' } } as ServedMethod
  const call = new Call(method.desc, incoming as Partial<IncomingCall> as IncomingCall)
  async function* work(): Answers {}
  const limits = {
    maxCallMs: 1,
    maxStreamMs: 3_600_000,
    maxStallMs: 1,
    minRowsPerSecond: 1,
    cutting: new AbortController().signal,
  }
  await keepDeadline(limits)(method, async () => work())(call)

  vi.advanceTimersByTime(1_000)
  expect([vi.getTimerCount(), getEventListeners(stopping, 'abort').length]).toEqual([1, 1])
  hangUp()
  expect([vi.getTimerCount(), getEventListeners(stopping, 'abort').length]).toEqual([0, 0])
  expect(call.signal.reason).toMatchObject({ reason: 'CALL_CANCELLED' })
})
