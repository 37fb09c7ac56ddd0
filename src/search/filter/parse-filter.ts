import type { TokenDirectory } from '../../chains/token-directory.ts'
import { FIAT_DECIMALS, parseFiatCode } from '../../domain/currency.ts'
import { compareDecimals, formatDecimal } from '../../domain/decimal.ts'
import {
  requireAmount,
  requireDateRange,
  requireFewValues,
  requireShortReferences,
} from '../../domain/require-input.ts'
import { readAll, readAllInTurn, readEach, readEachInTurn } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import {
  amountBasis,
  type CurrencyMatch,
  canonicalList,
  currencyMatchesOf,
  type FilterName,
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
import { type CurrencyField, filterFields, type ListField } from './search-fields.ts'
import type { SearchInput } from './search-input.ts'

/**
 * Parses the filters of a search. Every filter that was sent becomes part of the result or an error; none is ignored.
 *
 * @returns the filters in canonical form, so that filters with the same meaning have the same JSON
 * @throws one error for all invalid values, with the reason of the first: INVALID_DATE, INVALID_AMOUNT, INVALID_RANGE, INVALID_ADDRESS,
 * INVALID_TX_HASH, INVALID_REQUEST_ID, INVALID_PAYMENT_REFERENCE, INVALID_REFERENCE, UNKNOWN_NETWORK, UNKNOWN_CURRENCY,
 * TOO_MANY_VALUES
 */
export async function parseFilter(input: SearchInput, sources: NameSources): Promise<FilterValues> {
  let lists: FilterValues = {}
  const { dates, amounts, q } = await readAllInTurn({
    lists: async () => {
      lists = await readLists(input, sources)
    },
    references: () => requireShortReferences(input.reference ?? []),
    q: () => (input.q === undefined ? undefined : readFreeText('q', input.q)),
    dates: () => requireDateRange(input),
    amounts: () => parseAmounts(input, fewestDecimals(lists, sources.tokens)),
  })
  return { ...dates, ...amounts, ...lists, q }
}

function readLists(input: SearchInput, sources: NameSources): Promise<FilterValues> {
  const readers = filterFields.flatMap((field) => {
    if (field.kind === 'bound' || field.kind === 'text') return []
    const texts = input[field.name] ?? []
    return texts.length === 0 ? [] : [[field.name, () => readList(field, texts, sources)] as const]
  })
  return readAllInTurn(Object.fromEntries(readers))
}

function readList(
  field: CurrencyField | ListField,
  texts: readonly string[],
  sources: NameSources,
): readonly unknown[] | Promise<readonly unknown[]> {
  requireFewValues(field.name, texts)
  const resolve = resolvers[field.name]
  if (resolve !== undefined) {
    const resolving = readEachInTurn([...new Set(texts)], (text) => resolve(sources, field.name, text))
    return resolving.then((resolved) => canonicalList(resolved.flat()))
  }
  return field.kind === 'list' ? canonicalList(readEach(texts, (text) => field.value.parse(field.name, text))) : []
}

/** Filters whose values are names, looked up in configuration, built-in tables and the account's payments. */
const resolvers: {
  readonly [K in FilterName]?: (sources: NameSources, field: string, text: string) => Promise<readonly unknown[]>
} = {
  currency: resolveCurrency,
  paymentCurrency: resolvePaymentCurrency,
  invoiceCurrency: resolveInvoiceCurrency,
  network: resolveNetwork,
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
  const { min, max } = readAll({
    min: () => (minAmount === undefined ? undefined : requireAmount('minAmount', minAmount, rule)),
    max: () => (maxAmount === undefined ? undefined : requireAmount('maxAmount', maxAmount, rule)),
  })
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
