import { amountBasis } from '../../filter/payment-filter.ts'
import { amountColumns, filterFields, type SortKey, sortKeysOf } from '../../filter/search-fields.ts'
import type { SortOrder } from '../../filter/search-input.ts'
import type { FieldName } from '../../plan/search-plan.ts'
import { opposite, type PageQuery } from '../payment-query.ts'

/** The keys of the answer's order. */
export function keysOf({ filter, sortBy }: PageQuery): readonly SortKey[] {
  return sortKeysOf(sortBy, amountBasis(filter))
}

/** The direction in which rows are read: against the order of the answer where the page is before its cursor. */
export function directionOf({ position, sortOrder }: PageQuery): SortOrder {
  return position?.direction === 'backward' ? opposite(sortOrder) : sortOrder
}

/** The declarations of filters by their names. */
export function fieldsOf(names: readonly FieldName[]) {
  return filterFields.filter(({ name }) => names.includes(name))
}

/** The columns that the conditions of filters look at. */
export function columnsOf(names: readonly FieldName[], { filter }: PageQuery): string[] {
  return fieldsOf(names).flatMap((field) => {
    switch (field.kind) {
      case 'bound':
        return field.column === 'basis' ? amountColumns[amountBasis(filter)].column : field.column
      case 'currency':
        return ['currency_symbol', 'currency', 'invoice_currency']
      case 'list':
        return field.columns
      case 'text':
        return ['id', 'payer', 'payee', 'tx_hash', 'source_tx_hash', 'request_id', 'payment_reference', 'reference']
    }
  })
}

/** Row limits stand in the text, since the server plans for them; so that texts are few, they are rounded up. */
export function roundLimit(rows: number): number {
  return LIMITS.find((limit) => limit >= rows) ?? rows
}

const LIMITS = [11, 21, 51, 101, 1_001, 10_001]
