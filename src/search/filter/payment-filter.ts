import type { CurrencyMatch } from '../../chains/resolve-names.ts'
import type { IncludeTotal } from '../../domain/pages/total.ts'
import { paymentStatuses } from '../../domain/payment.ts'
import {
  type AmountBasis,
  type FilterInput,
  type FilterName,
  type FilterValues,
  filterFields,
  type SortBy,
} from './search-fields.ts'

/**
 * Which payments of one account are meant: AND between filters, OR within one. Every list is sorted and without repeats, so that filters
 * with the same meaning are equal. An undefined filter matches everything, an empty list nothing.
 */
export interface PaymentFilter extends FilterValues {
  readonly accountId: number
}

/** The names of the filters that were given and choose payments, in the order of the table. */
export function givenFilters(filter: FilterValues): readonly FilterName[] {
  return filterFields.flatMap(({ name, kind }) => (kind === 'zone' || filter[name] === undefined ? [] : [name]))
}

/** The names of the currency filters. */
export const currencyFields = filterFields.flatMap((field) => (field.kind === 'currency' ? [field.name] : []))

/** The pairs of a filter by key: any of one key, of all keys. */
export function pairsByKey({ metadata = [] }: FilterValues): readonly (readonly string[])[] {
  return [...Map.groupBy(metadata, (pair) => pair.slice(0, pair.indexOf('='))).values()]
}

/** All values of the currency filters. */
export function currencyMatchesOf(filter: FilterValues): readonly CurrencyMatch[] {
  return currencyFields.flatMap((name) => filter[name] ?? [])
}

/**
 * Where all values of the currency filters have one symbol, ranges and order are in that currency: the payment's amount if a filter names
 * payment currencies alone, the invoice amount if one names invoice currencies alone. In every other case they are in US dollars.
 */
export function amountBasis(filter: FilterValues): AmountBasis {
  const given = currencyFields.flatMap((name) => (filter[name] === undefined ? [] : [filter[name]]))
  const symbols = new Set(given.flat().map((match) => match.symbol))
  if (symbols.size !== 1) return 'amountInUsd'
  const allOf = (of: CurrencyMatch['of']) => given.some((matches) => matches.every((match) => match.of === of))
  if (allOf('payment')) return 'amount'
  return allOf('invoice') ? 'invoiceAmount' : 'amountInUsd'
}

/** Replaces excluded statuses by those that are left, since an index has these. */
export function statusesLeft(filter: PaymentFilter): PaymentFilter {
  const { 'exclude.status': excluded, status = paymentStatuses, ...others } = filter
  if (excluded === undefined) return filter
  return { ...others, status: status.filter((name) => !excluded.includes(name)) }
}

export type SortOrder = 'asc' | 'desc'

/**
 * A search as it came over the wire: strings not yet parsed, enums already decoded. Undefined was not sent. An empty list counts as not
 * sent, because protobuf cannot tell the two apart.
 */
export interface SearchInput extends FilterInput {
  readonly sortBy?: SortBy | undefined
  readonly sortOrder?: SortOrder | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
  /** The progress of the chains is read for this search, not remembered from one before. Where there are replicas, the primary answers. */
  readonly noCache?: boolean | undefined
}
