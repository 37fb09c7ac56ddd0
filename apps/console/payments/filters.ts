/**
 * The filters of the payments, as they stand in the link. A parameter has the name of the search's field, but for `from` and `to`, which are days
 * of a zone, and `by`, `split` and `measure` of the chart.
 */
import {
  Payment_Status,
  Payment_Type,
  SearchPaymentsRequest_SortBy as SortBy,
  SearchPaymentsRequest_SortOrder as SortOrder,
  type WatchFilter,
  type Waybill,
} from '@waybill/client'
import { suggestTexts } from '../../shared/texts.ts'
import { zoneOf } from '../parts/hooks.ts'
import { withParameters } from '../parts/location.ts'

export type Search = NonNullable<Parameters<Waybill['eachPayment']>[0]>

export type FilterField = keyof typeof suggestTexts.fields

export const FILTER_FIELDS = Object.keys(suggestTexts.fields) as readonly FilterField[]

/** The filters of the search of which a link names the days, the zone or the excluded values otherwise. */
type OtherwiseNamed = 'fromDate' | 'toDate' | 'timeZone' | 'exclude' | '$typeName' | '$unknown'
/** Compiles only while every other filter of the search has a title. */
suggestTexts.fields satisfies Readonly<Record<Exclude<keyof WatchFilter, OtherwiseNamed>, string>>

/** Those that may be days. */
const DATES = ['from', 'to', 'changedFrom', 'changedTo'] as const
/** Filters that take one value; the others take several. */
const ONE_VALUED: readonly FilterField[] = ['q', ...DATES, 'minAmount', 'maxAmount', 'referencePrefix']
const MANY_VALUED = FILTER_FIELDS.filter((field) => !ONE_VALUED.includes(field))

/** One filter that is set. */
export interface Filter {
  readonly field: FilterField
  readonly value: string
}

/** The filters of a link, in the order of {@link FILTER_FIELDS}. */
export function filtersOf(query: URLSearchParams): Filter[] {
  return FILTER_FIELDS.flatMap((field) => [...new Set(query.getAll(field))].map((value) => ({ field, value })))
}

/** A link with filters more. The same filter twice is one; a filter of one value replaces the one before. Paging begins anew. */
export function withFilters(query: URLSearchParams, filters: readonly Filter[]): URLSearchParams {
  const next = new URLSearchParams(query)
  for (const { field, value } of filters) {
    if (ONE_VALUED.includes(field)) next.set(field, value)
    else if (!next.getAll(field).includes(value)) next.append(field, value)
  }
  return settle(next)
}

export function withoutFilter(query: URLSearchParams, { field, value }: Filter): URLSearchParams {
  const next = new URLSearchParams(query)
  next.delete(field, value)
  return settle(next)
}

export const withoutFilters = (query: URLSearchParams) =>
  settle(withParameters(query, Object.fromEntries(FILTER_FIELDS.map((field) => [field, '']))))

/** A link to the same payments in any order and on any page, by which sums and filters are shown. */
export const withoutOrder = (query: URLSearchParams) => withParameters(query, { sortBy: '', sortOrder: '', cursor: '' })

/** A cursor holds for its filters alone. Days mean nothing without their zone, so a link with days names it. */
function settle(query: URLSearchParams): URLSearchParams {
  query.delete('cursor')
  const hasDays = DATES.some((field) => query.has(field))
  if (!hasDays) query.delete('zone')
  else if (!query.has('zone')) query.set('zone', zoneOf(query))
  return query
}

export type SortField = 'date' | 'amount' | 'status'

export interface Sort {
  readonly by: SortField
  readonly order: 'asc' | 'desc'
}

export function sortOf(query: URLSearchParams): Sort {
  const by = query.get('sortBy')
  const order = query.get('sortOrder') === 'asc' ? 'asc' : 'desc'
  return { by: by === 'amount' || by === 'status' ? by : 'date', order }
}

/** Sorts by a field, or reverses its order. The default is not written. */
export function withSort(query: URLSearchParams, by: SortField): URLSearchParams {
  const before = sortOf(query)
  const order = before.by === by && before.order === 'desc' ? 'asc' : 'desc'
  return withParameters(query, {
    cursor: '',
    sortBy: by === 'date' ? '' : by,
    sortOrder: order === 'desc' ? '' : order,
  })
}

/** The filters as the service takes them, for search, sums, export and watch alike. */
export function searchFilters(query: URLSearchParams): WatchFilter & Search {
  const one = (field: FilterField) => {
    const value = query.get(field)
    return value === null || value === '' ? [] : [[DAYS_OF_PAYMENT[field] ?? field, value]]
  }
  const many = (fields: readonly FilterField[]) =>
    Object.fromEntries(fields.map((field) => [field.replace(EXCLUDED, ''), valuesOf(query, field)]))
  const isExcluded = (field: string) => EXCLUDED.test(field)
  return {
    ...Object.fromEntries(ONE_VALUED.flatMap(one)),
    ...(DATES.some((field) => query.has(field)) && { timeZone: zoneOf(query) }),
    ...many(MANY_VALUED.filter((field) => !isExcluded(field))),
    exclude: many(MANY_VALUED.filter(isExcluded)),
  }
}

/** The search has a name of its own for these. */
const DAYS_OF_PAYMENT: Readonly<Record<string, string>> = { from: 'fromDate', to: 'toDate' }
const EXCLUDED = /^exclude\./

function valuesOf(query: URLSearchParams, field: FilterField): readonly (string | number)[] {
  const given = [...new Set(query.getAll(field))]
  const names = namesOf(field)
  return names === undefined ? given : given.map((name) => numberOf(names, name))
}

type Names = Readonly<Record<string, string | number>>

function namesOf(field: FilterField): Names | undefined {
  if (/(?:^|\.)status$/.test(field)) return Payment_Status
  return /(?:^|\.)type$/.test(field) ? Payment_Type : undefined
}

/** The number of a name; one that nobody knows becomes a number that the service refuses, never no filter. */
function numberOf(names: Names, name: string): number {
  const found = names[name.toUpperCase()]
  return typeof found === 'number' ? found : 0
}

/** The filter of a link that is the name of nothing: the service is sent a number and could not say what was written. */
export function findUnknownName(query: URLSearchParams): Filter | undefined {
  return filtersOf(query).find(({ field, value }) => {
    const names = namesOf(field)
    return names !== undefined && numberOf(names, value) === 0
  })
}

/** The page of payments of a link. A cursor carries filters and sort. */
export function searchOfPage(query: URLSearchParams, limit: number): Search {
  const cursor = query.get('cursor')
  const { by, order } = sortOf(query)
  return {
    ...searchFilters(query),
    sortBy: SortBy[by.toUpperCase() as Uppercase<SortField>],
    sortOrder: order === 'asc' ? SortOrder.ASC : SortOrder.DESC,
    limit,
    ...(cursor !== null && { cursor }),
  }
}
