import { expect, test } from 'vitest'
import { findDifferences, isTime, rangesOf } from './stored-ranges.ts'

const DATE = '2026-11-26'
const figure = (name: string, value: number, unit = 'ratio') => ({ name, value, unit })

test.each([
  ['ms', true],
  ['µs a call', true],
  ['CPU µs/row', true],
  ['rows/s', true],
  ['s', true],
  ['ratio', false],
  ['× known', false],
  ['bytes/row', false],
  ['HTTP requests a call', false],
  ['MiB more', false],
  ['', false],
])('the unit "%s" is one of time: %s', (unit, expected) => {
  expect(isTime(figure('a', 1, unit))).toBe(expected)
})

test('a range is the least to the greatest value, wider at each end by their distance and 2 %', () => {
  const runs = [
    [figure('a', 1.1), figure('b', 100)],
    [figure('a', 1), figure('b', 100)],
  ]
  expect(rangesOf(runs, DATE)).toEqual({
    a: { low: 0.88, high: 1.222, date: DATE },
    b: { low: 98, high: 102, date: DATE },
  })
})

test('times, and figures that a run does not have, get no range', () => {
  const runs = [[figure('a', 1), figure('slow', 2, 'ms')], [figure('slow', 2, 'ms')]]
  expect(rangesOf(runs, DATE)).toEqual({})
})

test('what lies outside its range, has none or was not measured differs', () => {
  const stored = {
    within: { low: 1, high: 2, date: DATE },
    above: { low: 1, high: 2, date: DATE },
    gone: { low: 1, high: 2, date: DATE },
  }
  const figures = [figure('within', 2), figure('above', 2.01), figure('added', 7), figure('slow', 9, 'ms')]
  expect(findDifferences(figures, stored)).toEqual([
    { name: 'above', seen: 2.01, low: 1, high: 2, date: DATE },
    { name: 'added', seen: 7 },
    { name: 'gone', low: 1, high: 2, date: DATE },
  ])
})
