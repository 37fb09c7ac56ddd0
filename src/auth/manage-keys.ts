import { randomUUID } from 'node:crypto'
import { createApiKey, hashApiKey, hintOfApiKey, type Scope } from './api-key.ts'
import { type ApiKeyRepository, SERVICE, type StoredApiKey } from './sql/api-key-repository.ts'

/** A key that was just made. */
export interface IssuedApiKey {
  /** The key itself; there is no way to see it again. */
  readonly key: string
  readonly stored: StoredApiKey
}

/** Calls a minute of a key that was made without saying how many. */
export const DEFAULT_CALLS_PER_MINUTE = 300

/**
 * Makes a key for an account, and the account if it is new.
 *
 * @param terms.account - a name that {@link isAccountName} allows
 * @param terms.callsPerMinute - 0 for any number; {@link DEFAULT_CALLS_PER_MINUTE} when absent
 * @param terms.actor - for the audit log
 */
export async function issueApiKey(
  repository: ApiKeyRepository,
  terms: {
    readonly account: string
    readonly scopes: readonly Scope[]
    readonly now: Date
    readonly callsPerMinute?: number
    readonly expiresAt?: Date | undefined
    readonly actor?: string
  },
): Promise<IssuedApiKey> {
  const { scopes, now, callsPerMinute = DEFAULT_CALLS_PER_MINUTE, expiresAt, actor = SERVICE } = terms
  const account = await repository.ensureAccount(terms.account)
  const issued = drawKey({ account, scopes, callsPerMinute, createdAt: now, ...(expiresAt && { expiresAt }) })
  await repository.insert(issued.stored, { actor, at: now })
  return issued
}

/**
 * Makes a key of the same account, scopes and rate as another, which expires after the overlap; until then both work. A key that
 * expires is followed by one that lives as long as it was made to live.
 *
 * @returns undefined when there is no such key in force
 */
export async function rotateApiKey(
  repository: ApiKeyRepository,
  terms: { readonly id: string; readonly overlapMs: number; readonly now: Date; readonly actor?: string },
): Promise<IssuedApiKey | undefined> {
  const { id, overlapMs, now, actor = SERVICE } = terms
  const old = await repository.findById(id)
  if (old === undefined) return undefined
  const { account, scopes, callsPerMinute } = old
  const lifetimeMs = old.expiresAt && old.expiresAt.getTime() - old.createdAt.getTime()
  const expiresAt = lifetimeMs === undefined ? undefined : new Date(now.getTime() + lifetimeMs)
  const issued = drawKey({ account, scopes, callsPerMinute, createdAt: now, ...(expiresAt && { expiresAt }) })
  const change = { actor, at: now }
  const isReplaced = await repository.replace(id, issued.stored, new Date(now.getTime() + overlapMs), change)
  return isReplaced ? issued : undefined
}

function drawKey(terms: Omit<StoredApiKey, 'id' | 'keyHash' | 'hint'>): IssuedApiKey {
  const key = createApiKey()
  return { key, stored: { ...terms, id: randomUUID(), keyHash: hashApiKey(key), hint: hintOfApiKey(key) } }
}
