import type { DescMessage, Message } from '@bufbuild/protobuf'
import { type PaymentExclusion, PaymentExclusionSchema } from '../../../gen/payments/v1/payment_exclusion_pb.js'
import type { ExportPaymentsRequest } from '../../../gen/payments/v1/payment_export_pb.js'
import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import {
  type SearchPaymentsRequest,
  SearchPaymentsRequestSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { SummarizePaymentsRequest } from '../../../gen/payments/v1/payment_summary_pb.js'
import type { WatchPaymentsRequest } from '../../../gen/payments/v1/payment_watch_pb.js'
import { suggestName } from '../../domain/nearest.ts'
import { paymentStatuses, paymentTypes } from '../../domain/payment.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { FilterInput, FilterName, FilterWords } from '../../search/filter/search-fields.ts'

/** The fields of a search that are no filters. */
const noFilters: readonly string[] = [
  'sortBy',
  'sortOrder',
  'limit',
  'cursor',
  'includeTotal',
] satisfies readonly NoFilter[]
type NoFilter = 'sortBy' | 'sortOrder' | 'limit' | 'cursor' | 'includeTotal'

/**
 * A request about payments, given its fields that are no filters. It is `never`, and so the request is accepted nowhere, where it lacks a filter of
 * the table of filters or has a field that is neither.
 */
type Complete<R extends Message & Excluding, Others extends string> = [FiltersIn<R, Others>] extends [FilterName]
  ? [FilterName] extends [FiltersIn<R, Others>]
    ? R
    : never
  : never

interface Excluding {
  readonly exclude?: PaymentExclusion | undefined
}
type FiltersIn<R, Others extends string> =
  | Exclude<keyof R, keyof Message | 'exclude' | Others>
  | `exclude.${Exclude<keyof PaymentExclusion, keyof Message>}`

/** The requests about payments. Their filters have the same names and numbers. */
export type FilterRequest =
  | Complete<SearchPaymentsRequest, NoFilter>
  | Complete<SummarizePaymentsRequest, 'groupBy' | 'top' | 'sums'>
  | Complete<ExportPaymentsRequest, 'after' | 'format' | 'columns'>
  | Complete<WatchPaymentsRequest, 'watchCursor' | 'ticket'>

/** The words of each filter that is sent as numbers of an enum. */
const enums: { readonly [N in 'status' | 'type']: ReadonlyMap<number, FilterWords[N]> } = {
  status: new Map(paymentStatuses.map((word) => [Payment_Status[word], word])),
  type: new Map(paymentTypes.map((word) => [Payment_Type[word], word])),
}

const wordsByField: Readonly<Record<string, ReadonlyMap<number, string>>> = enums

/** Fields that are filters; those of an enum with the word for each of its numbers. */
function readersOf({ fields }: DescMessage, prefix = '') {
  return fields.flatMap(({ localName }) =>
    [...noFilters, 'exclude'].includes(localName)
      ? []
      : [{ localName, name: `${prefix}${localName}`, words: wordsByField[localName] }],
  )
}

const readers = readersOf(SearchPaymentsRequestSchema)
const exclusionReaders = readersOf(PaymentExclusionSchema, 'exclude.')

/** Reads the filters of a request about payments. */
export function filterInputOf(request: FilterRequest): FilterInput {
  const read = (from: object, some: typeof readers) =>
    some.map(({ localName, name, words }) => {
      const value = (from as Readonly<Record<string, unknown>>)[localName]
      if (words === undefined) return [name, value]
      return [name, (value as readonly number[]).map((number) => wordOf(name, words, number))]
    })
  const { exclude } = request
  return Object.fromEntries([...read(request, readers), ...(exclude ? read(exclude, exclusionReaders) : [])])
}

/** The name for a number of an enum. @throws WaybillError UNKNOWN_ENUM_VALUE for a number that is not a member, which is never ignored */
export function wordOf<W extends string | undefined>(field: string, words: ReadonlyMap<number, W>, number: number): W {
  if (words.has(number)) return words.get(number) as W
  const known = [...words.values()].filter((word) => word !== undefined).map((word) => word.toUpperCase())
  throw waybillError('UNKNOWN_ENUM_VALUE', { field, value: number, suggestion: suggestName(String(number), known) })
}
