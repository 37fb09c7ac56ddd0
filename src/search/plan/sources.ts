import type { CurrencyMatch } from '../../chains/resolve-names.ts'
import { amountBasis, currencyFields, givenFilters, pairsByKey } from '../filter/payment-filter.ts'
import {
  amountColumns,
  type ColumnType,
  type FilterField,
  type FilterName,
  filterFields,
} from '../filter/search-fields.ts'
import type { PageQuery } from '../query/page-query.ts'

/**
 * Sources: which stretches of which indexes hold the payments that a filter chooses. A filter is a source where an index begins with its
 * column; what an index has beside that says which other filters its entries answer without the row.
 */

const FACTS = ['type', 'network', 'source_network', 'currency_symbol', 'currency', 'invoice_currency']
const AMOUNTS = ['amount', 'amount_in_usd', 'invoice_amount']

interface Index {
  /** What orders the entries of equal leading columns; the id follows. */
  readonly order?: 'timestamp' | 'changed_at' | 'reference' | 'amount' | 'amount_in_usd' | 'invoice_amount'
  /** Whether the status stands before the order. */
  readonly hasStatus?: true
  /** Columns between the order and the id. */
  readonly then?: readonly string[]
  /** Whether it is of `payment_metadata`: rows of payments are looked up by the id. */
  readonly isAside?: true
  /** The columns of an entry beside the leading ones, the order and the id. */
  readonly includes: readonly string[]
}

/**
 * The indexes of searches, as `schema.sql` and later steps define them. Not named there: `transactions`, the three indexes by hash; `texts`, those of a free
 * text; and `references`, the index by reference where a prefix is a range of it.
 */
const searched = {
  payments_date: { order: 'timestamp', includes: [] },
  payments_changed: { order: 'changed_at', includes: [] },
  payments_status: { order: 'timestamp', hasStatus: true, includes: [...FACTS, ...AMOUNTS] },
  payments_network: { order: 'timestamp', includes: [] },
  payments_source_network: { order: 'timestamp', includes: ['network'] },
  payments_currency: { order: 'timestamp', includes: [] },
  payments_payer: { order: 'timestamp', hasStatus: true, includes: [...FACTS, ...AMOUNTS, 'payee'] },
  payments_payee: { order: 'timestamp', hasStatus: true, includes: [...FACTS, ...AMOUNTS] },
  payments_request_id: { order: 'timestamp', includes: [] },
  payments_payment_reference: { order: 'timestamp', includes: [] },
  payments_reference: { order: 'timestamp', hasStatus: true, includes: [...FACTS, ...AMOUNTS] },
  references: { order: 'reference', then: ['status', 'timestamp'], includes: [...FACTS, ...AMOUNTS] },
  payments_usd: { order: 'amount_in_usd', includes: [...FACTS, 'timestamp', 'status', 'reference'] },
  payments_payer_usd: { order: 'amount_in_usd', includes: ['timestamp'] },
  payments_payee_usd: { order: 'amount_in_usd', includes: ['timestamp'] },
  payments_amount: { order: 'amount', includes: [...FACTS, 'timestamp', 'status', 'amount_in_usd'] },
  payments_invoice_amount: { order: 'invoice_amount', includes: [...FACTS, 'timestamp', 'status'] },
  payment_metadata_pair: { order: 'timestamp', hasStatus: true, isAside: true, includes: [...FACTS, ...AMOUNTS] },
  payment_metadata_changed: { order: 'changed_at', isAside: true, includes: [] },
  payment_metadata_usd: { order: 'amount_in_usd', isAside: true, includes: ['timestamp'] },
  payment_metadata_amount: { order: 'amount', isAside: true, includes: ['timestamp'] },
  transactions: { includes: [] },
  texts: { includes: [] },
} as const satisfies Readonly<Record<string, Index>>

export type IndexName = keyof typeof searched
export const indexes: Readonly<Record<IndexName, Index>> = searched

export type BranchValue = string | number
export type BranchColumn = keyof typeof branchTypes

/** The columns that branches may have, with their types. */
export const branchTypes = {
  payer: 'bytea',
  payee: 'bytea',
  status: 'smallint',
  network: 'text',
  source_network: 'text',
  currency_symbol: 'text',
  invoice_currency: 'text',
  request_id: 'bytea',
  payment_reference: 'bytea',
  reference: 'text',
  pair: 'text',
} as const satisfies Readonly<Record<string, ColumnType>>

