import type { DescMethod } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { restRequestOf } from '../support/clients/clients.ts'

/** Generates invalid requests that are near enough to valid ones to pass the first checks. */

const nasty = [
  '',
  '0',
  '-1',
  '1e3',
  '__proto__',
  'constructor',
  '\0',
  "'; drop table payments; --",
  '%',
  ',',
  '🦄',
  '1'.repeat(80),
]
const good = [
  'USDC',
  'CONFIRMED',
  '2026-03-01',
  'ETHEREUM',
  'amount',
  'ab'.repeat(32),
  `0x${'a'.repeat(40)}`,
  '1122334455667788',
]

const bytes = fc.oneof(
  fc.constantFrom(...nasty, ...good).map((text) => Buffer.from(text)),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array)),
)

const escaped = bytes.map((each) => [...each].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''))
const value = fc.oneof(escaped, fc.constantFrom('', '%', '%0', '+', ',,', '%zz', ...good))

function namesOf(methods: readonly DescMethod[]): string[] {
  return [...new Set(methods.flatMap(({ input }) => input.fields.flatMap(({ name, jsonName }) => [name, jsonName])))]
}

/** REST targets: the path of a method with its variables, and up to four parameters. */
export function arbitraryTarget(methods: readonly DescMethod[]): fc.Arbitrary<string> {
  const known = fc.constantFrom(...namesOf(methods))
  const name = fc.oneof({ weight: 4, arbitrary: known }, { weight: 1, arbitrary: value })
  const query = fc.array(fc.tuple(name, value), { maxLength: 4 })
  return fc.tuple(fc.constantFrom(...methods), value, query).map(([method, variable, pairs]) => {
    // With empty variables a path has two slashes in a row, or one at its end.
    const path = restRequestOf(method, {}).target.replace('//', `/${variable}/`).replace(/\/$/, `/${variable}`)
    return `${path}?${pairs.map((pair) => pair.join('=')).join('&')}`
  })
}

/** Fields of a JSON body. */
export function arbitraryJson(methods: readonly DescMethod[]): fc.Arbitrary<Record<string, unknown>> {
  const name = fc.oneof(fc.constantFrom(...namesOf(methods)), fc.string())
  const single = fc.oneof(
    fc.constantFrom(...nasty, ...good),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.jsonValue(),
  )
  return fc.dictionary(name, fc.oneof(single, fc.array(single)), { maxKeys: 4 })
}

const VARINT = 0
const LENGTH_DELIMITED = 2

/** Bytes of a binary message: arbitrary ones, or up to four fields with numbers from 1 to 24. */
export function arbitraryMessage(): fc.Arbitrary<Buffer> {
  const number = fc.integer({ min: 1, max: 24 })
  const field = fc.tuple(number, fc.constantFrom(VARINT, LENGTH_DELIMITED), bytes).map(([no, wireType, content]) => {
    const tag = varint((no << 3) | wireType)
    const rest = wireType === VARINT ? [content[0] ?? 0] : [...varint(content.length), ...content]
    return Buffer.from([...tag, ...rest])
  })
  return fc.oneof(
    bytes,
    fc.array(field, { maxLength: 4 }).map((fields) => Buffer.concat(fields)),
  )
}

/** A varint of at most two bytes. */
function varint(number: number): number[] {
  return number < 128 ? [number] : [(number & 127) | 128, number >> 7]
}
