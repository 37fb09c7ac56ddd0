import { timingSafeEqual } from 'node:crypto'
import { type Account, isAccountName } from '../domain/account.ts'
import { dropOldest } from '../domain/collections.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { batchLookups } from './batch-lookups.ts'
import type { Caller, Page, ReportLimit } from './caller.ts'
import { admitPage, isInForce, type PageHeaders } from './find-key-in-force.ts'
import type { CountAddress } from './limit-addresses.ts'
import type { CountCall } from './limit-calls.ts'
import type { RecordUse } from './record-use.ts'
import { hashApiKey, isApiKey, isOperators, PUBLISHABLE_SCOPES, type Scope, scopes } from './rules/api-key.ts'
import type { Shop } from './rules/shop.ts'
import type { ApiKeyRepository, StoredApiKey } from './sql/api-key-repository.ts'
import type { WatchTickets } from './watch-tickets.ts'

/** What a caller sends. */
export interface Credentials {
  /** Header `x-api-key`. */
  readonly apiKey: string | null
  /** A watch ticket, for callers that cannot send headers; read only when there is no key. */
  readonly ticket?: string | null | undefined
  /** Header `x-account`. */
  readonly account: string | null
  /** The client address in canonical form. Called only when the key is publishable, missing or not known to be good. */
  readonly address: () => string
  /** Called only for a publishable key; absent where such keys may not call. */
  readonly page?: (() => PageHeaders) | undefined
}

/**
 * Identifies the caller and counts the call: against the limit of the key or, without a valid key, of the address.
 *
 * @param scope - what the key must be allowed; `any`: no more than to be a secret key
 * @param report - receives the state of the limit that the call counted against, also when the call is refused
 * @throws WaybillError RATE_LIMITED, MISSING_API_KEY, INVALID_API_KEY, INVALID_TICKET, MISSING_SCOPE, MISSING_ACCOUNT,
 *   UNKNOWN_ACCOUNT, ACCOUNT_NOT_ALLOWED, NOT_FOR_PUBLISHABLE_KEYS, ORIGIN_NOT_ALLOWED
 */
export type Authenticate = (credentials: Credentials, scope: Scope | 'any', report: ReportLimit) => Promise<Caller>

/** A key that exists only in this process and is never stored. */
export interface ProcessKey {
  readonly key: string
  readonly account: Account
  /** The origins whose pages may use it; undefined for a secret key. */
  readonly origins?: readonly string[] | undefined
  readonly shop?: Shop | undefined
}

export interface AuthenticateOptions {
  readonly repository: Pick<ApiKeyRepository, 'findByHashes' | 'findAccount'>
  readonly now: () => Date
  readonly monotonicMs: () => number
  readonly countCall: CountCall
  readonly countAddress: CountAddress
  /** Counts calls with publishable keys. */
  readonly countPage: CountAddress
  readonly recordUse: RecordUse
  readonly tickets: Pick<WatchTickets, 'redeem'>
  /** The demo's keys; empty in any other process. */
  readonly processKeys: readonly StoredApiKey[]
}

/** How long a process may still accept a key after it was revoked, in milliseconds. */
const CACHE_LIFETIME_MS = 5_000
const MAX_CACHED = 10_000

/** How long a key that was valid is looked up without counting against its address, in milliseconds. */
const KNOWN_LIFETIME_MS = 3_600_000

/** Hashes in one query. */
const MAX_BATCH = 500

