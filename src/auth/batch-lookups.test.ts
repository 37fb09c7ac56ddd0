import { expect, it } from 'vitest'
import { batchLookups } from './batch-lookups.ts'

function start(maxBatch: number) {
  const questions: { names: readonly string[]; answer: PromiseWithResolvers<readonly string[]> }[] = []
  const lookup = batchLookups<string>({
    findMany: (names) => {
      const answer = Promise.withResolvers<readonly string[]>()
      questions.push({ names, answer })
      return answer.promise
    },
    nameOf: (found) => found.toLowerCase(),
    maxBatch,
  })
  return { lookup, questions }
}

it('runs one query at a time, for all names that wait, each of them once', async () => {
  const { lookup, questions } = start(3)
  const [first, second, again, ...rest] = ['a', 'b', 'b', 'c', 'd', 'e'].map(lookup)
  expect(questions.map(({ names }) => names)).toEqual([['a']])
  questions[0]?.answer.resolve([])
  expect(await first).toBeUndefined()
  await expect.poll(() => questions.length).toBe(2)
  expect(questions[1]?.names).toEqual(['b', 'c', 'd'])
  questions[1]?.answer.resolve(['D', 'B'])
  expect(await Promise.all([second, again, rest[0], rest[1]])).toEqual(['B', 'B', undefined, 'D'])
  await expect.poll(() => questions.length).toBe(3)
  questions[2]?.answer.resolve(['E'])
  expect(await rest[2]).toBe('E')
})

it('rejects the lookups of a query that failed, and goes on', async () => {
  const { lookup, questions } = start(10)
  const failing = lookup('a').catch((error: Error) => error.message)
  const next = lookup('b')
  questions[0]?.answer.reject(new Error('gone'))
  expect(await failing).toBe('gone')
  await expect.poll(() => questions.length).toBe(2)
  questions[1]?.answer.resolve(['B'])
  expect(await next).toBe('B')
})
