import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  type Message,
  type MessageInitShape,
  ScalarType,
  setExtension,
} from '@bufbuild/protobuf'
import {
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt'
import { createValidator } from '@bufbuild/protovalidate'
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { expect, it } from 'vitest'
import {
  PaymentSearchService,
  SearchPaymentsRequestSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { GetPaymentRoutesRequestSchema, RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import { compileFastValidation } from './validation.ts'

const services: readonly DescService[] = [RoutesService, PaymentSearchService, RequestsService]
const requests = services.flatMap(({ methods }) => methods.map(({ input }) => input))

/** Values within rules, at their bounds and beyond. */
const lengths = [0, 1, 2, 3, 64, 65, 128, 129, 256, 257]
const texts = ['a', 'é', '💶'].flatMap((of) => lengths.map((n) => of.repeat(n)))
const numbers = [-1, 0, 1, 50, 100, 101, 1_000, 1_001]

function valuesOf({ scalar, enum: ofEnum, message }: DescField): readonly unknown[] {
  if (message !== undefined) return [{}]
  if (ofEnum !== undefined) return [-1, 99, ...ofEnum.values.map(({ number }) => number)]
  if (scalar === ScalarType.STRING) return texts
  if (scalar === ScalarType.BOOL) return [false, true]
  if (scalar === ScalarType.INT32) return numbers
  throw new Error(`no values of ${String(scalar)}`)
}

function listsOf(values: readonly unknown[]): readonly unknown[] {
  const long = values.length > 1 ? [2, 100, 101] : []
  return [[], ...values.map((value) => [value]), ...long.map((n) => Array(n).fill(values[1]))]
}

/** For each field, messages with each of its values and without it. The other fields are valid. */
function* messagesOf(desc: DescMessage): Generator<Message> {
  const fields = desc.fields.filter(({ oneof, fieldKind }) => oneof === undefined && fieldKind !== 'map')
  const usual = fields.filter((field) => field.scalar && getOption(field, fieldRules).required)
  for (const field of fields) {
    const others = usual
      .filter((each) => each !== field)
      .map(({ localName, fieldKind }) => [localName, fieldKind === 'list' ? ['a'] : 'a'] as const)
    const values = field.fieldKind === 'list' ? listsOf(valuesOf(field)) : valuesOf(field)
    for (const value of [undefined, ...values]) {
      yield create(desc, Object.fromEntries([...others, [field.localName, value]]))
    }
  }
}

/** How many messages the fast path accepts, and those of them that break a rule. */
function check(desc: DescMessage): { readonly accepted: number; readonly wrong: readonly Message[] } {
  const validator = createValidator()
  const accepted = [...messagesOf(desc)].filter(compileFastValidation(desc))
  return {
    accepted: accepted.length,
    wrong: accepted.filter((message) => validator.validate(desc, message).kind !== 'valid'),
  }
}

it.each(requests)('accepts no $typeName that breaks a rule', (desc) => {
  expect(check(desc).wrong).toEqual([])
})

it('accepts the requests of most callers', () => {
  const routes = { paymentReference: '0x1122334455667788', wallet: `0x${'1'.repeat(40)}`, chains: ['BASE'] }
  expect(compileFastValidation(GetPaymentRoutesRequestSchema)(create(GetPaymentRoutesRequestSchema, routes))).toBe(true)
  const search = { currency: ['USDC'], status: [3], limit: 50, minAmount: '100', fromDate: '2026-03-01' }
  expect(compileFastValidation(SearchPaymentsRequestSchema)(create(SearchPaymentsRequestSchema, search))).toBe(true)
})

type Rules = MessageInitShape<typeof FieldRulesSchema>
interface Field {
  readonly type?: Type
  readonly kind?: 'optional' | 'repeated'
  readonly rules: Rules
}

/** A message with one field, as it would be compiled from its definition. */
function messageWith(
  { type = Type.STRING, kind, rules }: Field,
  ofMessage?: MessageInitShape<typeof MessageRulesSchema>,
) {
  const options = create(FieldOptionsSchema)
  setExtension(options, fieldRules, create(FieldRulesSchema, rules))
  const messageOptions = create(MessageOptionsSchema)
  if (ofMessage !== undefined) setExtension(messageOptions, messageRules, create(MessageRulesSchema, ofMessage))
  const ofKind = kind === 'optional' ? { proto3Optional: true, oneofIndex: 0 } : {}
  const label = kind === 'repeated' ? Label.REPEATED : Label.OPTIONAL
  const typeName = type === Type.ENUM ? '.test.Side' : type === Type.MESSAGE ? '.test.Asked' : ''
  const file = create(FileDescriptorProtoSchema, {
    name: 'test.proto',
    package: 'test',
    syntax: 'proto3',
    enumType: [{ name: 'Side', value: ['NONE', 'LEFT', 'RIGHT'].map((name, number) => ({ name, number })) }],
    messageType: [
      {
        name: 'Asked',
        options: messageOptions,
        field: [{ name: 'value', jsonName: 'value', number: 1, type, typeName, label, options, ...ofKind }],
        oneofDecl: kind === 'optional' ? [{ name: '_value' }] : [],
      },
    ],
  })
  const desc = createFileRegistry(file, () => undefined).getMessage('test.Asked')
  if (desc === undefined) throw new Error('there is no such message')
  return desc
}

const text = (value: object): Rules => ({ type: { case: 'string', value } })
const list = (value: object): Rules => ({ type: { case: 'repeated', value } })
const number = (value: object): Rules => ({ type: { case: 'int32', value } })
const { INT32, ENUM, MESSAGE } = Type

/** A field, and how many of its messages the fast path accepts. */
const known: readonly (readonly [string, Field, number])[] = [
  ['texts without rules', { rules: {} }, 31],
  ['texts of some length', { rules: text({ minLen: 3n, maxLen: 128n }) }, 8],
  ['a required text', { rules: { required: true } }, 27],
  ['a required text that may be unset', { kind: 'optional', rules: { required: true } }, 30],
  [
    'numbers from and to',
    { type: INT32, rules: number({ greaterThan: { case: 'gte', value: 0 }, lessThan: { case: 'lte', value: 100 } }) },
    5,
  ],
  [
    'numbers beyond',
    { type: INT32, rules: number({ greaterThan: { case: 'gte', value: 100 }, lessThan: { case: 'lte', value: 0 } }) },
    0,
  ],
  [
    'members of an enum',
    { type: ENUM, rules: { type: { case: 'enum', value: { definedOnly: true, notIn: [0] } } } },
    2,
  ],
  ['lists of some length', { kind: 'repeated', rules: list({ maxItems: 100n, items: text({ maxLen: 64n }) }) }, 18],
  ['a required list', { kind: 'repeated', rules: { required: true, ...list({ maxItems: 100n }) } }, 32],
]

it.each(known)('checks %s', (_, field, accepted) => {
  expect(check(messageWith(field))).toEqual({ accepted, wrong: [] })
})

const isA = { cel: [{ id: 'a', message: 'a', expression: 'this == "a"' }] }

it.each<readonly [string, Field]>([
  ['patterns', { rules: text({ pattern: '^a*$' }) }],
  ['bytes of texts', { rules: text({ maxBytes: 3n }) }],
  ['expressions', { rules: isA }],
  ['expressions of items', { kind: 'repeated', rules: list({ items: isA }) }],
  ['the least length of a list', { kind: 'repeated', rules: list({ minItems: 1n }) }],
  ['items that are not to be twice', { kind: 'repeated', rules: list({ unique: true }) }],
  ['what items are to match', { kind: 'repeated', rules: list({ items: text({ pattern: '^a*$' }) }) }],
  ['numbers between', { type: INT32, rules: number({ greaterThan: { case: 'gt', value: 0 } }) }],
])('accepts no message that breaks a rule that it does not check: %s', (_, field) => {
  expect(check(messageWith(field))).toMatchObject({ wrong: [] })
})

it('leaves messages with rules of their own to protovalidate', () => {
  expect(check(messageWith({ type: MESSAGE, kind: 'optional', rules: {} })).accepted).toBe(1)
  const cel = [{ id: 'a', message: 'a', expression: 'this.value == "a"' }]
  expect(check(messageWith({ rules: {} }, { cel })).accepted).toBe(0)
})
