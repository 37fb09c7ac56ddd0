import { timingSafeEqual } from 'node:crypto'
import type { Account } from '../domain/account.ts'
import { waybillError } from '../errors.ts'
import { hashApiKey, isApiKey, type Scope, scopes } from './api-key.ts'
import type { ApiKeyRepository, StoredApiKey } from './api-key-repository.ts'
import { createShortCache } from './short-cache.ts'

/** Who calls, and for whom. */
export interface Caller {
  readonly account: Account
  /** The key's id, which is no secret. */
  readonly keyId: string
}

/** What a caller sends. */
export interface Credentials {
  /** Header `x-api-key`. */
  readonly apiKey: string | null
  /** Header `x-account`. */
  readonly account: string | null
}

/**
 * Tells who a caller is.
 *
 * @throws WaybillError MISSING_API_KEY, INVALID_API_KEY, MISSING_SCOPE, MISSING_ACCOUNT, UNKNOWN_ACCOUNT, ACCOUNT_NOT_ALLOWED
 */
export type Authenticate = (credentials: Credentials, scope: Scope) => Promise<Caller>

/** A key that exists in this process alone and is never stored. */
export interface ProcessKey {
  readonly key: string
  readonly account: Account
}

/** How long a revoked key may still work on a process that has just seen it, in milliseconds. */
const CACHE_LIFETIME_MS = 5_000
const MOST_CACHED = 10_000

/**
 * Makes the check of API keys.
 *
 * @param options.processKey - the demo's key, in a demo process alone
 */
export function createAuthenticate(options: {
  readonly repository: Pick<ApiKeyRepository, 'findByHash' | 'findAccount'>
  readonly now: () => Date
  readonly processKey?: ProcessKey
}): Authenticate {
  const { repository, now, processKey } = options
  const cacheOptions = { lifetimeMs: CACHE_LIFETIME_MS, mostEntries: MOST_CACHED, now: () => performance.now() }
  const keys = createShortCache<StoredApiKey>(cacheOptions)
  const accounts = createShortCache<Account>(cacheOptions)
  const processKeyHash = processKey === undefined ? undefined : hashApiKey(processKey.key)

  async function findKey(apiKey: string): Promise<StoredApiKey | undefined> {
    const keyHash = hashApiKey(apiKey)
    if (processKey !== undefined && processKeyHash !== undefined && timingSafeEqual(keyHash, processKeyHash)) {
      return storedFormOf(processKey, keyHash)
    }
    if (!isApiKey(apiKey)) return undefined
    const found = await keys.get(keyHash.toString('base64'), () => repository.findByHash(keyHash))
    return found !== undefined && timingSafeEqual(found.keyHash, keyHash) && isInForce(found, now()) ? found : undefined
  }

  async function chooseAccount(key: StoredApiKey, name: string | null): Promise<Account> {
    if (!key.scopes.includes('accounts:any')) {
      if (name !== null && name !== key.account.name) throw waybillError('ACCOUNT_NOT_ALLOWED', {})
      return key.account
    }
    if (name === null || name === '') throw waybillError('MISSING_ACCOUNT', {})
    const account = await accounts.get(name, () => repository.findAccount(name))
    if (account === undefined) throw waybillError('UNKNOWN_ACCOUNT', { value: name })
    return account
  }

  return async ({ apiKey, account }, scope) => {
    if (apiKey === null || apiKey === '') throw waybillError('MISSING_API_KEY', {})
    const key = await findKey(apiKey)
    if (key === undefined) throw waybillError('INVALID_API_KEY', {})
    if (!key.scopes.includes(scope)) throw waybillError('MISSING_SCOPE', { scope })
    return { account: await chooseAccount(key, account), keyId: key.id }
  }
}

function isInForce(key: StoredApiKey, now: Date): boolean {
  return key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > now)
}

function storedFormOf({ key, account }: ProcessKey, keyHash: Buffer): StoredApiKey {
  const ownScopes = scopes.filter((scope) => scope !== 'accounts:any')
  return { id: key, keyHash, account, hint: key, scopes: ownScopes, createdAt: new Date(0) }
}
