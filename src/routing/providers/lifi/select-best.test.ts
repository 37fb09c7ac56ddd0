import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSelection } from './select-best.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const PATIENCE = { patienceMs: 300 }

/** Lets contenders enter one after the other, or withdraw when they are worth nothing. */
async function choose(places: number, worths: readonly (bigint | undefined)[]): Promise<bigint[]> {
  const selection = createSelection({ places, ...PATIENCE })
  const contenders = worths.map(() => selection.expect())
  const chosen = contenders.map((contender, i) => {
    const worth = worths[i]
    if (worth !== undefined) return contender.enter(worth)
    contender.withdraw()
    return Promise.resolve(false)
  })
  const isChosen = await Promise.all(chosen)
  return worths.filter((worth, i) => worth !== undefined && isChosen[i]) as bigint[]
}

it('chooses the best, in whatever order they arrive', async () => {
  const worth = fc.option(fc.bigInt({ min: 0n, max: 20n }), { nil: undefined })
  await fc.assert(
    fc.asyncProperty(fc.nat(5), fc.array(worth, { maxLength: 10 }), async (places, worths) => {
      const best = worths.filter((each) => each !== undefined).toSorted((a, b) => Number(b - a))
      const chosen = await choose(places, worths)
      expect(chosen.toSorted((a, b) => Number(b - a))).toEqual(best.slice(0, places))
    }),
    { numRuns: 500 },
  )
})

it('decides one as soon as the rest cannot change it', async () => {
  const selection = createSelection({ places: 2, ...PATIENCE })
  const [first, second] = [selection.expect(), selection.expect(), selection.expect()]
  const decided: boolean[] = []
  void first?.enter(5n).then((isChosen) => decided.push(isChosen))
  await Promise.resolve()
  expect(decided).toEqual([])
  second?.withdraw()
  await vi.waitFor(() => expect(decided).toEqual([true]))
})

it('does not wait long for contenders that never arrive', async () => {
  const selection = createSelection({ places: 1, ...PATIENCE })
  const [first, second] = [selection.expect(), selection.expect(), selection.expect()]
  const decided = Promise.all([first?.enter(1n), second?.enter(2n)])
  await vi.advanceTimersByTimeAsync(300)
  expect(await decided).toEqual([false, true])
})

it('gives late contenders the places that are left', async () => {
  const selection = createSelection({ places: 2, ...PATIENCE })
  const contenders = [selection.expect(), selection.expect(), selection.expect(), selection.expect()]
  const early = contenders[0]?.enter(1n)
  await vi.advanceTimersByTimeAsync(300)
  expect(await early).toBe(true)
  expect(await Promise.all([contenders[1]?.enter(9n), contenders[2]?.enter(8n)])).toEqual([true, false])
})
