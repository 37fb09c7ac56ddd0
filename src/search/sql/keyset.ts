import { allOf, raw, type Statement, TRUE } from '../../postgres/statement.ts'
import type { PaymentFilter, SortOrder } from '../filter/payment-filter.ts'
import type { SortKey } from '../filter/search-fields.ts'
import { directionOf, keysOf, type PagePosition, type PageQuery } from '../query/page-query.ts'

/**
 * The order of a page and the place where it begins. A place is compared as a row value, `(timestamp, id) < (?, ?)`, which an index
 * answers at any depth.
 */

/** The columns that place a payment in the order: `timestamp, id`. */
export function keyColumnsOf(query: PageQuery): string[] {
  return [...keysOf(query).map(({ column }) => column), 'id']
}

/**
 * The order of the answer: unknown amounts first ascending, last descending.
 *
 * @example order by amount_in_usd desc nulls last, id desc
 */
export function orderOfAnswer(keys: readonly SortKey[], direction: SortOrder): string {
  const nulls = direction === 'asc' ? ' nulls first' : ' nulls last'
  const terms = keys.map(({ column, nullable }) => `${column} ${direction}${nullable ? nulls : ''}`)
  return `order by ${[...terms, `id ${direction}`].join(', ')}`
}

/**
 * The terms of the same order as an index gives it, without `nulls first`: with that clause PostgreSQL would sort. It is right where a range of
 * keys is either all known or all unknown, as {@link keyRanges} makes them.
 *
 * @example amount_in_usd desc, id desc
 */
export function orderTerms(keys: readonly SortKey[], direction: SortOrder): string {
  return [...keys.map(({ column }) => column), 'id'].map((column) => `${column} ${direction}`).join(', ')
}

/**
 * The ranges of keys that lie after a position. One range, `(timestamp, id) < (?, ?)`, where the key is always known. Two where it can be
 * unknown, because no row value compares with null: `amount_in_usd is null` and `amount_in_usd is not null`, each with its own bound and
 * the unknown one first; ranges that lie wholly before the position, or that an amount filter excludes, are left out.
 */
export function keyRanges(
  keys: readonly SortKey[],
  direction: SortOrder,
  filter: PaymentFilter,
  position: PagePosition | undefined,
): Statement[] {
  const [key] = keys
  if (key === undefined || !key.nullable) return [position === undefined ? TRUE : beyond(keys, direction, position)]
  const isAtUnknown = position !== undefined && position.keys[0] === null
  const isAtKnown = position !== undefined && !isAtUnknown
  const hasAmounts = filter.minAmount !== undefined || filter.maxAmount !== undefined
  const unknown = allOf([raw(`${key.column} is null`), isAtUnknown ? beyond([], direction, position) : TRUE])
  const known = allOf([raw(`${key.column} is not null`), isAtKnown ? beyond(keys, direction, position) : TRUE])
  const isUnknownPassed = isAtKnown && direction === 'asc'
  const isKnownPassed = isAtUnknown && direction === 'desc'
  return [...(isUnknownPassed || hasAmounts ? [] : [unknown]), ...(isKnownPassed ? [] : [known])]
}

/** `(timestamp, id) < (?::timestamptz, ?::uuid)`; without keys `(id) < (?::uuid)`. */
function beyond(keys: readonly SortKey[], direction: SortOrder, position: PagePosition): Statement {
  const columns = [...keys.map(({ column }) => column), 'id'].join(', ')
  const places = [...keys.map(({ type }) => type), 'uuid'].map((type) => `?::${type}`).join(', ')
  const values = keys.map((_, at) => position.keys[at] ?? null)
  return raw(`(${columns}) ${operatorOf(direction, position)} (${places})`, [...values, position.id])
}

function operatorOf(direction: SortOrder, { inclusive }: PagePosition): string {
  return `${direction === 'asc' ? '>' : '<'}${inclusive ? '=' : ''}`
}

/**
 * Whether a row comes after the position, as one condition for rows that are compared one by one. Unlike the ranges of {@link keyRanges} it
 * needs no index, so known and unknown keys fit in one: `(amount_in_usd is null or (amount_in_usd, id) < (?, ?))`.
 */
export function afterPosition(query: PageQuery): Statement {
  const { position } = query
  const keys = keysOf(query)
  const [key] = keys
  if (position === undefined || key === undefined) return TRUE
  const direction = directionOf(query)
  const { column } = key
  if (position.keys[0] === null) {
    const byId = `id ${operatorOf(direction, position)} ?::uuid`
    const text = direction === 'asc' ? `(${column} is not null or ${byId})` : `${column} is null and ${byId}`
    return raw(text, [position.id])
  }
  const after = beyond(keys, direction, position)
  return key.nullable && direction === 'desc' ? raw(`(${column} is null or ?)`, [after]) : after
}
