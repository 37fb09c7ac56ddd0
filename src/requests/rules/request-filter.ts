import { type AccountNames, type CurrencyMatch, resolveCurrency, resolveNetwork } from '../../chains/resolve-names.ts'
import type { Address } from '../../domain/address.ts'
import { canonicalList } from '../../domain/collections.ts'
import { networkOfCurrency, symbolOfCurrency } from '../../domain/currency.ts'
import { type RequestStatus, requestStatuses } from '../../domain/payment-request.ts'
import {
  type DateRange,
  requireAddress,
  requireDateRange,
  requireFewValues,
  requireMerchantReference,
  requireRequestId,
  requireShortTexts,
} from '../../domain/require-input.ts'
import { readAllInOrder, readEach, readEachInOrder, readOnce } from '../../errors/gather-errors.ts'
import type { KnownCurrencies } from './request-terms.ts'

/** The filters of a list as a caller sent them. Absent and empty ones were not given. */
export interface FilterInput {
  readonly status?: readonly RequestStatus[] | undefined
  readonly reference?: readonly string[] | undefined
  readonly requestId?: readonly string[] | undefined
  readonly payee?: readonly string[] | undefined
  readonly network?: readonly string[] | undefined
  readonly currency?: readonly string[] | undefined
  readonly fromDate?: string | undefined
  readonly toDate?: string | undefined
  /** Whether more is held than asked for. */
  readonly overpaid?: boolean | undefined
}

/**
 * Which requests of an account a list has. Values are in canonical form, sorted and without repeats, so that equal filters are equal JSON,
 * which cursors carry. An absent filter was not given; an empty list matches nothing.
 */
export interface RequestFilter
  extends DateRange,
    Pick<FilterInput, 'status' | 'reference' | 'requestId' | 'network' | 'overpaid'> {
  readonly payee?: readonly Address[] | undefined
  readonly currency?: readonly CurrencyMatch[] | undefined
}

/** What networks and currencies of a filter mean among the requests of an account. */
export interface FilteredCurrencies {
  /** The payment currencies of the filter's networks; all where it has none. */
  readonly onNetworks: readonly string[]
  /** Those of them that the filter's currencies name. */
  readonly payment: readonly string[]
  /** ISO 4217 codes. */
  readonly invoice: readonly string[]
}

/** Where names are looked up. The account's requests are read only for names that the configuration does not know. */
export interface NameSources extends KnownCurrencies {
  /** The payment currencies of the account's requests. */
  readonly currencies: () => Promise<readonly string[]>
}

/**
 * Reads the filters of a list. Each given value becomes part of the filter or an error, so that no filter is dropped.
 *
 * @throws one WaybillError for all wrong values, with the reason of the first: INVALID_DATE, INVALID_RANGE, INVALID_ADDRESS, INVALID_REQUEST_ID,
 *   INVALID_REFERENCE, VALUE_TOO_LONG, UNKNOWN_NETWORK, UNKNOWN_CURRENCY, TOO_MANY_VALUES
 */
export async function parseRequestFilter(
  input: FilterInput,
  { currencies: stored, ...known }: NameSources,
): Promise<RequestFilter> {
  const sources = { ...known, account: namesIn(stored) }
  const { status = [], reference = [], requestId = [], payee = [], network = [], currency = [] } = input
  const lists = { status, reference, requestId, payee, network, currency }
  readEach(Object.entries(lists), ([field, values]) => requireFewValues(field, values))
  const { networks, currencies, references, requestIds, payees, dates } = await readAllInOrder({
    shortReferences: () => requireShortTexts('reference', reference),
    networks: () => readEachInOrder(network, (text) => resolveNetwork(sources, 'network', text)),
    currencies: () => readEachInOrder(currency, (text) => resolveCurrency(sources, 'currency', text)),
    references: () => readEach(reference, (text) => requireMerchantReference('reference', text)),
    requestIds: () => readEach(requestId, (text) => requireRequestId('requestId', text)),
    payees: () => readEach(payee, (text) => requireAddress('payee', text)),
    dates: () => requireDateRange(input),
  })
  const statuses = requestStatuses.filter((each) => status.includes(each))
  return {
    status: ifGiven(status, statuses),
    reference: ifGiven(reference, canonicalList(references)),
    requestId: ifGiven(requestId, canonicalList(requestIds)),
    payee: ifGiven(payee, canonicalList(payees)),
    network: ifGiven(network, canonicalList(networks.flat())),
    currency: ifGiven(currency, canonicalList(currencies.flat())),
    ...dates,
    overpaid: input.overpaid,
  }
}

/** The values of a filter. An empty list was not given, but values that name nothing match nothing. */
function ifGiven<T>(given: readonly unknown[], values: readonly T[]): readonly T[] | undefined {
  return given.length === 0 ? undefined : values
}

/**
 * Finds the currencies that a filter means. A payment currency has the network of its request in its id.
 *
 * @param stored - the payment currencies of the account's requests
 */
export function findCurrencies({ network, currency }: RequestFilter, stored: readonly string[]): FilteredCurrencies {
  const onNetworks = stored.filter((id) => network === undefined || network.includes(networkOfCurrency(id)))
  const isMeant = (paidIn: string) =>
    currency?.some(
      ({ of, symbol, id = paidIn }) => of === 'payment' && id === paidIn && symbolOfCurrency(paidIn) === symbol,
    )
  const invoice = currency?.flatMap(({ of, symbol }) => (of === 'invoice' ? [symbol] : [])) ?? []
  return { onNetworks, payment: onNetworks.filter(isMeant), invoice }
}

/** What the payment currencies of requests name. A request is invoiced in its payment currency or in one of ISO 4217. */
function namesIn(currencies: NameSources['currencies']): AccountNames {
  const each = (nameOf: (id: string) => string) => readOnce(async () => new Set((await currencies()).map(nameOf)))
  const ids = each((id) => id)
  return {
    networks: each(networkOfCurrency),
    symbols: each(symbolOfCurrency),
    currencyIds: ids,
    invoiceCurrencies: ids,
  }
}
