import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Kind, kinds, type Outcome, openStage, type Stage } from './model/any-order.ts'

/** `SEED=7 RUNS=1000 npm run test:long -- test/detection/any-order` plays other sequences, or more. */
const SEED = Number(process.env.SEED ?? 1)
const RUNS = Number(process.env.RUNS ?? 24)

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage?.stop())

it(
  'stands the same in any order of payments, refunds, imports, terms, words of bridges, reorgs and kills',
  async () => {
    const outcomes: Outcome[] = []
    for (let run = 0; run < RUNS; run++) {
      outcomes.push(await stage.play(SEED * 1_000_000 + run))
    }
    const different = outcomes.filter(({ difference }) => difference !== undefined)
    const stories = different.map(
      ({ seed, story, difference }) => `sequence ${seed}\n${story.join('\n')}\n${difference}`,
    )
    expect(stories.slice(0, 3).join('\n\n'), `${different.length} of ${RUNS} sequences`).toBe('')
    expect(rarePairs(outcomes)).toEqual([])
  },
  60_000 + RUNS * 5_000,
)

/** Pairs of kinds that stand together in less than 5 % of the sequences. */
function rarePairs(outcomes: readonly Outcome[]): string[] {
  const pairs = kinds.flatMap((one, at) => kinds.slice(at + 1).map((other): [Kind, Kind] => [one, other]))
  return pairs.flatMap(([one, other]) => {
    const count = outcomes.filter((outcome) => outcome.kinds.has(one) && outcome.kinds.has(other)).length
    return count < outcomes.length * 0.05 ? [`${one} and ${other}: ${count} of ${outcomes.length}`] : []
  })
}
