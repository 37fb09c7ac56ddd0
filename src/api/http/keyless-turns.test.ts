import { setImmediate as nextLook } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createKeylessTurns } from './keyless-turns.ts'

it('begins four at a time, in their order, and all in the end', async () => {
  const turn = createKeylessTurns()
  const begun: number[] = []
  for (let n = 1; n <= 10; n++) void turn().then(() => begun.push(n))
  const seen: number[] = []
  while (begun.length < 10) {
    await nextLook()
    seen.push(begun.length)
  }
  expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(seen).toEqual([4, 8, 10])
})

it('refuses what would wait behind a thousand others, and takes more once they have begun', async () => {
  const turn = createKeylessTurns()
  const waiting = Array.from({ length: 1_000 }, turn)
  await expect(turn()).rejects.toMatchObject({ reason: 'OVERLOADED' })
  await Promise.all(waiting)
  await turn()
})
