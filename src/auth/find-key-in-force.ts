import { parseUuid } from '../domain/identifiers.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { batchLookups } from './batch-lookups.ts'
import type { ApiKeyRepository, StoredApiKey } from './sql/api-key-repository.ts'

/** Finds a key by its id; undefined when it is revoked or expired. Always queries the database, once for all concurrent callers. */
export type FindKeyInForce = (keyId: string) => Promise<StoredApiKey | undefined>

/** Ids in one query. */
const MAX_BATCH = 500

/**
 * For calls that last longer than keys are cached.
 *
 * @param options.processKeys - keys that are never stored and always in force
 */
export function createFindKeyInForce(options: {
  readonly repository: Pick<ApiKeyRepository, 'findByIds'>
  readonly now: () => Date
  readonly processKeys: readonly StoredApiKey[]
}): FindKeyInForce {
  const { repository, now, processKeys } = options
  const lookup = batchLookups<StoredApiKey>({
    findMany: (ids) => repository.findByIds(ids),
    nameOf: ({ id }) => id,
    maxBatch: MAX_BATCH,
  })
  return async (keyId) => {
    const own = processKeys.find(({ id }) => id === keyId)
    if (own !== undefined) return own
    // The own key of another process is not stored, and its id is not a UUID.
    if (parseUuid(keyId) === undefined) return undefined
    const key = await lookup(keyId)
    return key !== undefined && isInForce(key, now()) ? key : undefined
  }
}

export type KeyState = 'IN_FORCE' | 'EXPIRED' | 'REVOKED'

export function stateOf({ revokedAt, expiresAt }: StoredApiKey, now: Date): KeyState {
  if (revokedAt !== undefined) return 'REVOKED'
  return expiresAt !== undefined && expiresAt <= now ? 'EXPIRED' : 'IN_FORCE'
}

/** Whether a key is neither revoked nor expired. */
export function isInForce(key: StoredApiKey, now: Date): boolean {
  return stateOf(key, now) === 'IN_FORCE'
}

/** What a browser tells of the page behind a call. Other programs can send the same: it proves nothing of them. */
export interface PageHeaders {
  /** Header `origin`. */
  readonly origin: string | null
  /** Header `sec-fetch-site`. */
  readonly fetchSite: string | null
  /** Name and port under which the service was asked for, from `host` or `:authority`. */
  readonly host: string | null
}

/** Calls a minute with publishable keys from one client address. */
export const PUBLISHABLE_CALLS_PER_MINUTE = 60

/**
 * Admits a call with a publishable key: of a method for pages, from a page of one of its origins or from the checkout page, which the service
 * itself serves. A browser tells of the latter by `sec-fetch-site`; it sends no Origin with a page's own GETs, and the service's with its POSTs.
 *
 * @param page - undefined for a method that is not for pages
 * @throws WaybillError NOT_FOR_PUBLISHABLE_KEYS, ORIGIN_NOT_ALLOWED
 */
export function admitPage(origins: readonly string[], page: PageHeaders | undefined): void {
  if (page === undefined) throw waybillError('NOT_FOR_PUBLISHABLE_KEYS', {})
  const { origin, fetchSite } = page
  if (origin !== null && origins.includes(origin)) return
  if (fetchSite === 'same-origin' && isOwnOrigin(page)) return
  throw waybillError('ORIGIN_NOT_ALLOWED', { value: origin ?? '' })
}

function isOwnOrigin({ origin, host }: PageHeaders): boolean {
  return origin === null || (host !== null && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host)
}
