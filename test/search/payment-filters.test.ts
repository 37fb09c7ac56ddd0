import { readFileSync } from 'node:fs'
import { clone, create, type DescField, toJson } from '@bufbuild/protobuf'
import { FieldDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { expect, test } from 'vitest'
import {
  ExportPaymentsRequestSchema,
  SearchPaymentsRequestSchema,
  SummarizePaymentsRequestSchema,
  WatchPaymentsRequestSchema,
} from '../../gen/payments/v1/payment_search_service_pb.js'
import { filterInputOf } from '../../src/api/services/payment-filter-input.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { buildsIndexes, statementOf } from '../../src/postgres/migrations/migration.ts'
import { filterFields } from '../../src/search/filter/search-fields.ts'
import { indexes } from '../../src/search/plan/sources.ts'
import { cases } from './oracle-walks.ts'

const others = [SummarizePaymentsRequestSchema, ExportPaymentsRequestSchema, WatchPaymentsRequestSchema]

/** Field numbers with the same meaning in all four messages. */
const isFilter = ({ number }: DescField) => number <= 17 || (number >= 23 && number <= 29) || number >= 37

/** The declaration of a field with its rules, without the index of its synthetic oneof. */
function declared(field: DescField) {
  const proto = clone(FieldDescriptorProtoSchema, field.proto)
  proto.oneofIndex = 0
  return {
    ...(toJson(FieldDescriptorProtoSchema, proto) as object),
    options: String(proto.options?.$unknown?.map(({ no, data }) => [no, data])),
  }
}

test.each(others.map((schema) => [schema.name, schema] as const))(
  '%s declares the filters of search, under the same numbers and rules',
  (_, { fields }) => {
    expect(fields.filter(isFilter).map(declared)).toEqual(
      SearchPaymentsRequestSchema.fields.filter(isFilter).map(declared),
    )
    expect(fields.filter((field) => !isFilter(field)).every(({ number }) => number >= 30)).toBe(true)
  },
)

test('the proto declares exactly the filters that the search knows', () => {
  const declaredNames = SearchPaymentsRequestSchema.fields
    .filter(isFilter)
    .flatMap(({ localName, message }) =>
      message === undefined ? [localName] : message.fields.map((field) => `${localName}.${field.localName}`),
    )
  const request = create(SearchPaymentsRequestSchema, { exclude: {} })
  expect(Object.keys(filterInputOf(request)).toSorted()).toEqual(declaredNames.toSorted())
  expect(filterFields.map(({ name }) => name).toSorted()).toEqual(declaredNames.toSorted())
})

test('every filter has a case in the oracle, and a row in the reference', () => {
  const names = filterFields.map(({ name }) => name)
  const tried = new Set(cases.flatMap(({ input }) => Object.keys(input)))
  expect(names.filter((name) => !tried.has(name))).toEqual([])
  const rows = readFileSync('docs/reference/payments.md', 'utf8').match(/^\| `.*$/gm) ?? []
  const firstCells = rows.map((row) => row.split('|')[1]).join()
  expect(names.filter((name) => !firstCells.includes(`\`${name}\``))).toEqual([])
})

const later = MIGRATIONS.flatMap((step) => (buildsIndexes(step) ? step.indexes.map(statementOf) : []))
const schema = [readFileSync('src/postgres/schema.sql', 'utf8'), ...later].join('\n').replaceAll(' concurrently', '')
/** The others stand for several indexes, or for a range of one. */
const chosen = Object.entries(indexes).filter(([name]) => /^payments?_/.test(name))

test('every index of payments that the schema has for searches is known to them', () => {
  const others = ['payments_not_final', 'payments_superseded', 'payments_source_tx', 'payments_refund_tx']
  const created = [...schema.matchAll(/create index (payments?_\w+) on payment(?:s|_metadata) /g)].map(
    ([, name = '']) => name,
  )
  expect(created.filter((name) => !others.includes(name)).toSorted()).toEqual(chosen.map(([name]) => name).toSorted())
})

test.each(chosen)('the schema has the index %s as searches know it', (name, { order, hasStatus, includes }) => {
  const created = new RegExp(
    `create index ${name} on payment\\w+ \\(account_id, ([\\w, ]+), id\\)(?:\\s+include \\(([\\w, ]+)\\))?`,
  )
  const [, keys = '', others] = created.exec(schema) ?? []
  expect(keys).toMatch(new RegExp(`(^|, )${hasStatus ? 'status, ' : ''}${order}$`))
  const held = (columns: readonly string[]) => new Set([...keys.split(', '), ...columns])
  expect(held(includes)).toEqual(held(others?.split(', ') ?? []))
})
