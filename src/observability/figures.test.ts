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
  const figures = createFigures()
  for (let node = 0; node < 1_002; node++) figures.count('calls_total', { node: String(node) })
  figures.count('calls_total', { node: '0' })
  figures.count('other_total', {})
  const read = figures.read()
  expect(read.filter(({ name }) => name === 'calls_total')).toHaveLength(1_000)
  const said = read.map(({ name, labels, value }) => [name, Object.values(labels).join(), value])
  expect(said).toContainEqual(['calls_total', '0', 2])
  expect(said.slice(-2)).toEqual([
    ['other_total', '', 1],
    ['waybill_figures_dropped_total', 'calls_total', 2],
  ])
})
