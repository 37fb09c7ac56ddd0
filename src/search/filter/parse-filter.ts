import type { TokenDirectory } from '../../chains/token-directory.ts'
import { FIAT_DECIMALS, parseFiatCode } from '../../domain/currency.ts'
import { compareDecimals, formatDecimal } from '../../domain/decimal.ts'
import {
  requireAmount,
  requireDateRange,
  requireFewValues,
  requireShortReferences,
} from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import {
  amountBasis,
  type CurrencyMatch,
  canonicalList,
  currencyMatchesOf,
  type FilterValues,
} from './payment-filter.ts'
import { readFreeText } from './read-free-text.ts'
import {
  type NameSources,
  resolveCurrency,
  resolveInvoiceCurrency,
  resolveNetwork,
  resolvePaymentCurrency,
} from './resolve-names.ts'
import { filterFields } from './search-fields.ts'
import type { SearchInput } from './search-input.ts'

/**
 * Parses the filters of a search. Every filter that was sent becomes part of the result or an error; none is ignored.
 *
 * @returns the filters in canonical form, so that filters with the same meaning have the same JSON
 * @throws the reason of the first invalid value: INVALID_DATE, INVALID_AMOUNT, INVALID_RANGE, INVALID_ADDRESS,
 * INVALID_TX_HASH, INVALID_REQUEST_ID, INVALID_PAYMENT_REFERENCE, INVALID_REFERENCE, UNKNOWN_NETWORK, UNKNOWN_CURRENCY,
 * TOO_MANY_VALUES
 */
export async function parseFilter(input: SearchInput, sources: NameSources): Promise<FilterValues> {
  const lists: Record<string, readonly unknown[]> = {}
  for (const field of filterFields) {
    if (field.kind === 'bound' || field.kind === 'text') continue
    const texts = input[field.name] ?? []
    if (texts.length === 0) continue
    requireFewValues(field.name, texts)
    const resolve = resolvers[field.name]
    if (resolve !== undefined) lists[field.name] = await resolveAll(texts, (text) => resolve(sources, field.name, text))
    else if (field.kind === 'list') {
      lists[field.name] = canonicalList(texts.map((text) => field.value.parse(field.name, text)))
    }
  }
  requireShortReferences(input.reference ?? [])
  const values = lists as FilterValues
  const amountDecimals = fewestDecimals(values, sources.tokens)
  const q = input.q === undefined ? undefined : readFreeText('q', input.q)
  return { ...requireDateRange(input), ...parseAmounts(input, amountDecimals), ...values, q }
}

/** Filters whose values are names, looked up in configuration, built-in tables and the account's payments. */
const resolvers: Readonly<
  Record<string, (sources: NameSources, field: string, text: string) => Promise<readonly unknown[]>>
> = {
  currency: resolveCurrency,
  paymentCurrency: resolvePaymentCurrency,
  invoiceCurrency: resolveInvoiceCurrency,
  network: resolveNetwork,
}

async function resolveAll<T>(texts: readonly string[], resolve: (text: string) => Promise<readonly T[]>): Promise<T[]> {
  const resolved: T[] = []
  for (const text of new Set(texts)) resolved.push(...(await resolve(text)))
  return canonicalList(resolved)
}

/**
 * The decimals of the currency of the amount range, for the check against the largest amount. Where they differ from chain to chain, or are
 * unknown, the fewest count, because these allow the largest amounts.
 */
function fewestDecimals(filter: FilterValues, tokens: TokenDirectory): number {
  if (amountBasis(filter) === 'amountInUsd') return FIAT_DECIMALS
  return Math.min(...currencyMatchesOf(filter).flatMap((match) => decimalsOf(match, tokens)))
}

function decimalsOf({ symbol, id }: CurrencyMatch, tokens: TokenDirectory): readonly number[] {
  const meant = tokens.bySymbol(symbol).filter((token) => id === undefined || token.id === id)
  if (meant.length > 0) return meant.map(({ decimals }) => decimals)
  return [parseFiatCode(symbol) === undefined ? 0 : FIAT_DECIMALS]
}

function parseAmounts(
  { minAmount, maxAmount }: SearchInput,
  decimals: number,
): Pick<FilterValues, 'minAmount' | 'maxAmount'> {
  const rule = { mayBeZero: true, fewestDecimals: decimals }
  const min = minAmount === undefined ? undefined : requireAmount('minAmount', minAmount, rule)
  const max = maxAmount === undefined ? undefined : requireAmount('maxAmount', maxAmount, rule)
  if (min !== undefined && max !== undefined && compareDecimals(min, max) > 0) {
    throw waybillError('INVALID_RANGE', {
      field: 'minAmount',
      value: minAmount ?? '',
      other: 'maxAmount',
      otherValue: maxAmount ?? '',
    })
  }
  return { minAmount: min && formatDecimal(min), maxAmount: max && formatDecimal(max) }
}
