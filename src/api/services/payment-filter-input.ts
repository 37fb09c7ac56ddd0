import type { Message } from '@bufbuild/protobuf'
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
const noFilters = ['sortBy', 'sortOrder', 'limit', 'cursor', 'includeTotal'] as const

/**
 * A request about payments, given its fields that are no filters. It is `never`, and so the request is accepted nowhere, where it lacks a filter of
 * the table of filters or has a field that is neither.
 */
type Complete<R extends Message, Others extends string> = [Exclude<keyof R, keyof Message | Others>] extends [
  FilterName,
]
  ? [FilterName] extends [keyof R]
    ? R
    : never
  : never

/** The requests about payments. Their filters have the same names and numbers. */
export type FilterRequest =
  | Complete<SearchPaymentsRequest, (typeof noFilters)[number]>
  | Complete<SummarizePaymentsRequest, 'groupBy' | 'top' | 'sums'>
  | Complete<ExportPaymentsRequest, 'after' | 'format' | 'columns'>
  | Complete<WatchPaymentsRequest, 'watchCursor' | 'ticket'>

/** The words of each filter that is sent as numbers of an enum. */
const enums: { readonly [N in keyof FilterWords]: ReadonlyMap<number, FilterWords[N]> } = {
  status: new Map(paymentStatuses.map((word) => [Payment_Status[word], word])),
  type: new Map(paymentTypes.map((word) => [Payment_Type[word], word])),
}

const wordsByName: Readonly<Record<string, ReadonlyMap<number, string>>> = enums

/** All filters; those of an enum with the word for each of its numbers. */
const readers = SearchPaymentsRequestSchema.fields.flatMap(({ localName }) => {
  if (noFilters.some((name) => name === localName)) return []
  return [{ name: localName as FilterName, words: wordsByName[localName] }]
})

/** Reads the filters of a request about payments. */
export function filterInputOf(request: FilterRequest): FilterInput {
  const sent = readers.map(({ name, words }) => {
    const value = request[name]
    if (words === undefined) return [name, value]
    return [name, (value as readonly number[]).map((number) => wordOf(name, words, number))]
  })
  return Object.fromEntries(sent)
}

/** The name for a number of an enum. @throws WaybillError UNKNOWN_ENUM_VALUE for a number that is not a member, which is never ignored */
export function wordOf<W extends string | undefined>(field: string, words: ReadonlyMap<number, W>, number: number): W {
  if (words.has(number)) return words.get(number) as W
  const known = [...words.values()].filter((word) => word !== undefined).map((word) => word.toUpperCase())
  throw waybillError('UNKNOWN_ENUM_VALUE', { field, value: number, suggestion: suggestName(String(number), known) })
}
