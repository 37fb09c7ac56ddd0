import { expect, it } from 'vitest'
import { encodeCopyRow } from './copy-rows.ts'

it.each([
  ['plain values', ['a', 1, 2n, true, null], 'a\t1\t2\ttrue\t\\N\n'],
  [
    'characters that COPY reserves',
    ['tab\t', 'line\nend\r', 'back\\slash', '\\N', ''],
    'tab\\t\tline\\nend\\r\tback\\\\slash\t\\\\N\t\n',
  ],
  [
    'bytes, times and JSON',
    [Buffer.from([0, 255]), new Date(0), [{ a: 'x\n"' }]],
    '\\\\x00ff\t1970-01-01T00:00:00.000Z\t[{"a":"x\\\\n\\\\""}]\n',
  ],
])('encodes %s in the text format of COPY', (_, row, text) => {
  expect(encodeCopyRow(row)).toBe(text)
})
