import {
  create,
  createRegistry,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { AnySchema, anyPack, StringValueSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryMessage } from '../testdata/arbitrary-message.ts'
import { files, messageDesc } from '../testdata/library.ts'
import { compileJsonSerializer } from './json-serializer.ts'

const registry = createRegistry(StringValueSchema, TimestampSchema)

const everything = messageDesc('everything.v1.Everything')
const legacy = messageDesc('legacy.v1.Legacy')
const serializeEverything = compileJsonSerializer(everything, registry)

function oracle(desc: DescMessage, message: Message): string {
  return JSON.stringify(toJson(desc, message, { alwaysEmitImplicit: true, registry }))
}

test.each([everything, legacy])('writes any $typeName as protobuf-es does', (desc) => {
  const serialize = compileJsonSerializer(desc, registry)
  fc.assert(
    fc.property(arbitraryMessage(desc), (message) => {
      expect(serialize(message)).toBe(oracle(desc, message))
    }),
    { numRuns: 500 },
  )
})

test('the generated messages reach every field, set and unset', () => {
  const seen = new Map<string, Set<boolean>>()
  for (const message of fc.sample(arbitraryMessage(everything), { numRuns: 200, seed: 1 })) {
    const json = toJson(everything, message, { registry }) as Record<string, JsonValue>
    for (const { jsonName } of everything.fields) {
      seen.set(jsonName, (seen.get(jsonName) ?? new Set()).add(Object.hasOwn(json, jsonName)))
    }
  }
  expect([...seen].filter(([, states]) => states.size < 2).map(([name]) => name)).toEqual([])
})

test('writes zeros and empty lists, and leaves out what has presence and is not set', () => {
  const json = JSON.parse(serializeEverything(create(everything))) as Record<string, JsonValue>
  expect(json).toMatchObject({
    aDouble: 0,
    anInt64: '0',
    aString: '',
    strings: [],
    byString: {},
    aColor: 'COLOR_UNSPECIFIED',
  })
  expect(json).not.toHaveProperty('maybeString')
  expect(json).not.toHaveProperty('everything')
})

test.each<[string, JsonValue]>([
  ['a list of lists, objects and null in a Value', { value: [1, [null, { a: 'b' }], true] }],
  ['objects within a Struct', { struct: { a: { b: [1, null] }, toJSON: 'x' } }],
  ['a Struct within a oneof', { chosenStruct: { a: 1 } }],
  [
    'an Any that holds a Timestamp',
    { any: { '@type': 'type.googleapis.com/google.protobuf.Timestamp', value: '2021-01-01T00:00:00Z' } },
  ],
  ['an empty Any', { any: {} }],
])('writes %s', (_what, json) => {
  const message = fromJson(everything, json, { registry })
  expect(serializeEverything(message)).toBe(oracle(everything, message))
})

describe('refuses, as protobuf-es does,', () => {
  const timestamp = (seconds: bigint, nanos = 0) => create(TimestampSchema, { seconds, nanos })
  test.each<[string, DescMessage, object]>([
    ['a time before the year 1', everything, { timestamp: timestamp(-62_135_596_801n) }],
    ['a time after the year 9999', everything, { timestamp: timestamp(253_402_300_800n) }],
    ['negative nanoseconds', everything, { timestamp: timestamp(0n, -1) }],
    ['a thousand million nanoseconds', everything, { timestamp: timestamp(0n, 1_000_000_000) }],
    ['NaN in a Struct', everything, { struct: { a: [Number.NaN] } }],
    ['a string in a double', everything, { aDouble: '1' }],
    ['a number in a string', everything, { aString: 1 }],
    ['undefined in a bool', everything, { aBool: undefined }],
    ['a string in an enum', everything, { aColor: 'RED' }],
    ['a fraction in a 64-bit integer', everything, { anInt64: 1.5 }],
    ['a string of bytes', everything, { aBytes: 'AA==' }],
    ['a string in a 32-bit integer', everything, { anInt32: '1' }],
    ['a message of another type', everything, { everything: create(TimestampSchema) }],
    ['an Any of an unknown type', everything, { any: create(AnySchema, { typeUrl: 'type.googleapis.com/x.Y' }) }],
    ['a required field that is missing', legacy, {}],
  ])('%s', (_what, desc, properties) => {
    const message = Object.assign(create(desc), properties)
    expect(() => oracle(desc, message)).toThrow(Error)
    const serialize = compileJsonSerializer(desc, registry)
    expect(() => serialize(message)).toThrow(Error)
  })
})

test('writes extensions that the registry knows', () => {
  const extra = files.getExtension('legacy.v1.extra')
  if (extra === undefined) throw new Error('no extension')
  const withExtension = createRegistry(legacy, extra)
  const message = fromJson(legacy, { needed: 1, '[legacy.v1.extra]': 'more' }, { registry: withExtension })
  const text = compileJsonSerializer(legacy, withExtension)(message)
  expect(JSON.parse(text)).toEqual({ needed: 1, levels: [], '[legacy.v1.extra]': 'more' })
})

test('does not find a type that its registry does not hold', () => {
  const any = anyPack(StringValueSchema, create(StringValueSchema, { value: 'x' }))
  const message = Object.assign(create(everything), { any })
  expect(() => compileJsonSerializer(everything)(message)).toThrow('not in the type registry')
})
