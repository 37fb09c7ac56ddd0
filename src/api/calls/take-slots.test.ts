import { expect, it } from 'vitest'
import type { Answers, Call } from './call.ts'
import type { ServedMethod } from './served-method.ts'
import { slotLimitsOf, takeSlots } from './take-slots.ts'

const oneAtATime = { ...slotLimitsOf(1, 8), maxSearchesPerKey: 1 }

function callOf(methodKind: string, signal = new AbortController().signal): Call {
  const caller = { keyId: '1', account: { id: 1 } }
  return { method: { methodKind }, caller, deadlineAtMs: Date.now() + 1_000, signal } as never
}

it('gives a stream a slot while it makes a message, and none while its reader takes it', async () => {
  const takeASlot = takeSlots(oneAtATime)
  const method = { slot: 'page' } as ServedMethod
  const working = Promise.withResolvers<void>()
  async function* work(): AsyncGenerator {
    yield 'first'
    await working.promise
    yield 'second'
  }
  const search = () => takeASlot(method, async () => ({}))(callOf('unary'))
  const stream = (await takeASlot(method, async () => work() as Answers)(callOf('server_streaming'))) as Answers
  const messages = stream[Symbol.asyncIterator]()

  expect(await messages.next()).toEqual({ done: false, value: 'first' })
  expect(await search()).toEqual({})
  const order: string[] = []
  const second = messages.next().then(() => order.push('second message'))
  const found = search().then(() => order.push('search'))
  await new Promise(setImmediate)
  working.resolve()
  await Promise.all([second, found])
  expect(order).toEqual(['second message', 'search'])
  expect(await messages.next()).toEqual({ done: true, value: undefined })
  expect(await search()).toEqual({})
})

it('ends the work of a stream that is abandoned', async () => {
  const ended = Promise.withResolvers<string>()
  async function* work(): AsyncGenerator<object> {
    try {
      for (;;) yield {}
    } finally {
      ended.resolve('ended')
    }
  }
  const take = takeSlots(oneAtATime)({ slot: 'page' } as ServedMethod, async () => work())
  for await (const _ of (await take(callOf('server_streaming'))) as Answers) break
  expect(await ended.promise).toBe('ended')
})

it('adds nothing to methods without a kind of slot', () => {
  const next = async () => ({})
  expect(takeSlots(oneAtATime)({} as ServedMethod, next)).toBe(next)
})
