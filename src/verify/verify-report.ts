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

/** Something that could not be proved, with the reason in words. */
export interface Unproven {
  /** The blocks or the transaction that it is about. */
  readonly where: string
  readonly why: string
  /** Whether another node's answer decided, so that nothing is open. */
  readonly isTold?: boolean
}

/** What a verification came to. */
export interface VerifyReport {
  /** Canonical name of the chain. */
  readonly network: string
  /** The block at which all was computed: the last final one that was read. */
  readonly block: { readonly number: number; readonly hash: string }
  /** The range that was compared, which may be less than what was asked for. */
  readonly from: number
  readonly to: number
  /** Why less was compared than was asked for. */
  readonly notes: readonly string[]
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
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
  /** Payment events found so far. */
  readonly events: number
}
