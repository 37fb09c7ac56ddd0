import { expect, it } from 'vitest'
import { findWords } from './check-words.ts'

it.each([
  ['const createLookReader = 1', ['Look']],
  ['const room = makeRoom()', ['room', 'Room']],
  ['/** What is told of a twin */', ['told', 'twin']],
  ['MAX_TURNS', ['TURNS']],
  ['returns, lookup, broom, threshold', []],
  ['It looks up a row and turns it into a payment.', []],
  ['the look-alike contract', []],
  ['cells of a table', []],
])('%s', (text, words) => {
  expect(findWords(text).map(({ word }) => word)).toEqual(words)
})
