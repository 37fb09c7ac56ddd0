import type { FinalityConfig } from '../../chains/chains-file.ts'
import type { Logger } from '../../domain/logger.ts'
import type { ChainView } from '../read/chain-reader.ts'

/** Decides which block of a chain is final. */
export interface Finality {
  /** Whether the chain has ever told its finalized block; is kept in the database. */
  hasTag(): boolean
  /** Says what the database knows. */
  recall(hasTag: boolean): void
  /** @returns the number of the last final block; `last` where that cannot be told now */
  finalBlock(view: ChainView, last: number): number
}

/**
 * Depth makes blocks final that the chain itself might still replace, and finality is never taken back. So a chain that told its
 * finalized block once is not judged by depth as soon as an answer is missing, but only after that has lasted this long.
 */
const MISSING_FOR_MS = 600_000

/** Makes the judge of one chain: the node's finalized block where it has one, else depth. */
export function createFinality(options: {
  readonly network: string
  readonly config: FinalityConfig
  readonly logger: Logger
  readonly clock: () => Date
}): Finality {
  const { network, config, logger, clock } = options
  let hasTag = false
  let missing: { readonly sinceMs: number; isSaid: boolean } | undefined

  function noteMissing(): boolean {
    const nowMs = clock().getTime()
    missing ??= { sinceMs: nowMs, isSaid: false }
    const isLong = nowMs - missing.sinceMs >= MISSING_FOR_MS
    if (isLong && !missing.isSaid) {
      missing.isSaid = true
      const { depth } = config
      logger.warn({ network, depth }, 'the chain does not tell its finalized block any more; depth decides instead')
    }
    return isLong
  }

  return {
    hasTag: () => hasTag,
    recall(known) {
      hasTag ||= known
    },
    finalBlock({ head, finalized }, last) {
      const byDepth = Math.max(0, head.number - config.depth)
      if (!config.useFinalizedTag || finalized === undefined) return byDepth
      if (typeof finalized === 'object') {
        hasTag = true
        missing = undefined
        return Math.min(finalized.number, head.number)
      }
      if (finalized === 'NONE' && !hasTag) return byDepth
      return noteMissing() ? byDepth : last
    },
  }
}
