import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Account } from '../../domain/account.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import type { Span } from '../read/plan-range.ts'
import type { EventFact } from '../rules/chain-facts.ts'

/** What every comparison with the database needs. */
export interface CompareTerms {
  readonly knex: Knex
  readonly chain: ChainConfig
  readonly tokens: TokenDirectory
  /** The number of the pinned block. */
  readonly pinned: number
  /** Absent: all accounts. */
  readonly account?: Account | undefined
  readonly signal?: AbortSignal | undefined
  /** Events of earlier sections that differ from what is stored. They belong to the history of their requests, even if no row names their block. */
  readonly differed: readonly EventFact[]
  /** Reads blocks outside the section, for the other payments of its requests. */
  readMore(
    blocks: readonly number[],
  ): Promise<{ readonly facts: readonly EventFact[]; readonly uncertain: readonly number[] }>
}

/** Reads in a snapshot that nobody changes meanwhile. */
export function inSnapshot<T>(
  { knex, signal }: Pick<CompareTerms, 'knex' | 'signal'>,
  work: (trx: Knex) => Promise<T>,
): Promise<T> {
  return inTransaction(knex, signal, work, { isolationLevel: 'repeatable read', readOnly: true })
}

export function isWithin({ from, to }: Span, number: number): boolean {
  return number >= from && number <= to
}

/** The key of an event of a chain. */
export function placeKey(txHash: string, eventIndex: number): string {
  return `${txHash} ${eventIndex}`
}

export function keyOfFact({ txHash, event }: Pick<EventFact, 'txHash' | 'event'>): string {
  return placeKey(txHash, event.eventIndex)
}