/** Branches of one index: the stretches in which the leading columns equal one of the tuples. */
export interface Part {
  readonly index: IndexName
  readonly columns: readonly BranchColumn[]
  readonly tuples: readonly (readonly BranchValue[])[]
  /** A filter that is the condition instead, where the index does not begin with a column. */
  readonly filter?: FilterName
  /** Payments that the part before has already: those with one of the filter's values in this column. */
  readonly except?: { readonly column: string; readonly filter: ListName }
  /** Symbols of which all invoice currencies are meant, on whichever chain; PostgreSQL finds their ids. */
  readonly symbols?: readonly string[]
}

export interface Source {
  readonly parts: readonly Part[]
  /** The same payments by an index that has more columns. */
  readonly wider?: readonly Part[]
  /** The filters that the leading columns answer. */
  readonly answers: readonly FilterName[]
}

type ListField = Extract<FilterField, { readonly kind: 'list' }>
export type ListName = ListField['name']

/** The indexes that begin with the account and one column, in the order of time. */
const INDEX_BY_TIME: Readonly<Record<string, IndexName>> = {
  payer: 'payments_payer',
  payee: 'payments_payee',
  request_id: 'payments_request_id',
  payment_reference: 'payments_payment_reference',
  reference: 'payments_reference',
  network: 'payments_network',
  source_network: 'payments_source_network',
} satisfies Partial<Record<BranchColumn, IndexName>>
/** The same in the order of US dollars. */
const INDEX_BY_USD: Readonly<Record<string, IndexName>> = {
  payer: 'payments_payer_usd',
  payee: 'payments_payee_usd',
} satisfies Partial<Record<BranchColumn, IndexName>>

/** All sources of a query. A transaction or a free text names few payments, so that other sources are left out. */
export function sourcesOf(query: PageQuery): Source[] {
  const { filter } = query
  const few = (['txHash', 'q'] as const).find((name) => filter[name] !== undefined)
  if (few !== undefined) {
    const index = few === 'q' ? 'texts' : 'transactions'
    return [{ parts: [{ ...everything(index), filter: few }], answers: [few] }]
  }
  const isUsd = amountBasis(filter) === 'amountInUsd' && usesAmounts(query)
  return [
    ...filterFields.flatMap((field) => (field.kind === 'list' ? sourcesOfList(field, query, isUsd) : [])),
    ...currencyFields.flatMap((name) => sourcesOfCurrency(name, filter[name])),
    ...sourcesOfPairs(query, isUsd),
    accountByTime(query),
    ...(isUsd ? [{ parts: [everything('payments_usd')], answers: [] }] : []),
    ...(usesChanges(query) ? [{ parts: [everything('payments_changed')], answers: [] }] : []),
    ...(filter.referencePrefix === undefined ? [] : [{ parts: [everything('references')], answers: [] }]),
  ]
}

/** Whether amounts are asked for, by the order or by a range. */
function usesAmounts({ filter, sortBy }: PageQuery): boolean {
  return sortBy === 'amount' || filter.minAmount !== undefined || filter.maxAmount !== undefined
}

function usesChanges({ filter, sortBy }: PageQuery): boolean {
  return sortBy === 'changed' || filter.changedFrom !== undefined || filter.changedTo !== undefined
}

function everything(index: IndexName): Part {
  return { index, columns: [], tuples: [[]] }
}

function accountByTime({ filter, sortBy }: PageQuery): Source {
  const ofStatus = [everything('payments_status')]
  const needsStatus = filter.status !== undefined || sortBy === 'status'
  return { parts: needsStatus ? ofStatus : [everything('payments_date')], wider: ofStatus, answers: [] }
}

