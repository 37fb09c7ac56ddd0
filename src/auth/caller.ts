import type { Account } from '../domain/account.ts'

/** The key behind a call, and the account it acts for. */
export interface Caller {
  readonly account: Account
  /** The key's id, which is not secret. */
  readonly keyId: string
}
