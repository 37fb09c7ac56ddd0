import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import type { History } from './read-history.ts'

/** What comparing sections with the database needs. */
export interface CompareTerms {
  readonly knex: Knex
  readonly chain: OpenChain
  /** Absent: all accounts. */
  readonly account?: Account | undefined
  /** Who repairs, for the audit log; absent: nothing is written. */
  readonly repairer?: string | undefined
  readonly clock: () => Date
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until a difference is compared again. */
  readonly againAfterMs: number
  /** Reads blocks outside the section, for the other payments of its requests. */
  readonly history: History
}
