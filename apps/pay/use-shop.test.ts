import { expect, it } from 'vitest'
import { isLight } from './use-shop.ts'

it.each([
  ['#ffffff', true],
  ['#ffd400', true],
  ['#0a7d4f', false],
  ['#000000', false],
])('text on a button of %s is black: %s', (color, black) => {
  expect(isLight(color)).toBe(black)
})
