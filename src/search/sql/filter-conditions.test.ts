import { expect, test } from 'vitest'
import { addressFromBytes, addressToDigits } from '../../domain/address.ts'
import type { FilterValues } from '../filter/search-fields.ts'
import { afterPrefix, matchCondition } from './filter-conditions.ts'

const PAYER = addressFromBytes(Buffer.alloc(21, 7).fill(1, 0, 1))

test.each<[FilterValues, string, unknown[]]>([
  [{ 'exclude.status': ['FAILED'] }, '(status = ?::smallint) is not true', [5]],
  [{ 'exclude.type': ['DIRECT', 'RECURRING'] }, '(type = any(?::smallint[])) is not true', [[1, 4]]],
  [{ 'exclude.network': ['BASE'] }, '((network = ?::text or source_network = ?::text)) is not true', ['BASE', 'BASE']],
  [
    { 'exclude.currency': [{ of: 'payment', symbol: 'DAI', id: 'DAI-BASE' }] },
    '(currency_symbol = ?::text and currency = ?::text) is not true',
    ['DAI', 'DAI-BASE'],
  ],
  [{ 'exclude.payer': [PAYER] }, '(payer = ?::bytea) is not true', [`\\x${addressToDigits(PAYER)}`]],
  // a chain that the account does not know has no names in the column
  [
    { 'exclude.network': [], network: ['BSC'] },
    '(network = ?::text or source_network = ?::text) and ((network = any(?::text[]) or source_network = any(?::text[]))) is not true',
    ['BSC', 'BSC', [], []],
  ],
  [{ referencePrefix: '%_' }, 'reference >= ?::text and reference < ?::text', ['%_', '%`']],
  [{ referencePrefix: '\u{10ffff}\u{10ffff}' }, 'reference >= ?::text', ['\u{10ffff}\u{10ffff}']],
])('the condition of %j is %s', (filter, condition, bindings) => {
  expect(matchCondition({ accountId: 7, ...filter }).toSQL()).toMatchObject({ sql: condition, bindings })
})

test.each([
  ['ab', 'ac'],
  ['a\u{10ffff}', 'b'],
  ['a\ud7ff', 'a\ue000'],
  ['a😀', 'a😁'],
  ['\u{10ffff}\u{10ffff}', undefined],
])('the first text after all that begin with %j is %j', (prefix, after) => {
  expect(afterPrefix(prefix)).toBe(after)
})
