import type { Account } from '../../domain/account.ts'
import type { Hex } from '../../domain/hex.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { EventFact } from '../rules/chain-facts.ts'
import type { Verdict } from '../rules/judge-event.ts'
import type { StoredRequest, WalletTime } from '../sql/stored-requests.ts'
import type { StoredRows } from '../sql/stored-rows.ts'
import type { Unproven } from '../verify-report.ts'
import type { RowChain } from './expected-rows.ts'

/** What was read of the chain. */
export interface Comparison extends RowChain {
  /** Facts by topic, in the order of the chain. */
  readonly factsOf: ReadonlyMap<Hex, readonly EventFact[]>
  /** Facts by `placeKey`. */
  readonly factAt: ReadonlyMap<string, EventFact>
  /** Whether a block is in the section, rather than read only for the history of a request. */
  isInRange(blockNumber: number): boolean
  /** Whether the events of a block were read and are certain. Rows of other blocks are taken as stored. */
  isRead(blockNumber: number): boolean
}

/** An account, and what its requests share. */
export interface ComparedAccount extends Account {
  readonly wallets: readonly WalletTime[]
  /** By transaction hash and event index. */
  readonly accepted: ReadonlyMap<string, 'PAYMENT' | 'REFUND'>
}

export interface Judged {
  readonly fact: EventFact
  readonly verdict: Verdict
}

/** The page of requests that is compared. */
export interface Page {
  readonly comparison: Comparison
  readonly account: ComparedAccount
  /** By id. */
  readonly requests: ReadonlyMap<string, StoredRequest>
  readonly stored: StoredRows
  readonly paymentAt: ReadonlyMap<string, PaymentRow>
  readonly refundAt: ReadonlyMap<string, RefundRow>
  /** What the service still looks up, by transaction hash. */
  readonly lookups: ReadonlyMap<string, readonly string[]>
  readonly unproven: Unproven[]
}

/** The reason of an unmatched event that could not be judged: any stored reason is right. */
export const UNDECIDED = 'undecided'

/** Whether a stored payment is not compared with the chain: only imported, of another chain, or of a block that was not read. */
export function isGiven({ comparison }: Page, { detected, network, block_number }: PaymentRow): boolean {
  return (
    !detected || network !== comparison.chain.name || block_number === null || !comparison.isRead(Number(block_number))
  )
}

export function isReadRefund({ comparison }: Page, { network, block_number }: RefundRow): boolean {
  return network === comparison.chain.name && comparison.isRead(Number(block_number))
}
