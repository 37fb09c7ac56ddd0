import { create, type DescField, type DescMessage, type DescService, getOption, ScalarType } from '@bufbuild/protobuf'
import { createValidator } from '@bufbuild/protovalidate'
import { field as rules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PaymentSearchService, SearchPaymentsRequestSchema } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { GetPaymentRoutesRequestSchema, RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { compileSurelyValid } from './surely-valid.ts'

const services: readonly DescService[] = [RoutesService, PaymentSearchService, RequestsService]
const requests = services.flatMap(({ methods }) => methods.map(({ input }) => input))

const lengths = [0, 1, 2, 3, 64, 65, 128, 129, 256, 257]
const text = fc.tuple(fc.constantFrom('a', 'é', '💶'), fc.constantFrom(...lengths)).map(([of, n]) => of.repeat(n))

function valueOf({ scalar, enum: ofEnum, message }: DescField): fc.Arbitrary<unknown> {
  if (message !== undefined) return messageOf(message)
  if (ofEnum !== undefined) return fc.constantFrom(-1, 99, ...ofEnum.values.map(({ number }) => number))
  if (scalar === ScalarType.STRING) return text
  if (scalar === ScalarType.BOOL) return fc.boolean()
  if (scalar === ScalarType.INT32) return fc.constantFrom(-1, 0, 1, 50, 100, 101, 1_000, 1_001)
  throw new Error(`no values of ${String(scalar)}`)
}

/** Some two fields as they come, so that most messages break no rule or one; of the others what is required. */
function messageOf(desc: DescMessage): fc.Arbitrary<Record<string, unknown>> {
  const fields = desc.fields.filter(({ oneof, fieldKind }) => oneof === undefined && fieldKind !== 'map')
  const usual = fields.filter((field) => getOption(field, rules).required).map(({ localName }) => [localName, 'a'])
  const some = fc
    .subarray(fields, { maxLength: Math.min(2, fields.length) })
    .chain((chosen) => fc.tuple(...chosen.map(namedValueOf)))
  return some.map((pairs) => Object.fromEntries([...usual, ...pairs]))
}

function namedValueOf(field: DescField): fc.Arbitrary<readonly [string, unknown]> {
  const most = field.message === undefined ? [0, 1, 2, 100, 101] : [0, 1]
  const list = () => fc.tuple(valueOf(field), fc.constantFrom(...most)).map(([value, n]) => Array(n).fill(value))
  return (field.fieldKind === 'list' ? list() : valueOf(field)).map((value) => [field.localName, value] as const)
}

it.each(requests)('is sure of nothing in $typeName that breaks a rule', (desc) => {
  const validator = createValidator()
  const isSurelyValid = compileSurelyValid(desc)
  fc.assert(
    fc.property(messageOf(desc), (init) => {
      const message = create(desc, init)
      if (isSurelyValid(message)) expect(validator.validate(desc, message).kind).toBe('valid')
    }),
  )
})

it('is sure of what most callers send', () => {
  const routes = { paymentReference: '0x1122334455667788', wallet: `0x${'1'.repeat(40)}`, chains: ['BASE'] }
  expect(compileSurelyValid(GetPaymentRoutesRequestSchema)(create(GetPaymentRoutesRequestSchema, routes))).toBe(true)
  const search = { currency: ['USDC'], status: [3], limit: 50, minAmount: '100', fromDate: '2026-03-01' }
  expect(compileSurelyValid(SearchPaymentsRequestSchema)(create(SearchPaymentsRequestSchema, search))).toBe(true)
})
