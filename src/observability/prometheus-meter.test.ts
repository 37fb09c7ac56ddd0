import { expect, it } from 'vitest'
import { createPrometheusMeter } from './prometheus-meter.ts'

it.each([
  ['without labels', {}, 'waybill_backlog_seconds 7'],
  ['with labels', { chain: 'BASE' }, 'waybill_backlog_seconds{chain="BASE"} 7'],
])('has no value of a metric %s that could not be read', async (_, labels, line) => {
  const { meter, write, read } = createPrometheusMeter()
  let isAway = true
  const metric = { name: 'waybill_backlog_seconds', help: 'Age.', labels: Object.keys(labels) }
  meter.observe([metric], async () => {
    if (isAway) throw new Error('the database is away')
    return [[metric.name, 7, labels]]
  })
  const lines = async () => (await write()).split('\n').filter((each) => each.startsWith(metric.name))
  expect(await lines()).toEqual([])
  isAway = false
  expect(await lines()).toEqual([line])
  isAway = true
  expect(await lines()).toEqual([])
  expect((await read()).find(({ name }) => name === metric.name)?.values).toEqual([])
})