export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { repository, now, monotonicMs, countCall, countAddress, countPage, recordUse, tickets, processKeys } = options
  const cacheOptions = { maxEntries: MAX_CACHED, now: monotonicMs }
  const keys = createShortCache<StoredApiKey>({ ...cacheOptions, lifetimeMs: CACHE_LIFETIME_MS })
  const accounts = createShortCache<Account>({ ...cacheOptions, lifetimeMs: CACHE_LIFETIME_MS })
  const known = createShortCache<true>({ ...cacheOptions, lifetimeMs: KNOWN_LIFETIME_MS })
  const lookup = batchLookups<StoredApiKey>({
    findMany: (names) => repository.findByHashes(names.map((name) => Buffer.from(name, 'base64'))),
    nameOf: ({ keyHash }) => keyHash.toString('base64'),
    maxBatch: MAX_BATCH,
  })

  /**
   * A key that is not known to be valid counts against its address before it is looked up: an address cannot query the database
   * for more invented keys than its limit. Callers with a known key at the same address are not affected.
   */
  async function findKey(apiKey: string, spend: () => () => void): Promise<StoredApiKey | undefined> {
    const keyHash = hashApiKey(apiKey)
    const own = processKeys.find((key) => timingSafeEqual(keyHash, key.keyHash))
    if (own !== undefined) return own
    const name = keyHash.toString('base64')
    const takeBack = known.has(name) ? undefined : spend()
    if (!isApiKey(apiKey)) return undefined
    const found = await keys.get(name, () => loadAgain(name))
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

  async function loadAgain(name: string): Promise<StoredApiKey | undefined> {
    const found = await lookup(name)
    if (found !== undefined && isInForce(found, now())) known.set(name, true)
    return found
  }

  async function chooseAccount(key: StoredApiKey, name: string | null): Promise<Account> {
    if (!key.scopes.includes('accounts:any')) {
      if (name !== null && name !== key.account.name) throw waybillError('ACCOUNT_NOT_ALLOWED', {})
      return key.account
    }
    if (name === null || name === '') throw waybillError('MISSING_ACCOUNT', {})
    const account = isAccountName(name) ? await accounts.get(name, () => repository.findAccount(name)) : undefined
    if (account === undefined) throw waybillError('UNKNOWN_ACCOUNT', { value: name })
    return account
  }

  /** The demo's key reaches its own account alone. */
  function operatesOn(key: StoredApiKey): Caller['operates'] {
    if (!key.scopes.includes('operations:read')) return undefined
    return isOperators(key.scopes) && !processKeys.includes(key) ? 'ALL' : 'ACCOUNT'
  }

  return async ({ apiKey, ticket, account, address, page }, scope, report) => {
    const spend = () => countAddress(address(), report)
    if (apiKey === null || apiKey === '') {
      if (typeof ticket === 'string' && scope !== 'any')
        return tickets.redeem(ticket, { scope, account, address, report })
      spend()
      throw waybillError('MISSING_API_KEY', {})
    }
    const key = await findKey(apiKey, spend)
    if (key === undefined) throw waybillError('INVALID_API_KEY', {})
    if (!processKeys.includes(key)) recordUse(key.id)
    if (key.origins !== undefined) {
      const caller: Page = { address: address(), origins: key.origins, shop: key.shop ?? {} }
      countPage(caller.address, report)
      admitPage(key.origins, page?.())
      return { account: await chooseAccount(key, account), keyId: key.id, page: caller }
    }
    await countCall(key.id, key.callsPerMinute, report)
    if (scope !== 'any' && !key.scopes.includes(scope)) throw waybillError('MISSING_SCOPE', { scope })
    const { id: keyId, share } = key
    return { account: await chooseAccount(key, account), keyId, share, operates: operatesOn(key) }
  }
}

/** Gives a process key the form of a stored one: every scope but the platform's, and no limit. */
export function storedFormOf({ key, account, origins, shop }: ProcessKey): StoredApiKey {
  const ownScopes = origins === undefined ? scopes.filter((scope) => scope !== 'accounts:any') : PUBLISHABLE_SCOPES
  const keyHash = hashApiKey(key)
  const own = { scopes: ownScopes, callsPerMinute: 0, origins, shop }
  return { ...own, id: key, keyHash, account, hint: key, createdAt: new Date(0) }
}

/**
 * Caches lookups for a short time; concurrent lookups of one name share one load. Misses are not cached: a flood of invented
 * keys takes no memory, and a new key works at once.
 *
 * @param options.lifetimeMs - how long an entry is valid, and so how long a revoked key may still be accepted
 * @param options.maxEntries - beyond it the oldest entries are dropped
 * @param options.now - milliseconds of a monotonic clock
 */
function createShortCache<T>(options: {
  readonly lifetimeMs: number
  readonly maxEntries: number
  readonly now: () => number
}) {
  const entries = new Map<string, { readonly value: T; readonly validUntil: number }>()
  const loading = new Map<string, Promise<T | undefined>>()

  async function loadAndRemember(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      const value = await load()
      if (value !== undefined) remember(name, value)
      return value
    } finally {
      loading.delete(name)
    }
  }

  function remember(name: string, value: T) {
    entries.delete(name)
    entries.set(name, { value, validUntil: options.now() + options.lifetimeMs })
    dropOldest(entries, options.maxEntries)
  }

  return {
    has: (name: string) => (entries.get(name)?.validUntil ?? Number.NEGATIVE_INFINITY) > options.now(),
    set: remember,
    delete(name: string): void {
      entries.delete(name)
    },
    get(name: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
      const entry = entries.get(name)
      if (entry !== undefined && entry.validUntil > options.now()) return Promise.resolve(entry.value)
      entries.delete(name)
      const underWay = loading.get(name)
      if (underWay !== undefined) return underWay
      const started = loadAndRemember(name, load)
      loading.set(name, started)
      return started
    },
  }
}
