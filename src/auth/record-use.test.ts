import { expect, it } from 'vitest'
import { createRecordUse } from './record-use.ts'

it('writes a key once a minute, several in one statement, and never two statements at once', async () => {
  let nowMs = 0
  const written: { keyIds: readonly string[]; atMs: number; done: PromiseWithResolvers<void> }[] = []
  const recordUse = createRecordUse({
    write: (keyIds, at) => {
      const done = Promise.withResolvers<void>()
      written.push({ keyIds, atMs: at.getTime(), done })
      return done.promise
    },
    now: () => new Date(nowMs),
  })
  for (const keyId of ['a', 'a', 'b', 'c', 'b']) recordUse(keyId)
  expect(written.map(({ keyIds }) => keyIds)).toEqual([['a']])
  // A write that fails is not repeated; the next use is written again.
  written[0]?.done.reject(new Error('gone'))
  await expect.poll(() => written.length).toBe(2)
  expect(written[1]?.keyIds).toEqual(['b', 'c'])
  written[1]?.done.resolve()
  nowMs = 59_999
  recordUse('a')
  nowMs = 60_000
  recordUse('a')
  await expect.poll(() => written.length).toBe(3)
  expect(written[2]).toMatchObject({ keyIds: ['a'], atMs: 60_000 })
})
