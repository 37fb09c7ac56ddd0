import { expect, test } from 'vitest'
import { createShareRead } from './watch-payments.ts'

const never = new AbortController().signal

/** A read that the test ends. */
function heldReading() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const seen: AbortSignal[] = []
  const read = (signal: AbortSignal) => {
    seen.push(signal)
    signal.addEventListener('abort', () => reject(new Error('cancelled')))
    return promise
  }
  return { read, resolve, reject, seen }
}

test('callers at the same time share one read; a later caller starts another', async () => {
  const shareRead = createShareRead<string>()
  const { read, resolve, seen } = heldReading()
  const both = [shareRead('a', read, never), shareRead('a', read, never)]
  resolve('done')
  expect(await Promise.all(both)).toEqual(['done', 'done'])
  expect(seen).toHaveLength(1)
  expect(await shareRead('a', async () => 'again', never)).toBe('again')
})

test('a caller that leaves does not cancel the read for the others; the last one does', async () => {
  const shareRead = createShareRead<string>()
  const { read, seen } = heldReading()
  const aborters = [new AbortController(), new AbortController()]
  const results = aborters.map(({ signal }) => shareRead('a', read, signal))
  aborters[0]?.abort(new Error('first'))
  await expect(results[0]).rejects.toThrow('first')
  expect(seen[0]?.aborted).toBe(false)
  aborters[1]?.abort(new Error('second'))
  await expect(results[1]).rejects.toThrow('second')
  expect(seen[0]?.aborted).toBe(true)
  // its slot is free again
  expect(await shareRead('b', async () => 'b', never)).toBe('b')
})

test('no more than three reads run at once, and one that fails frees its slot', async () => {
  const shareRead = createShareRead<string>()
  const { read, reject } = heldReading()
  const first = shareRead('a', read, never)
  const others = ['second', 'third'].map((name) => ({ name, ...heldReading() }))
  const held = others.map((other) => shareRead(other.name, other.read, never))
  let hasBegun = false
  const second = shareRead(
    'b',
    async () => {
      hasBegun = true
      return 'b'
    },
    never,
  )
  await new Promise((resolve) => setImmediate(resolve))
  expect(hasBegun).toBe(false)
  reject(new Error('failed'))
  await expect(first).rejects.toThrow('failed')
  expect(await second).toBe('b')
  for (const { resolve } of others) resolve('done')
  expect(await Promise.all(held)).toEqual(['done', 'done'])
})
