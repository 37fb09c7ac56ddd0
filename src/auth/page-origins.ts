import type { Logger } from '../domain/logger.ts'
import { withLimit } from '../postgres/cancellable.ts'

/** How old the origins may be that an unknown one is compared with: a key works at once, and a page that asks again and again costs little. */
const FRESH_MS = 1_000
/** How long an unknown page waits for the database. */
const PATIENCE_MS = 1_000
/** How long the origin of a revoked key may still be answered as allowed. */
const STALE_MS = 5_000

/**
 * The origins of the publishable keys in force, for answers to preflights, which carry no key.
 *
 * @param options.read - the origins of all keys in force
 * @param options.always - origins of keys that are not stored
 * @param options.monotonicMs - milliseconds of a monotonic clock
 */
export function createPageOrigins(options: {
  readonly read: () => Promise<readonly string[]>
  readonly always: readonly string[]
  readonly monotonicMs: () => number
  readonly logger: Logger
}) {
  const { read, always, monotonicMs, logger } = options
  let origins = new Set(always)
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  async function readAnew(): Promise<void> {
    // a failed lookup counts too: a database that is down is not asked by every preflight
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
    /** Whether a key has the origin, as far as this process knows. */
    has(origin: string): boolean {
      void refreshAfter(STALE_MS)
      return origins.has(origin)
    },
    /**
     * The same, for an unknown origin after another read of the database if the last is older than a second. Never rejects, and waits no longer
     * than a second: a database that does not answer holds up no page.
     */
    async lookup(origin: string): Promise<boolean> {
      if (origins.has(origin)) void refreshAfter(STALE_MS)
      else await withLimit(PATIENCE_MS, async () => refreshAfter(FRESH_MS)).catch(() => {})
      return origins.has(origin)
    },
  }
}
