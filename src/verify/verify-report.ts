/** What a difference is about. REQUEST and STATISTICS are not of one event. */
export type DifferenceKind = 'PAYMENT' | 'REFUND' | 'UNMATCHED' | 'REQUEST' | 'STATISTICS'

/** A stored value that is not what the chain says. */
export interface VerifyDifference {
  readonly kind: DifferenceKind
  /** Name of the account; absent for unmatched events of no account. */
  readonly account?: string | undefined
  /** Of the event. */
  readonly txHash?: string | undefined
  /** 0-based among the payment events of the transaction. */
  readonly eventIndex?: number | undefined
  readonly blockNumber?: number | undefined
  /** Of a request. */
  readonly requestId?: string | undefined
  /** Which value differs; `row` where one side has no row at all. */
  readonly field: string
  /** What the database has; absent: nothing. */
  readonly stored?: string | undefined
  /** What follows from the chain; absent: nothing. */
  readonly chain?: string | undefined
}

/** What could not be proved, and why, in words. */
export interface Unproven {
  /** The blocks or the event: `blocks 7 to 9`, `event 0 of 0x…`. */
  readonly where: string
  readonly why: string
  /** Whether it is told for information: another node proved it, or the service will look it up. Then the verification still counts as decided. */
  readonly isInfo?: boolean | undefined
}

/** A block that could not be proved. */
export interface UnprovenBlock extends Omit<Unproven, 'where'> {
  readonly block: number
}

/** What an account was paid and paid back in a currency, by the chain. Amounts are decimal texts. */
export interface VerifyTotal {
  readonly account: string
  /** Id of the currency that was paid in. */
  readonly currency: string
  readonly payments: number
  readonly paid: string
  readonly refunds: number
  readonly refunded: string
}

/** What a verification came to. */
export interface VerifyReport {
  /** Canonical name of the chain. */
  readonly network: string
  /** The block at which all was computed: the last final one that was read. */
  readonly block: { readonly number: number; readonly hash: string }
  /** The range that was compared, which may be less than what was asked for. `to` is below `from` where nothing was. */
  readonly from: number
  readonly to: number
  /** Present where it was stopped before the end. */
  readonly stopped?:
    | {
        /** The blocks of the whole range. */
        readonly blocksTotal: number
        /** Those that were read, of which the last may not be compared. */
        readonly blocksRead: number
      }
    | undefined
  /** Why less was compared than was asked for. */
  readonly notes: readonly string[]
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** Sums of what the chain has in the range. */
  readonly totals: readonly VerifyTotal[]
  /** What was compared. */
  readonly counts: {
    readonly blocks: number
    /** Blocks of which receipts were read. */
    readonly receiptsRead: number
    readonly payments: number
    readonly refunds: number
    readonly unmatched: number
    readonly requests: number
  }
}

/** How far a verification is. */
export interface VerifyProgress {
  readonly blocksDone: number
  readonly blocksTotal: number
  /** Payment events and differences found so far. */
  readonly events: number
  readonly differences: number
}
