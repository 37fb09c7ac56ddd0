import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf'
import { anyPack, StringValueSchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  SearchPaymentsRequestSchema,
  SearchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import {
  GetPaymentRoutesResponseSchema,
  StreamPaymentRoutesResponseSchema,
} from '../../../gen/payments/v1/routes_service_pb.js'
import { arbitraryMessage } from '../testdata/arbitrary-message.ts'
import { files, messageDesc } from '../testdata/library.ts'
import { compileJsonSerializer, compileStableJsonSerializer } from './json-serializer.ts'

const everything = messageDesc('everything.v1.Everything')
const book = messageDesc('library.v1.Book')

function oracle(desc: DescMessage, message: Message): string {
  return JSON.stringify(toJson(desc, message, { alwaysEmitImplicit: true }))
}

/** Removes the type names, so that no object is a message, as in the answers of handlers. */
function plainOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainOf)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (name === '$typeName' ? [] : [[name, plainOf(each)]])),
  )
}

test.each([
  SearchPaymentsResponseSchema,
  SearchPaymentsRequestSchema,
  GetPaymentRoutesResponseSchema,
  StreamPaymentRoutesResponseSchema,
  book,
])('writes any %s as protobuf-es does, also from plain objects', (desc) => {
  const serialize = compileJsonSerializer(desc)
  fc.assert(
    fc.property(arbitraryMessage(desc, {}, 4), (message) => {
      const expected = oracle(desc, message)
      expect(serialize(message)).toBe(expected)
      expect(serialize(plainOf(message) as object)).toBe(expected)
    }),
    { numRuns: 200 },
  )
})

const registry = createRegistry(StringValueSchema, TimestampSchema)
const legacy = messageDesc('legacy.v1.Legacy')

test.each([everything, legacy])('leaves fields of a rare kind, as in %s, to protobuf-es', (desc) => {
  const serialize = compileJsonSerializer(desc, registry)
  fc.assert(
    fc.property(arbitraryMessage(desc), (message) => {
      const expected = JSON.stringify(toJson(desc, message, { alwaysEmitImplicit: true, registry }))
      expect(serialize(message)).toBe(expected)
    }),
    { numRuns: 100 },
  )
  const plain = { aString: 'a', aBytes: Uint8Array.of(1) }
  expect(compileJsonSerializer(everything)(plain)).toBe(oracle(everything, create(everything, plain)))
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

const serialize = compileJsonSerializer(SearchPaymentsResponseSchema)

test.each([0, 1, 43, 44, 45, 46, 5_000])('escapes texts of %d characters', (length) => {
  for (const odd of ['"', '\\', '\n', '\u0000', '\u001f', '\u007f', 'é', '\u2028', '😀', '\ud800', '\udc00']) {
    for (const id of [odd + 'a'.repeat(length), 'a'.repeat(length) + odd]) {
      const [payment] = JSON.parse(serialize({ payments: [{ id }] })).payments
      expect(payment.id).toBe(id)
      expect(serialize({ payments: [{ id }] })).toContain(JSON.stringify(id))
    }
  }
})

test('writes zeros and empty lists, and leaves out what has presence and is not set', () => {
  expect(serialize({})).toBe('{"payments":[],"asOf":[],"removed":[]}')
  expect(serialize({ pagination: {}, payments: [{ gas: { used: 0n }, payer: undefined }] })).toBe(
    oracle(
      SearchPaymentsResponseSchema,
      create(SearchPaymentsResponseSchema, { pagination: {}, payments: [{ gas: { used: 0n } }] }),
    ),
  )
})

describe('the stable text', () => {
  const isVolatile = ({ jsonName }: DescField) => ['confirmations', 'watchCursor'].includes(jsonName)
  const serializeStable = compileStableJsonSerializer(SearchPaymentsResponseSchema, isVolatile)
  const page = (volatile: object, other: object = {}, watchCursor?: string) =>
    serializeStable?.({
      payments: [
        { id: 'a\0', ...volatile },
        { amount: '2', ...other },
      ],
      watchCursor,
    })

  test('is equal where only volatile fields differ', () => {
    const stable = page({})?.stable
    expect(stable).toContain('"amount":"2"')
    expect(page({ confirmations: 1 })?.stable).toBe(stable)
    expect(page({ confirmations: 22 }, { confirmations: 3 }, 'cursor')?.stable).toBe(stable)
    expect(page({}, { amount: '3' })?.stable).not.toBe(stable)
  })

  test('comes with the whole text, as protobuf-es writes it', () => {
    fc.assert(
      fc.property(arbitraryMessage(SearchPaymentsResponseSchema, {}, 4), (message) => {
        expect(serializeStable?.(message).text).toBe(oracle(SearchPaymentsResponseSchema, message))
      }),
      { numRuns: 100 },
    )
  })

  test('is undefined for fields of a rare kind; a volatile field needs one before it that is always written', () => {
    expect(compileStableJsonSerializer(everything, isVolatile)).toBeUndefined()
    const first = ({ jsonName }: DescField) => jsonName === 'payments'
    expect(() => compileStableJsonSerializer(SearchPaymentsResponseSchema, first)).toThrow('always written')
  })
})

test.each([
  ['a time after the year 9999', { payments: [{ timestamp: { seconds: 253_402_300_800n } }] }],
  ['a number in a string', { payments: [{ id: 1 }] }],
  ['a string in an enum', { payments: [{ status: 'PAID' }] }],
  ['a fraction in a 64-bit integer', { payments: [{ blockNumber: 1.5 }] }],
  ['a string in a bool', { payments: [{ completed: 'true' }] }],
  ['a message of another type', create(TimestampSchema)],
  ['a message of another type within', { payments: [create(TimestampSchema)] }],
])('refuses %s', (_, message) => {
  expect(() => serialize(message)).toThrow(Error)
})
