import type { ColumnType, FilterName } from '../filter/search-fields.ts'

/**
 * How a page is read: shapes that are tried in turn until one gives the whole page. The last one always does.
 *
 * A shape is plain data; its SQL is in `sql/shapes/`. Example, "payments of the network GNOSIS, newest first":
 *
 *     walk at most 400 entries of payments_status, asking each entry for its network
 *     else walk the cells of GNOSIS (status × network × symbol) in payments_cell
 */
export type Plan = readonly Shape[]

export type Shape = WalkShape | SlicesShape | GatherShape | MonthsShape | PlainShape

/**
 * Reads branches in the order of the answer, each from the position on, and merges them. A branch with a limit of entries marks the entry
 * at which it stopped; the page is whole if it ends before that one.
 */
export interface WalkShape {
  readonly kind: 'walk'
  readonly parts: readonly WalkPart[]
  /** Whether two parts may have the same payment. */
  readonly mayOverlap: boolean
}

/**
 * Reads very many branches by date: a few rows of each, and then a page of those branches that may have more on the page. No part has
 * residual filters.
 */
export interface SlicesShape {
  readonly kind: 'slices'
  readonly parts: readonly WalkPart[]
  readonly mayOverlap: boolean
  /** Rows read of each branch at first. */
  readonly rowsPerBranch: number
}

/** Reads everything that the parts hold, unless it is more than `maxEntries`, then filters and sorts it. */
export interface GatherShape {
  readonly kind: 'gather'
  readonly parts: readonly Part[]
  readonly mayOverlap: boolean
  /** Undefined: no limit. */
  readonly maxEntries?: number | undefined
}

/** Reads a range of US dollars by date, one month of 30 days after the other, sorting each month by itself. */
export interface MonthsShape {
  readonly kind: 'months'
  /** Where the months begin, in milliseconds since 1970, in the order of the answer. */
  readonly months: readonly number[]
}

/** One statement with all conditions; identifiers are looked up first. */
export interface PlainShape {
  readonly kind: 'plain'
}

/** The leading columns of an index, and the tuples of values that they are compared with: (payer, status) in ((A, 1), (A, 2)). */
export interface Branches {
  readonly columns: readonly BranchColumn[]
  readonly tuples: readonly (readonly BranchValue[])[]
}

export type BranchValue = string | number | Buffer
export type BranchColumn = keyof typeof branchTypes

/** The columns that branches may have, with their types. `month` is the expression of the index by month. */
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
  month: 'timestamptz',
} as const satisfies Readonly<Record<string, ColumnType>>

/** Payments that one index finds. */
export interface Part {
  /** The index meant, for those who read a plan, and for the test of EXPLAIN; PostgreSQL chooses by itself. */
  readonly index: string
  /** Undefined: all payments of the account. */
  readonly branches?: Branches | undefined
  /** What the index orders the entries of a branch by. */
  readonly order: 'time' | 'amount' | 'none'
  /** Filters that bound the range of the index. */
  readonly within: readonly FilterName[]
  /** Filters that are checked entry by entry. */
  readonly residual: readonly FilterName[]
  /** Whether only payments whose source is another network than their destination belong to the part. */
  readonly fromElsewhere?: boolean
}

/** A part whose index has the order of the answer after the branch columns. */
export interface WalkPart extends Part {
  /** How many sort keys the branch columns fix: 1 where the answer is ordered by status and each branch is of one status. */
  readonly fixedKeys: 0 | 1
  /** Whether the position bounds the part. If not, all of it comes after the position. */
  readonly startsAtPosition: boolean
  /** Set where only unknown amounts are read, because no known ones match. */
  readonly unknownOnly?: true
  /** Entries to read of each branch, at most. Undefined: as many as it takes. */
  readonly entryLimits?: readonly number[]
  /** Whether the branches themselves come in the order of the answer, so that those after a full page are not read. */
  readonly inOrder?: boolean
}
