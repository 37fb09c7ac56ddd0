import type { Account } from '../domain/account.ts'

/** The key behind a call, and the account it acts for. */
export interface Caller {
  readonly account: Account
  /** The key's id, which is not secret. */
  readonly keyId: string
  /**
   * Which accounts' unmatched events the key may see: those of all accounts and of none, or of `account` alone. Absent without the scope
   * `operations:read`.
   */
  readonly operates?: 'ALL' | 'ACCOUNT' | undefined
  /** The part of the process's running calls that nobody takes from the key, 0 to 1; absent for the usual one, and for a publishable key. */
  readonly share?: number | undefined
  /** The client address behind a publishable key, by which its calls are counted; absent for a secret key. */
  readonly pageAddress?: string | undefined
}
