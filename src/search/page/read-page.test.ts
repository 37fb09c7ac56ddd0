import { expect, test } from 'vitest'
import type { Shape } from '../plan/search-plan.ts'
import { judgeRows } from './read-page.ts'

const shapeOf = (index: string, more: object = {}): Shape => ({
  kind: 'walk',
  parts: [{ index, order: 'time', within: [], residual: [], fixedKeys: 0, startsAtPosition: true, ...more }],
  mayOverlap: false,
})
const byDate = shapeOf('payments_date')
const byCell = shapeOf('payments_cell')
const unknownOnly = shapeOf('payments_usd', { unknownOnly: true })
const months: Shape = { kind: 'months', months: [0] }

/** A row as `pageRows` selects it: id, page_cut, last_change, statistics_seq. */
const row = (id: string | null, cut = 'f', seq: string | null = '7') => [id, cut, '12', seq]

test.each([
  ['rows of a shape without a limit', byDate, false, [row('a')], 'page'],
  ['no payments', byDate, false, [row(null)], 'page'],
  ['a row at which a branch reached its limit', byDate, false, [row('a'), row('b', 't')], 'cut'],
  ['no payments, and a limit that was reached', byDate, false, [row(null, 't')], 'cut'],
  ['one range of keys that fills the page', byDate, true, [row('a'), row('b')], 'page'],
  ['one range of keys that does not', byDate, true, [row('a')], 'not full'],
  ['one range of keys without payments', byDate, true, [row(null)], 'not full'],
  ['known combinations alone', byCell, false, [row('a', 'f', '5')], 'page'],
  ['a new combination, by a shape that needs all', byCell, false, [row('a', 'f', '6')], 'stale statistics'],
  ['a new combination, by the unknown amounts alone', unknownOnly, false, [row('a', 'f', '6')], 'stale statistics'],
  ['a new combination beside a limit that was reached', byCell, false, [row('a', 't', '6')], 'stale statistics'],
  ['a new combination, by a shape that does not care', months, false, [row('a', 'f', '6')], 'page'],
  ['an account without statistics', byCell, false, [row(null, 'f', null)], 'page'],
] as const)('%s', (_, shape, mustFillPage, rows, verdict) => {
  const query = { filter: { accountId: 1 }, sortBy: 'date', sortOrder: 'desc', rows: 2 } as const
  const terms = { query, columns: ['id'], knownSeq: 5 }
  expect(judgeRows(rows, { shape, mustFillPage }, terms)).toBe(verdict)
})
