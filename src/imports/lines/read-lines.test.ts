import { describe, expect, it } from 'vitest'
import { WaybillError } from '../../errors/waybill-error.ts'
import { type Line, readLines, textOfLine } from './read-lines.ts'

function textOrFault(line: Line): string {
  try {
    return textOfLine(line)
  } catch (error) {
    if (error instanceof WaybillError) return error.reason
    throw error
  }
}

/** The lines of bytes that come in chunks of one size. */
async function linesOf(content: string | Buffer, chunkBytes: number, longestBytes?: number) {
  const bytes = Buffer.from(content as string)
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  const found: [number, string][] = []
  for await (const lines of readLines(chunks(), longestBytes)) {
    for (const line of lines) found.push([line.number, textOrFault(line)])
  }
  return found
}

const twoLines = [
  [1, '{"a":"ü✓"}'],
  [2, '{}'],
]

describe.each([1, 2, 3, 7, 1_000])('lines in chunks of %i bytes', (chunkBytes) => {
  it.each([
    ['LF', '{"a":"ü✓"}\n{}\n', twoLines],
    ['no end at the last line', '{"a":"ü✓"}\n{}', twoLines],
    ['CRLF', '{"a":"ü✓"}\r\n{}\r\n', twoLines],
    ['a byte order mark', '\ufeff{"a":"ü✓"}\n{}\n', twoLines],
    [
      'blank lines, which count',
      '\n{}\n \t\r\n\n{}\n\n',
      [
        [2, '{}'],
        [5, '{}'],
      ],
    ],
    ['nothing', '', []],
    ['a byte order mark alone', '\ufeff', []],
    ['a byte order mark before white space', '\ufeff \t\r\n', []],
    [
      'a byte order mark alone on a later line',
      '{}\n\ufeff\n',
      [
        [1, '{}'],
        [2, '\ufeff'],
      ],
    ],
    ['a byte order mark after a blank line', '\n\ufeff{}\n', [[2, '\ufeff{}']]],
    [
      'a second byte order mark',
      '\ufeff\ufeff\n{}\n',
      [
        [1, '\ufeff'],
        [2, '{}'],
      ],
    ],
    [
      'white space that is not JSON’s',
      '\u00a0\n\u2028\n\u000b\n',
      [
        [1, '\u00a0'],
        [2, '\u2028'],
        [3, '\u000b'],
      ],
    ],
    ['an empty line alone', '\n', []],
  ])('are read with %s', async (_, content, expected) => {
    expect(await linesOf(content, chunkBytes)).toEqual(expected)
  })

  it('reports bytes that are not UTF-8, and continues', async () => {
    const content = Buffer.concat([Buffer.from('{}\n{"a":"'), Buffer.from([0xff]), Buffer.from('"}\n{}\n')])
    expect(await linesOf(content, chunkBytes)).toEqual([
      [1, '{}'],
      [2, 'INVALID_UTF8'],
      [3, '{}'],
    ])
  })

  it('reports lines beyond the limit, and continues', async () => {
    const content = `${'x'.repeat(10)}\n${'y'.repeat(11)}\n${'z'.repeat(500)}\n{}\n${'w'.repeat(500)}`
    const long = 'VALUE_TOO_LONG'
    expect(await linesOf(content, chunkBytes, 10)).toEqual([
      [1, 'x'.repeat(10)],
      [2, long],
      [3, long],
      [4, '{}'],
      [5, long],
    ])
  })
})
