import { create, createRegistry, type JsonValue, toJson, toJsonString } from '@bufbuild/protobuf'
import { StringValueSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileBodyMapping } from './body-mapping.ts'
import { arbitraryMessage, hasEscapedKey } from './testdata/arbitrary-message.ts'
import { messageDesc } from './testdata/library.ts'

const everything = messageDesc('everything.v1.Everything')
const registry = createRegistry(StringValueSchema, TimestampSchema, everything)
const mapBody = compileBodyMapping(everything, '*', registry)

function decode(text: string) {
  const message = create(everything)
  mapBody(message, new TextEncoder().encode(text))
  return message
}

test('any message that protobuf-es writes is read back as it was', () => {
  // With zeros: JSON has no -0, so without them a field of -0 would be written at first and left out after reading.
  const options = { registry, alwaysEmitImplicit: true }
  fc.assert(
    fc.property(arbitraryMessage(everything, { readable: true }), (message) => {
      const text = toJsonString(everything, message, options)
      fc.pre(!hasEscapedKey(text.replaceAll('"with \\"quotes\\"":', '')))
      expect(toJsonString(everything, decode(text), options)).toBe(text)
    }),
    { numRuns: 60 },
  )
})

const typeUrl = 'type.googleapis.com/'

test.each<[string, JsonValue]>([
  ['{"a_double":"1e3","aFloat":1.5}', { aDouble: 1000, aFloat: 1.5 }],
  ['{"anInt32":1.0,"anInt64":"007"}', { anInt32: 1, anInt64: '7' }],
  ['{"anInt64":9007199254740991}', { anInt64: '9007199254740991' }],
  ['{"aColor":2,"colors":["RED",-1]}', { aColor: 'DARK_BLUE', colors: ['RED', 'NEGATIVE'] }],
  ['{"aString":null,"strings":null,"byString":null,"everything":null,"wrappedInt32":null}', {}],
  ['{"chosenString":null,"chosenInt64":1}', { chosenInt64: '1' }],
  ['{"value":null}', { value: null }],
  ['{"everything":{}}', { everything: {} }],
  ['{"byBool":{"true":1},"byInt64":{"-5":"AA"}}', { byBool: { true: '1' }, byInt64: { '-5': 'AA==' } }],
  ['\ufeff{"aBool":true}', { aBool: true }],
])('%s', (text, expected) => {
  expect(toJson(everything, decode(text))).toEqual(expected)
})

test.each([
  [`{"any":{"@type":"${typeUrl}nobody.Knows"}}`, 'INVALID_VALUE', 'any.@type'],
  ['{"any":{"a":1}}', 'INVALID_VALUE', 'any.@type'],
  [
    `{"any":{"@type":"${typeUrl}google.protobuf.Timestamp","value":"2021-02-30T00:00:00Z"}}`,
    'INVALID_VALUE',
    'any.value',
  ],
  [`{"any":{"@type":"${typeUrl}everything.v1.Everything","aBol":true}}`, 'UNKNOWN_JSON_FIELD', 'any.aBol'],
  ['{"duration":"1sec"}', 'INVALID_VALUE', 'duration'],
  ['{"duration":"1.0000000001s"}', 'INVALID_VALUE', 'duration'],
  ['{"duration":1}', 'INVALID_VALUE', 'duration'],
  ['{"timestamp":"2021-01-01T24:00:00Z"}', 'INVALID_VALUE', 'timestamp'],
  ['{"timeByString":{"x":"2021-02-29T00:00:00Z"}}', 'INVALID_VALUE', 'timeByString.x'],
  ['{"fieldMask":"fee_percentage"}', 'INVALID_VALUE', 'fieldMask'],
  ['{"wrappedInt32":"x"}', 'INVALID_VALUE', 'wrappedInt32'],
  ['{"wrappedBool":{"value":true}}', 'INVALID_VALUE', 'wrappedBool'],
  ['{"wrappedInt64s":[1,null]}', 'INVALID_VALUE', 'wrappedInt64s[1]'],
  ['{"struct":[]}', 'INVALID_VALUE', 'struct'],
  ['{"listValue":{}}', 'INVALID_VALUE', 'listValue'],
  ['{"byInt32":{"a":1}}', 'INVALID_VALUE', 'byInt32'],
  ['{"byInt32":{"2147483648":1}}', 'INVALID_VALUE', 'byInt32'],
  ['{"byBool":{"1":1}}', 'INVALID_VALUE', 'byBool'],
  ['{"byUint64":{"1":"BLUE"}}', 'INVALID_VALUE', 'byUint64.1'],
  ['{"aDouble":1e400}', 'INVALID_VALUE', 'aDouble'],
  ['{"aDouble":"1_0"}', 'INVALID_VALUE', 'aDouble'],
  ['{"aUint32":-1}', 'INVALID_VALUE', 'aUint32'],
  [
    '{"everythingByString":{"x":{"everythings":[{"aBol":1}]}}}',
    'UNKNOWN_JSON_FIELD',
    'everythingByString.x.everythings[0].aBol',
  ],
  ['{"everything":{"chosenString":"a","chosenColor":"RED"}}', 'ONEOF_CONFLICT', 'everything.chosenColor'],
])('%s is refused', (text, kind, field) => {
  expect(() => decode(text)).toThrow(expect.objectContaining({ kind, field }))
})
