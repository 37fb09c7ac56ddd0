import { expect, it } from 'vitest'
import { idOfLine, lineHashOf, writeLineKeys } from './line-keys.ts'

const id = '0b7d2a31-6f0e-8c55-9d3b-00000000abcd'

/** The entries of an array of PostgreSQL in its binary form, in hex. */
function entriesOf(array: Buffer): (string | null)[] {
  const entries: (string | null)[] = []
  for (let at = 20; at < array.length; ) {
    const length = array.readInt32BE(at)
    at += 4
    entries.push(length < 0 ? null : array.toString('hex', at, at + length))
    at += Math.max(length, 0)
  }
  expect(entries).toHaveLength(array.readInt32BE(12))
  return entries
}

function keysOf(...contents: string[]) {
  const writer = writeLineKeys(contents.length)
  contents.forEach((content, at) => writer.add({ number: at + 1, content: Buffer.from(content) }))
  const { ids, hashes } = writer.keys()
  return { ids: entriesOf(ids), hashes: entriesOf(hashes) }
}

it.each([
  ['at the beginning', `{"id":"${id}","amount":"1"}`, id],
  ['at the beginning, in upper case', `{"id":"${id.toUpperCase()}"}`, id],
  ['later in the line', `{"amount":"1","id":"${id}"}`, id],
  ['after characters of several bytes', `{"reference":"ü✓","id":"${id}"}`, id],
  ['with blanks', `{"id": "${id}"}`, null],
  ['too short', `{"id":"${id.slice(1)}"}`, null],
  ['too long', `{"id":"${id}0"}`, null],
  ['with a letter that is no digit', `{"id":"${id.replace('a', 'g')}"}`, null],
  ['with a digit where a dash should be', `{"id":"${id.replaceAll('-', '0')}"}`, null],
  ['cut off', `{"id":"${id}`, null],
  ['missing', 'x', null],
  ['missing in an empty line', '', null],
])('reads an id %s', (_, content, expected) => {
  expect(keysOf('{}', content, `{"id":"${id}"}`).ids).toEqual([
    null,
    expected?.replaceAll('-', '') ?? null,
    id.replaceAll('-', ''),
  ])
  if (expected !== null) expect(idOfLine(Buffer.from(content))).toBe(expected)
})

it('hashes all bytes of a line, and no line that has a fault', () => {
  const [one, same, other] = keysOf('{"a":1}', '{"a":1}', '{"a":1} ').hashes
  expect(one).toMatch(/^01[0-9a-f]{30}$/)
  expect(same).toBe(one)
  expect(other).not.toBe(one)
  expect(lineHashOf(Buffer.from('{"a":1}')).toString('hex')).toBe(one)
  const writer = writeLineKeys(1)
  writer.add({ number: 1, fault: new Error('too long') as never })
  expect([entriesOf(writer.keys().ids), entriesOf(writer.keys().hashes)]).toEqual([[null], [null]])
})
