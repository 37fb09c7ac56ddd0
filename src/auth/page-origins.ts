import type { Logger } from '../domain/logger.ts'

/** The origins of the publishable keys in force, for answers to preflights, which carry no key. */
export interface PageOrigins {
  /** Whether a key has the origin, as far as this process knows. */
  readonly has: (origin: string) => boolean
  /** The same, after another look at the database if the last is older than a second. Never rejects. */
  readonly lookUp: (origin: string) => Promise<boolean>
}

/** How old the origins may be that an unknown one is compared with: a key works at once, and a page that asks again and again costs little. */
const FRESH_MS = 1_000
/** After how long a revoked key's origin is no longer told. */
const STALE_MS = 5_000

/**
 * @param options.read - the origins of all keys in force
 * @param options.always - origins of keys that are not stored
 * @param options.monotonicMs - milliseconds of a monotonic clock
 */
export function createPageOrigins(options: {
  readonly read: () => Promise<readonly string[]>
  readonly always: readonly string[]
  readonly monotonicMs: () => number
  readonly logger: Logger
}): PageOrigins {
  const { read, always, monotonicMs, logger } = options
  let origins = new Set(always)
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  async function readAnew(): Promise<void> {
    // a failed look counts too: a database that is down is not asked by every preflight
    readAtMs = monotonicMs()
    try {
      origins = new Set([...always, ...(await read())])
    } catch (err) {
      logger.warn({ err }, 'the origins of publishable keys could not be read: the last known stay')
    } finally {
      reading = undefined
    }
  }

  const refreshAfter = (ageMs: number) => {
    if (monotonicMs() - readAtMs > ageMs) reading ??= readAnew()
    return reading
  }

  return {
    has(origin) {
      void refreshAfter(STALE_MS)
      return origins.has(origin)
    },
    async lookUp(origin) {
      if (origins.has(origin)) await refreshAfter(STALE_MS)
      else await refreshAfter(FRESH_MS)
      return origins.has(origin)
    },
  }
}
