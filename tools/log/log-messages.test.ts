import { expect, it } from 'vitest'
import { findFaults, findMessages } from './log-messages.ts'

it.each([
  ["logger.warn({ a: f(1, 'x') }, 'it is slow')", [['warn', 'it is slow']]],
  ['logger?.error({}, `work failed: ${job.name}`)', [['error', 'work failed: {name}']]],
  ['logger.warn(\n  fields,\n  "the machine\'s clock",\n)', [['warn', "the machine's clock"]]],
  [
    "const text = isOld ? 'old' : 'new'\nlogger.warn({}, text)",
    [
      ['warn', 'old'],
      ['warn', 'new'],
    ],
  ],
  ["const level: 'warn' | 'error' = f()\nlogger[level]({}, 'both')", [['warn, error', 'both']]],
  ['logger.warn({}, error.message)', [['warn', '(a.ts)']]],
  ["logger.info({}, 'not this')", []],
])('in %j finds %j', (source, found) => {
  expect(findMessages('a.ts', source).map(({ levels, message }) => [levels, message])).toEqual(found)
})

it('says of each warning and error in src what to do, and of nothing else', () => {
  expect(findFaults()).toEqual([])
})
