import { expect, test } from 'vitest'
import { afterPrefix } from './filter-conditions.ts'

test.each([
  ['ab', 'ac'],
  ['a\u{10ffff}', 'b'],
  ['a\ud7ff', 'a\ue000'],
  ['a😀', 'a😁'],
  ['\u{10ffff}\u{10ffff}', undefined],
])('the first text after all that begin with %j is %j', (prefix, after) => {
  expect(afterPrefix(prefix)).toBe(after)
})
