import { timingSafeEqual } from 'node:crypto'
import type { Account } from '../domain/account.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { hashApiKey, isApiKey, type Scope, scopes } from './api-key.ts'
import { batchLookUps } from './batch-look-ups.ts'
import { isInForce } from './find-key-in-force.ts'
import type { AddressLimit } from './limit-addresses.ts'
import type { CountCall } from './limit-calls.ts'
import type { ReportLimit } from './rate-limit.ts'
import type { RecordUse } from './record-use.ts'
import { createShortCache } from './short-cache.ts'
import type { ApiKeyRepository, StoredApiKey } from './sql/api-key-repository.ts'
import type { WatchTickets } from './watch-tickets.ts'

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
  /** What stands for the key of a caller that can send no header; looked at only without a key. */
  readonly ticket?: string | null | undefined
  /** Header `x-account`. */
  readonly account: string | null
  /** Where the call comes from, in the form in which addresses are told apart. Asked for only without a key that is known. */
  readonly address: () => string
}

/**
 * Tells who a caller is, and counts the call: against the key, or without a good one against the address.
 *
 * @param report - hears of the limit that was counted against, if any, also when it then refuses
 * @throws WaybillError RATE_LIMITED, MISSING_API_KEY, INVALID_API_KEY, INVALID_TICKET, MISSING_SCOPE, MISSING_ACCOUNT,
 *   UNKNOWN_ACCOUNT, ACCOUNT_NOT_ALLOWED
 */
export type Authenticate = (credentials: Credentials, scope: Scope, report: ReportLimit) => Promise<Caller>

/** A key that exists in this process alone and is never stored. */
export interface ProcessKey {
  readonly key: string
  readonly account: Account
}

export interface AuthenticateOptions {
  readonly repository: Pick<ApiKeyRepository, 'findByHashes' | 'findAccount'>
  readonly now: () => Date
  readonly monotonicMs: () => number
  readonly countCall: CountCall
  readonly addressLimit: AddressLimit
  readonly recordUse: RecordUse
  readonly tickets: Pick<WatchTickets, 'redeem'>
  /** The demo's key, in a demo process alone. */
  readonly processKey?: StoredApiKey | undefined
}

/** How long a revoked key may still work on a process that has just seen it, in milliseconds. */
const CACHE_LIFETIME_MS = 5_000
const MOST_CACHED = 10_000

/** How long a key that was good is looked up again without counting against its address, in milliseconds. */
const KNOWN_LIFETIME_MS = 3_600_000

/** Hashes in one question to the database. */
const MOST_AT_ONCE = 500

/** Makes the check of API keys. */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { repository, now, monotonicMs, countCall, addressLimit, recordUse, tickets, processKey } = options
  const cacheOptions = { mostEntries: MOST_CACHED, now: monotonicMs }
  const keys = createShortCache<StoredApiKey>({ ...cacheOptions, lifetimeMs: CACHE_LIFETIME_MS })
  const accounts = createShortCache<Account>({ ...cacheOptions, lifetimeMs: CACHE_LIFETIME_MS })
  const known = createShortCache<true>({ ...cacheOptions, lifetimeMs: KNOWN_LIFETIME_MS })
  const lookUp = batchLookUps<StoredApiKey>({
    findMany: (names) => repository.findByHashes(names.map((name) => Buffer.from(name, 'base64'))),
    nameOf: ({ keyHash }) => keyHash.toString('base64'),
    mostAtOnce: MOST_AT_ONCE,
  })

  /**
   * A key that is not known to be good counts against its address before it is looked up, so that an address can ask the
   * database for no more made-up keys than its limit. Who shares the address and has a known key is not held up by that.
   */
  async function findKey(apiKey: string, spend: () => () => void): Promise<StoredApiKey | undefined> {
    const keyHash = hashApiKey(apiKey)
    if (processKey !== undefined && timingSafeEqual(keyHash, processKey.keyHash)) return processKey
    const name = keyHash.toString('base64')
    const takeBack = known.has(name) ? undefined : spend()
    if (!isApiKey(apiKey)) return undefined
    const found = await keys.get(name, () => lookUpAnew(name))
    if (found !== undefined && timingSafeEqual(found.keyHash, keyHash) && isInForce(found, now())) {
      takeBack?.()
      return found
    }
    if (takeBack === undefined) {
      known.delete(name)
      spend()
    }
    return undefined
  }

  async function lookUpAnew(name: string): Promise<StoredApiKey | undefined> {
    const found = await lookUp(name)
    if (found !== undefined && isInForce(found, now())) known.set(name, true)
    return found
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

  return async ({ apiKey, ticket, account, address }, scope, report) => {
    const spend = () => addressLimit.spend(address(), report)
    if (apiKey === null || apiKey === '') {
      if (typeof ticket === 'string') return tickets.redeem(ticket, { scope, account, address, report })
      spend()
      throw waybillError('MISSING_API_KEY', {})
    }
    const key = await findKey(apiKey, spend)
    if (key === undefined) throw waybillError('INVALID_API_KEY', {})
    if (key !== processKey) recordUse(key.id)
    await countCall(key.id, key.callsPerMinute, report)
    if (!key.scopes.includes(scope)) throw waybillError('MISSING_SCOPE', { scope })
    return { account: await chooseAccount(key, account), keyId: key.id }
  }
}

/** The form of a key that is stored nowhere: every scope but the platform's, and no limit. */
export function storedFormOf({ key, account }: ProcessKey): StoredApiKey {
  const ownScopes = scopes.filter((scope) => scope !== 'accounts:any')
  const keyHash = hashApiKey(key)
  return { id: key, keyHash, account, hint: key, scopes: ownScopes, callsPerMinute: 0, createdAt: new Date(0) }
}
