import { create, type JsonValue, type Message, toJson } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { compileQueryMapping } from './query-mapping.ts'
import { messageDesc } from './testdata/library.ts'

const everything = messageDesc('everything.v1.Everything')
const options = { boundInPath: [], boundInBody: '', isCommaSeparated: () => false }
const mapEverything = compileQueryMapping(everything, options)

function decode(query: string): Message {
  const message = create(everything)
  mapEverything(message, query)
  return message
}

test.each<[string, JsonValue]>([
  ['aDouble=1e3', { aDouble: 1000 }],
  ['aDouble=-0.5E-2', { aDouble: -0.005 }],
  ['aDouble=.5', { aDouble: 0.5 }],
  ['aDouble=NaN', { aDouble: 'NaN' }],
  ['aDouble=-Infinity', { aDouble: '-Infinity' }],
  ['aFloat=3.4028235e38', { aFloat: 3.4028234663852886e38 }],
  ['anInt32=-2147483648', { anInt32: -2147483648 }],
  ['aSint32=2147483647', { aSint32: 2147483647 }],
  ['anSfixed32=-1', { anSfixed32: -1 }],
  ['anInt32=-0&maybeInt32=0', { maybeInt32: 0 }],
  ['aUint32=4294967295&aFixed32=4294967295', { aUint32: 4294967295, aFixed32: 4294967295 }],
  ['anInt64=-9223372036854775808', { anInt64: '-9223372036854775808' }],
  ['aUint64=18446744073709551615', { aUint64: '18446744073709551615' }],
  ['longAsString=12&longsAsStrings=3', { longAsString: '12', longsAsStrings: ['3'] }],
  ['maybeBool=false&aBool=true', { maybeBool: false, aBool: true }],
  ['aBytes=-_%2B%2F', { aBytes: '+/+/' }],
  ['aBytes=YQ', { aBytes: 'YQ==' }],
  ['aBytes=YQ%3D%3D&maybeBytes=', { aBytes: 'YQ==', maybeBytes: '' }],
  ['aColor=dark_blue', { aColor: 'DARK_BLUE' }],
  ['aColor=Red&maybeColor=COLOR_UNSPECIFIED', { aColor: 'RED', maybeColor: 'COLOR_UNSPECIFIED' }],
  ['aColor=-1&colors=2&colors=red', { aColor: 'NEGATIVE', colors: ['DARK_BLUE', 'RED'] }],
  ['doubles=1&doubles=2', { doubles: [1, 2] }],
  ['strings=&strings=a,b', { strings: ['', 'a,b'] }],
  ['wrappedDouble=0&wrappedString=&wrappedBool=false', { wrappedDouble: 0, wrappedString: '', wrappedBool: false }],
  ['wrappedInt64=-1&wrappedUint64=1&wrappedBytes=', { wrappedInt64: '-1', wrappedUint64: '1', wrappedBytes: '' }],
  ['wrappedFloat=1.5&wrappedInt32=1&wrappedUint32=2', { wrappedFloat: 1.5, wrappedInt32: 1, wrappedUint32: 2 }],
  ['chosenWrapper=', { chosenWrapper: '' }],
  ['chosenInt64=0', { chosenInt64: '0' }],
  ['chosenColor=red', { chosenColor: 'RED' }],
  ['chosenTimestamp=1970-01-01T00:00:00Z', { chosenTimestamp: '1970-01-01T00:00:00Z' }],
  ['chosenEverything.aBool=true&chosenEverything.aString=x', { chosenEverything: { aBool: true, aString: 'x' } }],
  [
    'everything.everything.strings=a&everything.everything.strings=b',
    { everything: { everything: { strings: ['a', 'b'] } } },
  ],
  ['timestamp=2021-01-01T00:00:00-00:30', { timestamp: '2021-01-01T00:30:00Z' }],
  ['timestamp=2024-02-29T23:59:59.1Z', { timestamp: '2024-02-29T23:59:59.100Z' }],
  ['timestamp=0001-01-01T00:00:00Z', { timestamp: '0001-01-01T00:00:00Z' }],
  ['timestamp=9999-12-31T23:59:59.999999999Z', { timestamp: '9999-12-31T23:59:59.999999999Z' }],
  ['duration=-0.5s', { duration: '-0.500s' }],
  ['duration=315576000000s', { duration: '315576000000s' }],
  ['fieldMask=', { fieldMask: '' }],
  ['fieldMask=fooBar,a.b_c', { fieldMask: 'fooBar,a.bC' }],
  ['snake_case_json=a', { snake_case_json: 'a' }],
  ['renamed=a', { snake_case_json: 'a' }],
  ['__proto__=a', JSON.parse('{"__proto__":"a"}') as JsonValue],
])('%s', (query, expected) => {
  expect(toJson(everything, decode(query))).toEqual(expected)
})

