import { describe, expect, it } from 'vitest'
import { parseJsonLine } from './parsed-lines.ts'

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('parseJsonLine', () => {
  it.each([
    '{"a":1,"b":{"a":2}}',
    '[{"a":1},{"a":2}]',
    '{"a" : "b\\":c"}',
    '{"a":"\\"b\\":","c":"[[[["}',
    nested(32),
    '"x"',
  ])('reads %s', (text) => {
    expect(parseJsonLine(text)).toEqual(JSON.parse(text))
  })

  it.each([
    ['{"a":1,"a":1}', '"a" is given twice'],
    ['{"a":1,"\\u0061":2}', '"a" is given twice'],
    ['{"a" :1,"a":2}', '"a" is given twice'],
    ['{"b":{"x":1,"y":"\\":","x":1}}', '"x" is given twice'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__" is given twice'],
    [nested(33), 'it is nested deeper than 32 levels'],
    [nested(400_000), 'it is nested deeper than 32 levels'],
    ['{"a":1', 'JSON'],
    ['{"a":"\u0000"}', 'JSON'],
    ['{"a":1}{"a":1}', 'JSON'],
    ['{a:1}', 'JSON'],
    ['[NaN]', 'JSON'],
  ])('refuses %.40s', (text, detail) => {
    expect(() => parseJsonLine(text)).toThrow(
      expect.objectContaining({ reason: 'MALFORMED_LINE', message: expect.stringContaining(detail) }),
    )
  })
})
