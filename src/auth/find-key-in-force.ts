import { batchLookUps } from './batch-look-ups.ts'
import type { ApiKeyRepository, StoredApiKey } from './sql/api-key-repository.ts'

/** Finds a key by its id; undefined when it is not in force any more. Asks the database, once for all who ask at the same time. */
export type FindKeyInForce = (keyId: string) => Promise<StoredApiKey | undefined>

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** Ids in one question to the database. */
const MOST_AT_ONCE = 500

/**
 * Makes it, for calls that outlast what is remembered of keys.
 *
 * @param options.processKey - a key that is stored nowhere and always in force
 */
export function createFindKeyInForce(options: {
  readonly repository: Pick<ApiKeyRepository, 'findByIds'>
  readonly now: () => Date
  readonly processKey: StoredApiKey | undefined
}): FindKeyInForce {
  const { repository, now, processKey } = options
  const lookUp = batchLookUps<StoredApiKey>({
    findMany: (ids) => repository.findByIds(ids),
    nameOf: ({ id }) => id,
    mostAtOnce: MOST_AT_ONCE,
  })
  return async (keyId) => {
    if (keyId === processKey?.id) return processKey
    // The key of another process, which is stored nowhere, has a name for an id.
    if (!UUID.test(keyId)) return undefined
    const key = await lookUp(keyId)
    return key !== undefined && isInForce(key, now()) ? key : undefined
  }
}

/** Whether a key is neither revoked nor expired. */
export function isInForce({ revokedAt, expiresAt }: StoredApiKey, now: Date): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > now)
}
