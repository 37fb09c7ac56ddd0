import { batchLookups } from './batch-lookups.ts'
import type { ApiKeyRepository, StoredApiKey } from './sql/api-key-repository.ts'

/** Finds a key by its id; undefined when it is revoked or expired. Always queries the database, once for all concurrent callers. */
export type FindKeyInForce = (keyId: string) => Promise<StoredApiKey | undefined>

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

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
    if (!UUID.test(keyId)) return undefined
    const key = await lookup(keyId)
    return key !== undefined && isInForce(key, now()) ? key : undefined
  }
}

/** Whether a key is neither revoked nor expired. */
export function isInForce({ revokedAt, expiresAt }: StoredApiKey, now: Date): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > now)
}
