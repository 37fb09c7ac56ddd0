import { create, toBinary } from '@bufbuild/protobuf'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  SearchPaymentsRequestSchema,
  type SearchPaymentsResponse,
  SearchPaymentsResponseSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { GetPaymentRoutesResponseSchema } from '../../../gen/payments/v1/routes_service_pb.js'
import { arbitraryMessage } from '../testdata/arbitrary-message.ts'
import { messageDesc } from '../testdata/library.ts'
import { compileBinarySerializer } from './binary-serializer.ts'

const everything = messageDesc('everything.v1.Everything')

it.each([SearchPaymentsResponseSchema, SearchPaymentsRequestSchema, GetPaymentRoutesResponseSchema, everything])(
  'writes any %s as protobuf-es does',
  (desc) => {
    const serialize = compileBinarySerializer(desc)
    fc.assert(
      fc.property(arbitraryMessage(desc, {}, 4), (message) => {
        expect(Buffer.from(serialize(message))).toEqual(Buffer.from(toBinary(desc, message)))
      }),
      // A message of Everything takes milliseconds to make.
      { numRuns: desc === everything ? 50 : 150 },
    )
  },
)

const serialize = compileBinarySerializer(SearchPaymentsResponseSchema)
const isSame = (message: SearchPaymentsResponse) =>
  Buffer.from(serialize(message)).equals(toBinary(SearchPaymentsResponseSchema, message))

it.each([0, 1, 47, 48, 49, 127, 128, 16_383, 16_384, 70_000, 3_000_000])('writes texts of %d characters', (length) => {
  for (const letter of ['a', 'é', '€', '😀', '\ud800']) {
    const text = letter.repeat(length)
    expect(
      isSame(create(SearchPaymentsResponseSchema, { payments: [{ id: text, reference: 'x' }, { id: 'b' }] })),
    ).toBe(true)
  }
})

it('keeps unknown fields', () => {
  const message = create(SearchPaymentsResponseSchema)
  message.$unknown = [{ no: 99, wireType: 0, data: Uint8Array.of(1) }]
  expect(isSame(message)).toBe(true)
})

it('refuses values that do not fit, and still works afterwards', () => {
  const writeTime = compileBinarySerializer(TimestampSchema)
  expect(() => writeTime(create(TimestampSchema, { seconds: 2n ** 63n }))).toThrow('does not fit')
  expect(() => writeTime(create(TimestampSchema, { nanos: 1.5 }))).toThrow('does not fit')
  expect(() => serialize(create(TimestampSchema))).toThrow('is no payments.v1.SearchPaymentsResponse')
  expect(isSame(create(SearchPaymentsResponseSchema, { payments: [{ id: 'a' }] }))).toBe(true)
})

it('writes an object from which create would make a message', () => {
  const plain = {
    payments: [
      {
        id: 'a',
        status: 2,
        completed: false,
        blockNumber: 7n,
        timestamp: { seconds: 5n },
        fees: [{ type: 1, amount: '1' }],
      },
      { id: 'b', payer: undefined, gas: { used: 0n } },
    ],
    pagination: { limit: 50, hasMore: false, nextCursor: undefined },
  }
  const written = Buffer.from(serialize(plain))
  expect(written).toEqual(
    Buffer.from(toBinary(SearchPaymentsResponseSchema, create(SearchPaymentsResponseSchema, plain))),
  )
})

it('writes any message from its plain properties as well', () => {
  fc.assert(
    fc.property(arbitraryMessage(SearchPaymentsResponseSchema, {}, 4), (message) => {
      const { $typeName: _, ...plain } = message
      expect(Buffer.from(serialize(plain))).toEqual(
        Buffer.from(toBinary(SearchPaymentsResponseSchema, message as never)),
      )
    }),
    { numRuns: 100 },
  )
})
