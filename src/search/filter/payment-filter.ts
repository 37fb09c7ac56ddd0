import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { PaymentStatus, PaymentType } from '../../domain/payment.ts'

/**
 * Which payments of one account are meant: AND between the filters, OR within one. Every list is sorted and without repeats, so
 * that two filters mean the same exactly when they are equal. An absent filter asks nothing; an empty list matches nothing.
 */
export interface PaymentFilter extends FilterValues {
  readonly accountId: number
}

/** The filters by the names that callers use; plain JSON, since a cursor carries them. */
export interface FilterValues {
  /** Milliseconds since 1970, inclusive. */
  readonly fromDate?: number
  /** Milliseconds since 1970, inclusive. */
  readonly toDate?: number
  /** Canonical decimal string in the unit of {@link amountBasis}, inclusive. Matches no unknown amount. */
  readonly minAmount?: string
  readonly maxAmount?: string
  readonly currency?: readonly CurrencyMatch[]
  readonly paymentCurrency?: readonly CurrencyMatch[]
  readonly invoiceCurrency?: readonly CurrencyMatch[]
  readonly status?: readonly PaymentStatus[]
  readonly type?: readonly PaymentType[]
  readonly payer?: readonly Address[]
  readonly payee?: readonly Address[]
  /** Payer or payee. */
  readonly walletAddress?: readonly Address[]
  /** Source or destination. */
  readonly txHash?: readonly Hex[]
  readonly requestId?: readonly string[]
  readonly paymentReference?: readonly Hex[]
  /** The merchant's own. */
  readonly reference?: readonly string[]
  /** Source or destination, by canonical name. */
  readonly network?: readonly string[]
  /** What the one text can mean. */
  readonly q?: readonly TextReading[]
}

/** One meaning of a text: the value of that filter, or the id of a payment. */
export interface TextReading {
  readonly as: 'id' | 'walletAddress' | 'txHash' | 'requestId' | 'paymentReference' | 'reference'
  readonly value: string
}

/** A currency that a payment is made in, or was invoiced in: of a symbol on any chain, or exactly one. */
export interface CurrencyMatch {
  readonly of: 'payment' | 'invoice'
  readonly symbol: string
  /** Currency id or ISO 4217 code; absent when every token of the symbol is meant. */
  readonly id?: string
}

/** The amount that ranges and the amount order are counted in. */
export type AmountBasis = 'amount' | 'invoiceAmount' | 'amountInUsd'

const currencyFilters = ['currency', 'paymentCurrency', 'invoiceCurrency'] as const

/** All values of the currency filters. */
export function currencyMatchesOf(filter: FilterValues): readonly CurrencyMatch[] {
  return currencyFilters.flatMap((name) => filter[name] ?? [])
}

/**
 * Where all values of the currency filters resolve to one symbol, amounts are counted in it: the payment's own amount when a filter
 * asks for payments in the symbol, the invoice amount when only the invoice is in it. Else in US dollars.
 */
export function amountBasis(filter: FilterValues): AmountBasis {
  const given = currencyFilters.flatMap((name) => (filter[name] === undefined ? [] : [filter[name]]))
  const symbols = new Set(given.flat().map((match) => match.symbol))
  if (symbols.size !== 1) return 'amountInUsd'
  const allOf = (of: CurrencyMatch['of']) => given.some((matches) => matches.every((match) => match.of === of))
  if (allOf('payment')) return 'amount'
  return allOf('invoice') ? 'invoiceAmount' : 'amountInUsd'
}

/** Sorts and drops repeats, as the lists of a filter stand. */
export function canonicalList<T>(values: Iterable<T>): T[] {
  const byText = new Map([...values].map((value) => [JSON.stringify(value), value]))
  return [...byText.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}
