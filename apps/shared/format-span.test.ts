import { expect, it } from 'vitest'
import { formatSpan } from './format-time.ts'

it.each([
  [0, '0 sec'],
  [20, '20 sec'],
  [119, '119 sec'],
  [120, '2 min'],
  [3_600, '60 min'],
  [7_200, '2 hr'],
  [86_400, '24 hr'],
  [259_200, '3 days'],
])('writes %i seconds as %s', (seconds, written) => {
  expect(formatSpan(seconds, 'en-US')).toBe(written)
})
