import { createKeys, issueApiKey } from '../../src/auth/manage-keys.ts'
import { PUBLISHABLE_SCOPES } from '../../src/auth/rules/api-key.ts'
import type { KeyTerms } from '../../src/auth/rules/key-terms.ts'
import type { ApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'

/** Revokes a key as a command does. @returns whether it was not revoked before */
export async function revokeKey(repository: ApiKeyRepository, id: string, at: Date, actor = 'ann@host') {
  return (await createKeys({ repository, now: () => at }).revoke({ id }, { actor })).isNew
}

/** Creates a publishable key. */
export function issuePublishableKey(
  repository: ApiKeyRepository,
  terms: { readonly account: string; readonly now: Date } & Pick<KeyTerms, 'origins' | 'shop'>,
) {
  return issueApiKey(repository, { ...terms, scopes: PUBLISHABLE_SCOPES, callsPerMinute: 0 })
}
