import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf'
import { Pagination_TotalRelation, type PaginationSchema } from '../../../gen/payments/v1/pagination_pb.js'
import { type PaymentExclusion, PaymentExclusionSchema } from '../../../gen/payments/v1/payment_exclusion_pb.js'
import { Payment_Status, Payment_Type } from '../../../gen/payments/v1/payment_pb.js'
import {
  type ExportPaymentsRequest,
  type SearchPaymentsRequest,
  SearchPaymentsRequestSchema,
  type SummarizePaymentsRequest,
  type WatchPaymentsRequest,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import { suggestName } from '../../domain/nearest.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { FilterInput, FilterName, FilterWords } from '../../search/filter/search-fields.ts'
import type { PaymentPage } from '../../search/page/payment-search.ts'

/** The fields of a search that are no filters. */
export const noFilters = ['sortBy', 'sortOrder', 'limit', 'cursor', 'includeTotal'] as const
type NoFilter = (typeof noFilters)[number]

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
  | Complete<SummarizePaymentsRequest, 'groupBy' | 'metadataKey' | 'top' | 'sums'>
  | Complete<ExportPaymentsRequest, 'after' | 'format' | 'columns'>
  | Complete<WatchPaymentsRequest, 'watchCursor' | 'ticket'>

/** The enum of each filter that is sent as numbers. */
const enums: { readonly [N in 'status' | 'type']: Readonly<Record<FilterWords[N], number>> } = {
  status: Payment_Status,
  type: Payment_Type,
}

const enumsByField: Readonly<Record<string, Readonly<Record<string, unknown>>>> = enums

/** Fields that are filters; those that are sent as numbers with their enum. */
function readersOf({ fields }: DescMessage, prefix = '') {
  return fields.flatMap(({ localName }) =>
    ([...noFilters, 'exclude'] as readonly string[]).includes(localName)
      ? []
      : [{ localName, name: `${prefix}${localName}`, members: enumsByField[localName] }],
  )
}

const readers = readersOf(SearchPaymentsRequestSchema)
const exclusionReaders = readersOf(PaymentExclusionSchema, 'exclude.')

/** Reads the filters of a request about payments. */
export function filterInputOf(request: FilterRequest): FilterInput {
  const read = (from: object, some: typeof readers) =>
    some.map(({ localName, name, members }) => {
      const value = (from as Readonly<Record<string, unknown>>)[localName]
      if (members === undefined) return [name, value]
      return [name, (value as readonly number[]).map((number) => memberOf(name, members, number))]
    })
  const { exclude } = request
  return Object.fromEntries([...read(request, readers), ...(exclude ? read(exclude, exclusionReaders) : [])])
}

/** The names of an enum but for the zero value, which says nothing. */
type Member<E> = Exclude<keyof E & string, `${string}UNSPECIFIED`>

/**
 * The name for a number of an enum.
 *
 * @throws WaybillError UNKNOWN_ENUM_VALUE for a number that is not a member, and for the zero value: neither is ever ignored
 */
export function memberOf<E extends Readonly<Record<string, unknown>>>(
  field: string,
  members: E,
  number: number,
): Member<E> {
  const name = Object.keys(members).find((each) => members[each] === number)
  if (name !== undefined && number !== 0) return name as Member<E>
  const named = Object.entries(members).filter(([, value]) => typeof value === 'number' && value !== 0)
  const known = named.map(([each]) => each.toUpperCase())
  throw waybillError('UNKNOWN_ENUM_VALUE', { field, value: number, suggestion: suggestName(String(number), known) })
}

/** The same in lower case, and undefined for the zero value. */
export function wordOf<E extends Readonly<Record<string, unknown>>>(
  field: string,
  members: E,
  number: number,
): Lowercase<Member<E>> | undefined {
  return number === 0 ? undefined : (memberOf(field, members, number).toLowerCase() as Lowercase<Member<E>>)
}

/** The pagination of an answer with one page of a list. */
export function paginationOf(page: PaymentPage['pagination']): MessageInitShape<typeof PaginationSchema> {
  const { limit, nextCursor, prevCursor, total } = page
  const totalRelation = total && Pagination_TotalRelation[total.relation]
  return { limit, hasMore: nextCursor !== undefined, nextCursor, prevCursor, total: total?.count, totalRelation }
}
