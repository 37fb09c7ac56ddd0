import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { DescriptorProtoSchema, ListValueSchema } from '@bufbuild/protobuf/wkt'
import { expect, it } from 'vitest'
import { SearchPaymentsRequestSchema } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { checkBinary } from './message-codec.ts'

const limits = { maxValues: 100, maxDepth: 100 }

function encode<D extends DescMessage>(desc: D, init: MessageInitShape<D>): Uint8Array {
  return toBinary(desc, create(desc, init))
}

const field = { name: 'a', number: 1 }
const nested = { name: 'M', nestedType: [{ name: 'N', nestedType: [{ name: 'O' }] }] }

it.each([
  // The name, two fields, and two in each.
  ['fields at every depth', DescriptorProtoSchema, { name: 'M', field: [field, field] }, 7],
  ['every item of a packed list', SearchPaymentsRequestSchema, { status: [1, 2, 3] }, 4],
] as const)('counts %s', (_name, desc, init, values) => {
  const bytes = encode(desc as DescMessage, init as Record<string, unknown>)
  expect(() => checkBinary(desc, bytes, { ...limits, maxValues: values })).not.toThrow()
  expect(() => checkBinary(desc, bytes, { ...limits, maxValues: values - 1 })).toThrow(
    expect.objectContaining({ reason: 'BODY_TOO_COMPLEX' }),
  )
})

it('stops at the limit of values', () => {
  const values = Array.from({ length: 100_000 }, () => ({ kind: { case: 'boolValue' as const, value: true } }))
  // After the limit come bytes that would be refused as malformed.
  const bytes = Buffer.concat([encode(ListValueSchema, { values }), Buffer.from([0xff])])
  expect(() => checkBinary(ListValueSchema, bytes, { ...limits, maxValues: 10 })).toThrow(
    expect.objectContaining({ reason: 'BODY_TOO_COMPLEX' }),
  )
})

it('counts messages within messages', () => {
  const bytes = encode(DescriptorProtoSchema, nested)
  expect(() => checkBinary(DescriptorProtoSchema, bytes, { ...limits, maxDepth: 3 })).not.toThrow()
  expect(() => checkBinary(DescriptorProtoSchema, bytes, { ...limits, maxDepth: 2 })).toThrow(
    expect.objectContaining({ reason: 'BODY_TOO_COMPLEX' }),
  )
})

it.each([
  ['a number for a text', [0x08, 5], 'name'],
  ['a text for a number, in a field of a field', [0x12, 3, 0x1a, 1, 0x61], 'field[0].number'],
  ['32 bits for a message', [0x15, 0, 0, 0, 0], 'field'],
])('refuses %s', (_name, bytes, path) => {
  expect(() => checkBinary(DescriptorProtoSchema, Uint8Array.from(bytes), limits)).toThrow(
    expect.objectContaining({ kind: 'INVALID_VALUE', field: path }),
  )
})

it.each([
  ['ends within a tag', [0x80]],
  ['ends within a field', [0x0a, 5, 1]],
  ['has a field that extends beyond its message', [0x12, 2, 0x0a, 9, 0, 0, 0]],
  ['has a number that extends beyond its message', [0x12, 2, 0x18, 0x80, 0x01]],
  ['has a field of number 0', [0x02, 1, 0x61]],
])('throws for a message that %s', (_name, bytes) => {
  expect(() => checkBinary(DescriptorProtoSchema, Uint8Array.from(bytes), limits)).toThrow(
    /end|premature|range|invalid|illegal/i,
  )
})
