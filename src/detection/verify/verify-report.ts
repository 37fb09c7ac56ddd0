import { addDecimals, formatDecimal, readStoredDecimal } from '../../domain/decimal.ts'

/** What a difference is about: an event, a request, or what is derived of an account as a whole. */
export type DifferenceKind = 'PAYMENT' | 'REFUND' | 'UNMATCHED' | 'REQUEST' | 'STATISTICS' | 'CHANGES'

/** A stored value that differs from what the chain says. */
export interface VerifyDifference {
  readonly kind: DifferenceKind
  /** Name of the account; absent for unmatched events of no account. */
  readonly account?: string | undefined
  /** Of the event. */
  readonly txHash?: string | undefined
  /** 0-based among the payment events of the transaction. */
  readonly eventIndex?: number | undefined
  readonly blockNumber?: number | undefined
  readonly paymentId?: string | undefined
  /** Of the request that it belongs to. */
  readonly requestId?: string | undefined
  /** The field that differs; `row` where the whole row is missing, or should not be there. */
  readonly field: string
  /** The value in the database; absent where there is none. */
  readonly stored?: string | undefined
  /** The value by the chain; absent where there is none. */
  readonly chain?: string | undefined
}

/** What could not be proved, and why, in words. */
export interface Unproven {
  /** The blocks or the event: `blocks 7 to 9`, `event 0 of 0x…`. */
  readonly where: string
  readonly why: string
  /** Whether it is for information only: another node proved it, or the service will look it up. Then the verification still counts as decided. */
  readonly isInfo?: boolean | undefined
}

/** A block that could not be proved. */
export interface UnprovenBlock extends Omit<Unproven, 'where'> {
  readonly block: number
}

/** What an account received and refunded in a currency, by the chain. Amounts are decimal texts. */
export interface VerifyTotal {
  readonly account: string
  /** Id of the payment currency. */
  readonly currency: string
  readonly payments: number
  readonly paid: string
  readonly refunds: number
  readonly refunded: string
}

/** The result of a verification. */
export interface VerifyReport {
  /** Canonical name of the chain. */
  readonly network: string
  /** The pinned block: the last final block for the node and for the database. Later blocks have no part in the result. */
  readonly block: { readonly number: number; readonly hash: string }
  /** The range that was compared, perhaps less than was asked for. `to` is below `from` where nothing was compared. */
  readonly from: number
  readonly to: number
  /** Present where a signal stopped it. */
  readonly stopped?:
    | {
        /** The blocks of the whole range. */
        readonly blocksTotal: number
        /** Those that were read, of which the last may not be compared. */
        readonly blocksRead: number
      }
    | undefined
  /** Sentences that say which blocks of the asked range were left out, and why. */
  readonly notes: readonly string[]
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** Sums over the range, by the chain. */
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

/** The progress of a verification. */
export interface VerifyProgress {
  readonly blocksDone: number
  readonly blocksTotal: number
  /** Payment events and differences found so far. */
  readonly events: number
  readonly differences: number
}

/** A payment or a refund, with its decimal amount. */
export interface CountedAmount extends Pick<VerifyTotal, 'account' | 'currency'> {
  readonly kind: 'PAYMENT' | 'REFUND'
  readonly amount: string
}

/** Makes the sums by account and currency. */
export function createTotals() {
  const sums = new Map<string, VerifyTotal>()
  return {
    add(counted: readonly CountedAmount[]): void {
      for (const { account, currency, kind, amount } of counted) {
        const key = `${account} ${currency}`
        const sum = sums.get(key) ?? { account, currency, payments: 0, paid: '0', refunds: 0, refunded: '0' }
        const value = readStoredDecimal(amount)
        const add = (text: string) => formatDecimal(addDecimals(readStoredDecimal(text), value))
        const added =
          kind === 'PAYMENT'
            ? { payments: sum.payments + 1, paid: add(sum.paid) }
            : { refunds: sum.refunds + 1, refunded: add(sum.refunded) }
        sums.set(key, { ...sum, ...added })
      }
    },
    /** Sorted by account and currency. */
    list: () => [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, total]) => total),
  }
}
