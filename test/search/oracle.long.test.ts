import { afterAll, beforeAll, describe, test } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { cases, checkPair, checkWalk, type Oracle, orders, storeOracle } from './oracle-walks.ts'

// What test/search/oracle.test.ts checks with one search for each order and filter, here with all of them.

const SEARCHES = [0, 1, 2, 3, 4]
let oracle: Oracle

beforeAll(async () => {
  oracle = await storeOracle()
})

afterAll(() => oracle.database.drop())

describe.each(orders)('by $sortBy $sortOrder', ({ sortBy, sortOrder }) => {
  test.each(cases.map((each) => [JSON.stringify(each.input), each] as const))('%s', async (_, each) => {
    const random = seededRandom(JSON.stringify(each.input).length)
    for (const nth of SEARCHES) await checkWalk(oracle, nth, each, { sortBy, sortOrder, random })
  })
})

test('a payment has to match both of two filters, in every order and with every search', async () => {
  const random = seededRandom(43)
  for (let run = 0; run < 600; run++) await checkPair(oracle, run, random)
})
