import { expect, it } from 'vitest'
import { readAmount, sayUnreadAmount } from './read-amount.ts'

it.each([
  ['100', 'en', '100'],
  [' 19.90 ', 'en', '19.90'],
  ['19,90', 'de', '19.90'],
  // No other reading is possible, whatever the language.
  ['19,90', 'en', '19.90'],
  ['0,125', 'en', '0.125'],
  ['.5', 'en', '0.5'],
  ['1.234', 'en', '1.234'],
  ['1,234', 'de', '1.234'],
  ['1234,567', 'en', '1234.567'],
  ['1,234.50', 'de', '1234.50'],
  ['1.234,50', 'en', '1234.50'],
  ['1,234,567', 'en', '1234567'],
  ['12,34,567.5', 'en-IN', '1234567.5'],
  ['1 234,50', 'fr', '1234.50'],
  ['1’234.50', 'de-CH', '1234.50'],
])('reads %s in %s as %s', (typed, locale, amount) => {
  expect(readAmount(typed, locale)).toBe(amount)
})

it.each([
  ['1,234', 'en'],
  ['1.234', 'de'],
  ['1.234', 'fr'],
])('does not guess what %s is in %s', (typed, locale) => {
  expect(readAmount(typed, locale)).toEqual({ either: ['1234', '1.234'] })
})

it.each(['', 'abc', '-3', '1e5', '5.', '1,23,4', '1 23', '1.2.3', '1,234.5,6', '$5'])(
  'reads no amount in "%s"',
  (typed) => {
    expect(readAmount(typed, 'en')).toBeUndefined()
  },
)

it('says what is wrong in the numbers of the viewer', () => {
  expect(sayUnreadAmount(undefined, 'de')).toBe('Enter an amount above 0, such as 19,90.')
  expect(sayUnreadAmount({ either: ['1234', '1.234'] }, 'de')).toMatch(/^Is this 1234 or 1,234\?/)
})
