import type { FilterValues } from '../filter/payment-filter.ts'
import type { ColumnType } from '../filter/search-fields.ts'

/**
 * How a page is read: a plan is a list of shapes that are tried in turn until one gives the whole page. The last one always does. A
 * shape is a value; what SQL it is stands in `shapes/`.
 */
export type Plan = readonly Shape[]

export type Shape = WalkShape | SlicesShape | GatherShape | MonthsShape | PlainShape

/** A filter by its name. */
export type FieldName = keyof FilterValues

/**
 * Reads in the order of the answer: of every branch of every part the next rows, and of those the first. Where a branch has a bound of
 * entries and comes to it, the place where it ended stands among the rows; the page is whole if it comes before.
 */
export interface WalkShape {
  readonly kind: 'walk'
  readonly parts: readonly WalkPart[]
  /** Whether parts may have rows in common. */
  readonly overlap: boolean
}

/** Reads by time, of many branches that have nothing else to ask: some rows of each, and a page of those that may have more on it. */
export interface SlicesShape {
  readonly kind: 'slices'
  readonly parts: readonly WalkPart[]
  readonly overlap: boolean
  /** The rows that are read of each at first. */
  readonly each: number
}

/** Reads all that the parts have, without order, as long as it is no more than `most`; then filters and sorts. */
export interface GatherShape {
  readonly kind: 'gather'
  readonly parts: readonly Part[]
  readonly overlap: boolean
  /** The most entries read; absent: all. */
  readonly most?: number
}

/** Payments of a range of US dollars by date: month after month in the order of the answer, each sorted by itself. */
export interface MonthsShape {
  readonly kind: 'months'
  /** Milliseconds since 1970 where months begin, in the order of the answer. */
  readonly months: readonly number[]
}

/** One walk in the order of the answer with all conditions on it; what a text can mean is looked up first. */
export interface PlainShape {
  readonly kind: 'plain'
}

/** Columns that are compared with `=`, and the tuples of values that they take one after the other. */
export interface Branches {
  readonly columns: readonly BranchColumn[]
  readonly tuples: readonly (readonly BranchValue[])[]
}

export type BranchColumn = 'payer' | 'payee' | 'status' | 'network' | 'source_network' | BranchNameColumn
type BranchNameColumn =
  | 'currency_symbol'
  | 'invoice_currency'
  | 'request_id'
  | 'payment_reference'
  | 'reference'
  | 'month'
export type BranchValue = string | number | Buffer

export const branchTypes: Readonly<Record<BranchColumn, ColumnType>> = {
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
  month: 'timestamptz',
}

/** Payments that are found by one index. */
export interface Part {
  /** For the reader of a plan; PostgreSQL chooses by itself. */
  readonly index: string
  /** Absent: all payments of the account. */
  readonly branches?: Branches
  /** What the entries of the index are ordered by behind the branches. */
  readonly order: 'time' | 'amount' | 'none'
  /** The filters that the index answers beside the branches. */
  readonly within: readonly FieldName[]
  /** The filters that its entries, or the rows, are asked one by one. */
  readonly residual: readonly FieldName[]
  /** Only those whose source is another network than their destination. */
  readonly fromElsewhere?: boolean
}

/** A part whose index has the order of the answer behind the branches. */
export interface WalkPart extends Part {
  /** How many keys of the order the branches fix. */
  readonly fixedKeys: 0 | 1
  /** Whether the position bounds it; if not, all of it comes after the position. */
  readonly after: boolean
  /** Whether only unknown amounts are read, since there are no others. */
  readonly unknownOnly?: true
  /** The most entries read of each branch; absent: as many as it takes. */
  readonly entries?: readonly number[]
  /** Whether the branches follow one another in the order of the answer, so that those behind a full page are not read. */
  readonly inOrder?: boolean
}
