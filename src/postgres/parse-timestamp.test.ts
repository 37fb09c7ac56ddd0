import * as fc from 'fast-check'
import { types } from 'pg'
import { expect, test } from 'vitest'
import { parseTimestamp } from './parse-timestamp.ts'

const parseWithPg = types.getTypeParser(types.builtins.TIMESTAMPTZ) as (text: string) => Date

test.each([
  ['2026-11-20 10:35:00+00', '2026-11-20T10:35:00.000Z'],
  ['2026-11-20 10:35:00.1+00', '2026-11-20T10:35:00.100Z'],
  ['2026-11-20 10:35:00.12+00', '2026-11-20T10:35:00.120Z'],
  ['2026-11-20 10:35:00.123+00', '2026-11-20T10:35:00.123Z'],
  ['2026-11-20 10:35:00.123999+00', '2026-11-20T10:35:00.123Z'],
  ['2024-02-29 23:59:59.999+00', '2024-02-29T23:59:59.999Z'],
  ['2026-11-20 10:35:00+01', '2026-11-20T09:35:00.000Z'],
  ['2026-11-20 10:35:00.5-05:30', '2026-11-20T16:05:00.500Z'],
  ['0099-01-01 00:00:00+00', '0099-01-01T00:00:00.000Z'],
  ['10000-01-01 00:00:00+00', '+010000-01-01T00:00:00.000Z'],
  ['0044-03-15 12:00:00+00 BC', '-000043-03-15T12:00:00.000Z'],
])('%s is %s', (text, iso) => {
  expect(parseTimestamp(text).toISOString()).toBe(iso)
})

test('parses any time as pg does', () => {
  const time = fc.date({
    min: new Date('0100-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(time, fc.integer({ min: 0, max: 6 }), (date, digits) => {
      const [seconds, fraction = ''] = date.toISOString().slice(0, -1).replace('T', ' ').split('.')
      const printed = `${fraction}456`.slice(0, digits).replace(/0+$/, '')
      const text = `${seconds}${printed === '' ? '' : `.${printed}`}+00`
      expect(parseTimestamp(text).getTime()).toBe(Math.floor(parseWithPg(text).getTime()))
    }),
  )
})
