import { create, toBinary } from '@bufbuild/protobuf'
import { DescriptorProtoSchema, type ListValue, ListValueSchema } from '@bufbuild/protobuf/wkt'
import { expect, it } from 'vitest'
import { SearchPaymentsRequestSchema } from '../../../gen/payments/v1/payment_search_service_pb.js'
import { countFields } from './count-fields.ts'

it('counts the fields at every depth', () => {
  const field = { name: 'a', number: 1 }
  const bytes = toBinary(DescriptorProtoSchema, create(DescriptorProtoSchema, { name: 'M', field: [field, field] }))
  // The name, two fields, and two in each.
  expect(countFields(DescriptorProtoSchema, bytes, 100)).toBe(7)
})

it('counts every item of a packed list', () => {
  const bytes = toBinary(SearchPaymentsRequestSchema, create(SearchPaymentsRequestSchema, { status: [1, 2, 3] }))
  expect(countFields(SearchPaymentsRequestSchema, bytes, 100)).toBe(4)
})

it('stops a little behind the limit', () => {
  const values = Array.from({ length: 100_000 }, () => ({ kind: { case: 'boolValue' as const, value: true } }))
  const list: ListValue = create(ListValueSchema, { values })
  const count = countFields(ListValueSchema, toBinary(ListValueSchema, list), 10)
  expect(count).toBeGreaterThan(10)
  expect(count).toBeLessThan(20)
})

it.each([
  ['ends within a tag', [0x80]],
  ['ends within a field', [0x0a, 5, 1]],
  ['has a field that ends behind its message', [0x12, 2, 0x0a, 9, 0, 0, 0]],
])('throws for what %s', (_name, bytes) => {
  expect(() => countFields(DescriptorProtoSchema, Uint8Array.from(bytes), 100)).toThrow(/end|premature|range|invalid/i)
})