test.each([
  'aDouble=',
  'aDouble=1e400',
  'aDouble=0x10',
  'aDouble=1_000',
  'aDouble=%201',
  'aDouble=+1',
  'aDouble=nan',
  'aDouble=infinity',
  'aDouble=1.2.3',
  'aFloat=3.5e38',
  'anInt32=',
  'anInt32=1e3',
  'anInt32=1.0',
  'anInt32=--1',
  'anInt32=2147483648',
  'anInt32=-2147483649',
  `anInt32=${'9'.repeat(100_000)}`,
  'aUint32=-1',
  'aUint32=4294967296',
  'anInt64=9223372036854775808',
  'aUint64=18446744073709551616',
  'aUint64=-1',
  'aUint64=%D9%A1',
  'aBool=',
  'aBool=1',
  'aBool=TRUE',
  'aBool=t',
  'aBytes=a',
  'aBytes=YQ%3D',
  'aBytes=YQ%3D%3D%3D%3D',
  'aBytes=Y%20Q',
  'aBytes=YQ+a',
  'aColor=',
  'aColor=blue',
  'aColor=3',
  'aColor=1.0',
  'aColor=constructor',
  'aColor=__proto__',
  'colors=red,dark_blue',
  'doubles=1,2',
  'wrappedInt32=x',
  'wrappedBool=',
  'timestamp=',
  'timestamp=2021-02-30T00:00:00Z',
  'timestamp=2023-02-29T00:00:00Z',
  'timestamp=2021-04-31T00:00:00Z',
  'timestamp=2021-00-01T00:00:00Z',
  'timestamp=2021-01-00T00:00:00Z',
  'timestamp=2021-01-01T24:00:00Z',
  'timestamp=2021-01-01T00:60:00Z',
  'timestamp=2021-01-01T00:00:60Z',
  'timestamp=2021-01-01T00:00:00',
  'timestamp=2021-01-01',
  'timestamp=2021-01-01T00:00:00%2B24:00',
  'timestamp=2021-01-01T00:00:00%2B01:60',
  'timestamp=2021-01-01T00:00:00+01:00',
  'timestamp=2021-01-01T00:00:00.1234567890Z',
  'timestamp=2021-01-01%2000:00:00Z',
  'timestamp=0000-01-01T00:00:00Z',
  'timestamp=0001-01-01T00:00:00%2B01:00',
  'timestamp=10000-01-01T00:00:00Z',
  'timestamp=1609459200',
  'duration=1',
  'duration=1sec',
  'duration=.5s',
  'duration=1.s',
  'duration=1.0000000001s',
  'duration=315576000001s',
  'duration=--1s',
  'fieldMask=a,,b',
  'fieldMask=a-b',
])('%s is an invalid value', (query) => {
  const name = query.slice(0, query.indexOf('='))
  // An error in a list names the element.
  const field = name === 'colors' || name === 'doubles' ? `${name}[0]` : name
  expect(() => decode(query)).toThrow(expect.objectContaining({ kind: 'INVALID_VALUE', field }))
})

test('an element of a list is counted over all its parameters', () => {
  expect(() => decode('colors=RED&colors=BLUEISH')).toThrow(expect.objectContaining({ field: 'colors[1]' }))
})

test.each([
  'struct=x',
  'value=x',
  'listValue=x',
  'any=x',
  'empty=x',
  'timestamps=x',
  'structs=x',
  'wrappedInt64s=1',
  'everything=x',
  'byString=x',
])('%s is not mapped', (query) => {
  const field = query.slice(0, query.indexOf('='))
  expect(() => decode(query)).toThrow(expect.objectContaining({ kind: 'NOT_MAPPABLE', field }))
})

test.each([
  ['chosenString=a&chosenInt64=1', 'chosenInt64'],
  ['chosenInt64=1&chosenEverything.aBool=true', 'chosenEverything.aBool'],
  ['chosenEverything.aBool=true&chosenWrapper=x', 'chosenWrapper'],
  ['everything.chosenString=a&everything.chosenColor=red', 'everything.chosenColor'],
])('%s names two members of a oneof', (query, field) => {
  expect(() => decode(query)).toThrow(expect.objectContaining({ kind: 'ONEOF_CONFLICT', field }))
})

test('one member of a oneof given twice is a duplicate', () => {
  expect(() => decode('chosenString=a&chosenString=a')).toThrow(
    expect.objectContaining({ kind: 'DUPLICATE_PARAMETER' }),
  )
})

test.each([
  'struct.a=1',
  'value.stringValue=x',
  'any.typeUrl=x',
  'listValue.values=x',
  'wrappedInt32.value=1',
  'duration.seconds=1',
])('%s looks into a message that is written as one value', (query) => {
  expect(() => decode(query)).toThrow(expect.objectContaining({ kind: 'UNKNOWN_PARAMETER' }))
})

test('a proto2 field keeps its presence, and its default where it is not given', () => {
  const legacy = messageDesc('legacy.v1.Legacy')
  const message = create(legacy)
  compileQueryMapping(legacy, options)(message, 'needed=0&level=low')
  expect(toJson(legacy, message)).toEqual({ needed: 0, level: 'LOW' })
  expect(message).toMatchObject({ withDefault: 'preset' })
})

test('the names resolved so far are kept within bounds, and later ones still resolve', () => {
  for (let depth = 1; depth < 100; depth++) {
    for (const name of ['aBool', 'maybeBool', 'a_bool']) {
      expect(() => decode(`${'everything.'.repeat(depth)}${name}=true`)).not.toThrow()
    }
  }
})
