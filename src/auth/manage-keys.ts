import { randomUUID } from 'node:crypto'
import {
  createApiKey,
  createPublishableKey,
  explainScopes,
  hashApiKey,
  hintOfApiKey,
  PUBLISHABLE_SCOPES,
  type Scope,
} from './rules/api-key.ts'
import type { Shop } from './rules/shop.ts'
import { type ApiKeyRepository, SERVICE, type StoredApiKey } from './sql/api-key-repository.ts'

/** A new key. */
export interface IssuedApiKey {
  /** The key itself; it cannot be shown again. */
  readonly key: string
  readonly stored: StoredApiKey
}

/** Calls a minute of a key that was created without a limit of its own. */
export const DEFAULT_CALLS_PER_MINUTE = 300

/** Whose key is created, and how long it lives. */
interface NewKey {
  /** A name that {@link isAccountName} allows. The account is created if there is none. */
  readonly account: string
  readonly now: Date
  readonly expiresAt?: Date | undefined
  /** For the audit log. */
  readonly actor?: string
}

/**
 * Creates a key for an account.
 *
 * @param terms.callsPerMinute - 0 for no limit; {@link DEFAULT_CALLS_PER_MINUTE} when absent
 * @param terms.share - the part of a process's running calls that nobody takes from the key, above 0 and at most 1; a tenth when absent
 * @throws RangeError for scopes that {@link explainScopes} refuses
 */
export async function issueApiKey(
  repository: ApiKeyRepository,
  terms: NewKey & {
    readonly scopes: readonly Scope[]
    readonly callsPerMinute?: number
    readonly share?: number | undefined
  },
): Promise<IssuedApiKey> {
  const { scopes, callsPerMinute = DEFAULT_CALLS_PER_MINUTE, share } = terms
  const detail = explainScopes(scopes)
  if (detail !== undefined) throw new RangeError(detail)
  return issue(repository, terms, { scopes, callsPerMinute, share })
}

/**
 * Creates a publishable key, which the pages of some origins may hold.
 *
 * @param terms.origins - exact origins, at least one; see {@link explainOrigin}
 * @throws RangeError without an origin
 */
export async function issuePublishableKey(
  repository: ApiKeyRepository,
  terms: NewKey & { readonly origins: readonly string[]; readonly shop?: Shop | undefined },
): Promise<IssuedApiKey> {
  const { origins, shop } = terms
  if (origins.length === 0) throw new RangeError('a publishable key needs at least one origin')
  return issue(repository, terms, { scopes: PUBLISHABLE_SCOPES, callsPerMinute: 0, origins, shop })
}

async function issue(
  repository: ApiKeyRepository,
  { account: name, now, expiresAt, actor = SERVICE }: NewKey,
  own: Pick<StoredApiKey, 'scopes' | 'callsPerMinute' | 'share' | 'origins' | 'shop'>,
): Promise<IssuedApiKey> {
  const account = await repository.ensureAccount(name)
  const issued = drawKey({ ...own, account, createdAt: now, expiresAt })
  await repository.insert(issued.stored, { actor, at: now })
  return issued
}

/**
 * Creates a key with the account, scopes, origins, shop, limit and share of another, which expires after the overlap; until then both are valid. If the
 * old key had a lifetime, the new one has the same.
 *
 * @returns undefined when there is no such key, or it is revoked or expired
 */
export async function rotateApiKey(
  repository: ApiKeyRepository,
  terms: { readonly id: string; readonly overlapMs: number; readonly now: Date; readonly actor?: string },
): Promise<IssuedApiKey | undefined> {
  const { id, overlapMs, now, actor = SERVICE } = terms
  const old = await repository.findById(id)
  if (old === undefined) return undefined
  const { account, scopes, callsPerMinute, share, origins, shop } = old
  const lifetimeMs = old.expiresAt && old.expiresAt.getTime() - old.createdAt.getTime()
  const expiresAt = lifetimeMs === undefined ? undefined : new Date(now.getTime() + lifetimeMs)
  const issued = drawKey({ account, scopes, callsPerMinute, share, origins, shop, createdAt: now, expiresAt })
  const oldExpiresAt = new Date(now.getTime() + overlapMs)
  const change = { actor, at: now }
  const isReplaced = await repository.replace({ oldId: id, key: issued.stored, oldExpiresAt, change })
  return isReplaced ? issued : undefined
}

function drawKey(terms: Omit<StoredApiKey, 'id' | 'keyHash' | 'hint'>): IssuedApiKey {
  const key = terms.origins === undefined ? createApiKey() : createPublishableKey()
  return { key, stored: { ...terms, id: randomUUID(), keyHash: hashApiKey(key), hint: hintOfApiKey(key) } }
}
