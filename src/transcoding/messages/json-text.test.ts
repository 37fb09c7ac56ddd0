import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hasEscapedKey } from '../testdata/arbitrary-message.ts'
import { MAX_DEPTH, parseJson } from './json-text.ts'

function parse(text: string) {
  return parseJson(new TextEncoder().encode(text))
}

test('parses any JSON as JSON.parse does', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      fc.pre(!hasEscapedKey(text))
      expect(parse(text)).toEqual(JSON.parse(text))
    }),
  )
})

describe('depth', () => {
  test.each([
    ['[[[1]]]', 3],
    ['{"a":[{}]}', 3],
    ['[[],[],[]]', 2],
    ['"[[[["', 0],
    ['["\\"[[[["]', 1],
    ['["\\\\"]', 1],
  ])('%s is %i deep', (text, depth) => {
    const within = (levels: number) => `${'['.repeat(levels)}${text}${']'.repeat(levels)}`
    expect(() => parse(within(MAX_DEPTH - depth))).not.toThrow()
    expect(() => parse(within(MAX_DEPTH - depth + 1))).toThrow(expect.objectContaining({ kind: 'TOO_DEEP' }))
  })

  test('a megabyte of brackets is refused', () => {
    expect(() => parse('['.repeat(1_000_000))).toThrow(expect.objectContaining({ kind: 'TOO_DEEP' }))
  })
})

test.each([
  '{"a":1,"a":1}',
  '{"a":1,"b":{},"a":1}',
  '{"x":[{"a":1,"a":2}]}',
  '{"a":{"b":1},"a":1}',
  '{"a":1,"\\u0061":2}',
  '{"":1,"":2}',
  '{"__proto__":1,"__proto__":2}',
  '{ "a" : 1 , "a" : 2 }',
  '{"x":"\\\\","x":1}',
])('%s gives a key twice', (text) => {
  expect(() => parse(text)).toThrow(expect.objectContaining({ kind: 'DUPLICATE_JSON_FIELD' }))
})

test.each(['{"a":{"a":1},"b":"a"}', '[{"a":1},{"a":1}]', '{"a":["a","a"]}', '{"a":"x\\",\\"a\\":1"}'])(
  '%s gives no key twice',
  (text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
  },
)

test.each(['', '{', '"', '"\\', '{"a":1,}', '[1 2]', 'nul', '01', '{"\\u00zz":1}', '\u00a01'])(
  '%j is malformed',
  (text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ kind: 'MALFORMED_JSON' }))
  },
)
