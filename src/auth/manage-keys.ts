import { randomUUID } from 'node:crypto'
import { createApiKey, hashApiKey, hintOfApiKey, type Scope } from './api-key.ts'
import type { ApiKeyRepository, StoredApiKey } from './api-key-repository.ts'

/** A key that was just made. */
export interface IssuedApiKey {
  /** The key itself; there is no way to see it again. */
  readonly key: string
  readonly stored: StoredApiKey
}

/**
 * Makes a key for an account, and the account if it is new.
 *
 * @param terms.account - a name that {@link isAccountName} allows
 */
export async function issueApiKey(
  repository: ApiKeyRepository,
  terms: { readonly account: string; readonly scopes: readonly Scope[]; readonly now: Date },
): Promise<IssuedApiKey> {
  const account = await repository.ensureAccount(terms.account)
  const key = createApiKey()
  const stored: StoredApiKey = {
    id: randomUUID(),
    keyHash: hashApiKey(key),
    account,
    hint: hintOfApiKey(key),
    scopes: terms.scopes,
    createdAt: terms.now,
  }
  await repository.insert(stored)
  return { key, stored }
}
