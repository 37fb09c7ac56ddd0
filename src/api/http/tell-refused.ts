import type { Logger } from '../../domain/logger.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'

/** Tells the operator that pages of an origin may not call. */
export type TellRefused = (origin: string, error: WaybillError) => void

const EVERY_MS = 60_000
/** Anybody can send any origin. */
const MAX_ORIGINS = 100
const MAX_LENGTH = 200

/** Logs each origin once a minute, and at most a hundred of them: a page asks again and again. */
export function createTellRefused(logger: Logger): TellRefused {
  let told = new Set<string>()
  let sinceMs = performance.now()
  return (origin, error) => {
    const nowMs = performance.now()
    if (nowMs - sinceMs >= EVERY_MS) {
      told = new Set()
      sinceMs = nowMs
    }
    if (told.has(origin) || told.size >= MAX_ORIGINS) return
    told.add(origin)
    logger.warn({ origin: origin.slice(0, MAX_LENGTH) }, error.message)
  }
}
