import { expect, it } from 'vitest'
import { keyOfLine, lineHashOf } from './line-keys.ts'

const id = '0b7d2a31-6f0e-8c55-9d3b-00000000abcd'

it.each([
  ['at the beginning', `{"id":"${id}","amount":"1"}`, id],
  ['at the beginning, in upper case', `{"id":"${id.toUpperCase()}"}`, id],
  ['later in the line', `{"amount":"1","id":"${id}"}`, id],
  ['after characters of several bytes', `{"reference":"ü✓","id":"${id}"}`, id],
  ['with blanks', `{"id": "${id}"}`, undefined],
  ['too short', `{"id":"${id.slice(1)}"}`, undefined],
  ['too long', `{"id":"${id}0"}`, undefined],
  ['with a letter that is no digit', `{"id":"${id.replace('a', 'g')}"}`, undefined],
  ['with a digit where a dash should be', `{"id":"${id.replaceAll('-', '0')}"}`, undefined],
  ['cut off', `{"id":"${id}`, undefined],
  ['missing', 'x', undefined],
  ['missing in an empty line', '', undefined],
])('reads an id %s', (_, content, expected) => {
  expect(keyOfLine({ number: 1, content: Buffer.from(content) }).id).toBe(expected)
})

it('hashes all bytes of a line, and no line that has a fault', () => {
  const hashOf = (content: string) => keyOfLine({ number: 1, content: Buffer.from(content) }).hash
  const one = hashOf('{"a":1}')
  expect(one).toMatch(/^01[0-9a-f]{30}$/)
  expect(hashOf('{"a":1}')).toBe(one)
  expect(hashOf('{"a":1} ')).not.toBe(one)
  expect(lineHashOf(Buffer.from('{"a":1}')).toString('hex')).toBe(one)
  expect(keyOfLine({ number: 1, fault: new Error('too long') as never })).toEqual({ id: undefined, hash: undefined })
})
