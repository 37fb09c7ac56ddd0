import { expect, test } from 'vitest'
import { countStatement } from './count-matches.ts'

test('a count has the conditions of the filter and a cap', () => {
  const filter = { accountId: 7, network: ['BASE', 'BSC'] }
  const where = 'from payments where account_id = ? and (network = any(?::text[]) or source_network = any(?::text[]))'
  expect(countStatement(filter, 11).toSQL()).toMatchObject({
    sql: `select count(*) as count from (select 1 ${where} limit ?) as matches`,
    bindings: [7, filter.network, filter.network, 11],
  })
})
