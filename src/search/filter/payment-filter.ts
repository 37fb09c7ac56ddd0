import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { PaymentStatus, PaymentType } from '../../domain/payment.ts'

/**
 * Which payments of one account are meant: AND between filters, OR within one. Every list is sorted and without repeats, so that filters
 * with the same meaning are equal. An undefined filter matches everything, an empty list nothing.
 */
export interface PaymentFilter extends FilterValues {
  readonly accountId: number
}

/** The filters by their names in the API. They are plain JSON, because cursors carry them. */
export interface FilterValues {
  /** Milliseconds since 1970, inclusive. */
  readonly fromDate?: number | undefined
  /** Milliseconds since 1970, inclusive. */
  readonly toDate?: number | undefined
  /** Canonical decimal string in the currency of {@link amountBasis}, inclusive. A range never matches an unknown amount. */
  readonly minAmount?: string | undefined
  readonly maxAmount?: string | undefined
  readonly currency?: readonly CurrencyMatch[] | undefined
  readonly paymentCurrency?: readonly CurrencyMatch[] | undefined
  readonly invoiceCurrency?: readonly CurrencyMatch[] | undefined
  readonly status?: readonly PaymentStatus[] | undefined
  readonly type?: readonly PaymentType[] | undefined
  readonly payer?: readonly Address[] | undefined
  readonly payee?: readonly Address[] | undefined
  /** Payer or payee. */
  readonly walletAddress?: readonly Address[] | undefined
  /** Source or destination. */
  readonly txHash?: readonly Hex[] | undefined
  readonly requestId?: readonly string[] | undefined
  readonly paymentReference?: readonly Hex[] | undefined
  /** The merchant's own reference. */
  readonly reference?: readonly string[] | undefined
  /** Source or destination, by canonical name. */
  readonly network?: readonly string[] | undefined
  /** What the text of a free search can mean. */
  readonly q?: readonly TextReading[] | undefined
}

/** The name of a filter. */
export type FilterName = keyof FilterValues

/** One meaning of a text: a value of the filter of that name, or the id of a payment. */
export interface TextReading {
  readonly as: 'id' | 'walletAddress' | 'txHash' | 'requestId' | 'paymentReference' | 'reference'
  readonly value: string
}

/** A currency that payments are made in, or were invoiced in: one id, or a symbol on any chain. */
export interface CurrencyMatch {
  readonly of: 'payment' | 'invoice'
  readonly symbol: string
  /** Currency id or ISO 4217 code; undefined where every token of the symbol is meant. */
  readonly id?: string | undefined
}

/** The amount that ranges and the order by amount refer to. */
export type AmountBasis = 'amount' | 'invoiceAmount' | 'amountInUsd'

/** The currency filters. */
export const currencyFields = ['currency', 'paymentCurrency', 'invoiceCurrency'] as const

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

/** Sorts a list of a filter and drops repeats. */
export function canonicalList<T>(values: Iterable<T>): T[] {
  const byText = new Map([...values].map((value) => [JSON.stringify(value), value]))
  return [...byText.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}