function sourcesOfList(field: ListField, { filter }: PageQuery, isUsd: boolean): Source[] {
  const values = filter[field.name]
  // the index of sources has only payments that go elsewhere; the others are found by their destination
  const isSource = field.name === 'sourceNetwork'
  // the index by payer has the payee, by which the payments that the first branches have are left out
  const columns = isSource
    ? ['network', 'source_network']
    : field.name === 'walletAddress'
      ? ['payee', 'payer']
      : field.columns
  if (values === undefined || !columns.every((column) => column in INDEX_BY_TIME)) return []
  const tuples = values.map((value) => [field.value.bind(value as never)])
  const partsOf = (byColumn: Readonly<Record<string, IndexName>>) =>
    columns.map((column, at): Part => {
      const part = { index: byColumn[column] as IndexName, columns: [column as BranchColumn], tuples }
      return at === 0 ? part : { ...part, except: { column: columns[0], filter: field.name } }
    })
  const answers = isSource ? [] : [field.name]
  const byUsd = isUsd && columns.every((column) => column in INDEX_BY_USD)
  return [{ parts: partsOf(INDEX_BY_TIME), answers }, ...(byUsd ? [{ parts: partsOf(INDEX_BY_USD), answers }] : [])]
}

/** The pairs of each key. A payment has one of them at most, so that branches share none. */
function sourcesOfPairs(query: PageQuery, isUsd: boolean): Source[] {
  const keys = pairsByKey(query.filter)
  const chosen: IndexName[] = ['payment_metadata_pair']
  if (isUsd) chosen.push('payment_metadata_usd')
  if (usesChanges(query)) chosen.push('payment_metadata_changed')
  const answers = keys.length === 1 ? (['metadata'] as const) : []
  return keys.flatMap((pairs) => {
    const part = { columns: ['pair'] as const, tuples: pairs.map((pair) => [pair]) }
    return [
      ...chosen.map((index) => ({ parts: [{ index, ...part }], answers })),
      ...currencyFields.flatMap((name) => sourcesOfPairsIn(name, pairs, query, answers)),
    ]
  })
}

/** Pairs of a key in a payment currency, in the order of amounts. */
function sourcesOfPairsIn(
  name: (typeof currencyFields)[number],
  pairs: readonly string[],
  query: PageQuery,
  answers: readonly FilterName[],
): Source[] {
  const matches = query.filter[name] ?? []
  if (amountBasis(query.filter) !== 'amount' || !usesAmounts(query) || !areOfPayment(matches)) return []
  const tuples = symbolsOf(matches).flatMap((symbol) => pairs.map((pair) => [pair, symbol]))
  const part: Part = { index: 'payment_metadata_amount', columns: ['pair', 'currency_symbol'], tuples }
  return [{ parts: [part], answers: areWhole(matches) ? [...answers, name] : answers }]
}

/** Whether entries are of `payment_metadata`. */
export function isAside([part]: readonly Part[]): boolean {
  return part !== undefined && indexes[part.index].isAside === true
}

/** A filter that mixes payment and invoice currencies is no source. */
function sourcesOfCurrency(name: FilterName, matches: readonly CurrencyMatch[] = []): Source[] {
  if (areOfPayment(matches)) {
    const answers = areWhole(matches) ? [name] : []
    const part = { columns: ['currency_symbol'] as const, tuples: symbolsOf(matches).map((symbol) => [symbol]) }
    return [
      { parts: [{ index: 'payments_currency', ...part }], answers },
      { parts: [{ index: 'payments_amount', ...part }], answers },
    ]
  }
  if (matches.length === 0 || !matches.every(({ of }) => of === 'invoice')) return []
  const whole = matches.flatMap(({ id, symbol }) => (id === undefined ? [symbol] : []))
  const single = matches.flatMap(({ id, symbol }) => (id === undefined || whole.includes(symbol) ? [] : [[id]]))
  const part: Part = { index: 'payments_invoice_amount', columns: ['invoice_currency'], tuples: single }
  return [{ parts: [whole.length === 0 ? part : { ...part, symbols: whole }], answers: [name] }]
}

const areOfPayment = (matches: readonly CurrencyMatch[]) =>
  matches.length > 0 && matches.every(({ of }) => of === 'payment')
/** Whether a symbol is asked for on whichever chain, always. */
const areWhole = (matches: readonly CurrencyMatch[]) => matches.every(({ id }) => id === undefined)
const symbolsOf = (matches: readonly CurrencyMatch[]) => [...new Set(matches.map(({ symbol }) => symbol))]

/** The filters that were given, beside those that the leading columns answer. */
export function othersThan(answers: readonly FilterName[], { filter }: PageQuery): FilterName[] {
  return givenFilters(filter).filter((name) => !answers.includes(name))
}

/** The column of the amount that ranges and the order are in. */
export function amountColumnOf({ filter }: PageQuery): string {
  return amountColumns[amountBasis(filter)].column
}
