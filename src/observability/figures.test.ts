import { expect, it } from 'vitest'
import { createFigures } from './figures.ts'

it('adds to counters and replaces gauges, for each combination of labels in any order', () => {
  const figures = createFigures()
  figures.count('calls_total', { node: 'a', method: 'x' })
  figures.count('calls_total', { method: 'x', node: 'a' }, 4)
  figures.count('calls_total', { node: 'b', method: 'x' })
  figures.set('blocks', { chain: 'BASE' }, 7)
  figures.set('blocks', { chain: 'BASE' }, 3)
  expect(figures.read()).toEqual([
    { name: 'blocks', kind: 'GAUGE', labels: { chain: 'BASE' }, value: 3 },
    { name: 'calls_total', kind: 'COUNTER', labels: { method: 'x', node: 'a' }, value: 5 },
    { name: 'calls_total', kind: 'COUNTER', labels: { node: 'b', method: 'x' }, value: 1 },
  ])
})

it('removes a gauge whose figure is not known any more', () => {
  const figures = createFigures()
  figures.set('blocks', { chain: 'BASE' }, 7)
  figures.set('blocks', { chain: 'BASE' }, undefined)
  figures.set('never', {}, undefined)
  expect(figures.read()).toEqual([])
})

it('drops and counts combinations of labels beyond the limit, while known ones go on', () => {
  const figures = createFigures({ maxSets: 2 })
  for (const node of ['a', 'b', 'c', 'd', 'a']) figures.count('calls_total', { node })
  figures.count('other_total', {})
  expect(figures.read().map(({ name, labels, value }) => [name, Object.values(labels).join(), value])).toEqual([
    ['calls_total', 'a', 2],
    ['calls_total', 'b', 1],
    ['other_total', '', 1],
    ['waybill_figures_dropped_total', 'calls_total', 2],
  ])
})
