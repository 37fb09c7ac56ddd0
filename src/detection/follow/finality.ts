import type { FinalityConfig } from '../../chains/chains-file.ts'
import type { Logger } from '../../domain/logger.ts'
import type { ChainView } from '../read/chain-reader.ts'

export type Finality = ReturnType<typeof createFinality>

/**
 * Depth can make blocks final that the chain may still replace, and finality is never taken back. So depth decides on a chain that once answered a
 * `finalized` block only after answers were missing for this long.
 */
const MISSING_FOR_MS = 600_000

/** Makes what decides which block of a chain is final: the node's `finalized` block where it has one, else depth. */
export function createFinality(options: {
  readonly network: string
  readonly config: FinalityConfig
  readonly logger: Logger
  readonly clock: () => Date
}) {
  const { network, config, logger, clock } = options
  const { depth } = config
  let hasTag = false
  let missing: { readonly sinceMs: number; isLogged: boolean } | undefined

  /** @returns whether the block has been missing for so long that depth decides */
  function noteMissing(): boolean {
    const nowMs = clock().getTime()
    missing ??= { sinceMs: nowMs, isLogged: false }
    const isLong = nowMs - missing.sinceMs >= MISSING_FOR_MS
    if (isLong && !missing.isLogged) {
      missing.isLogged = true
      logger.warn({ chain: network, depth }, 'the nodes no longer answer a finalized block; depth decides instead')
    }
    return isLong
  }

  return {
    /** Whether a node of the chain has ever answered a `finalized` block. Is stored with the chain. */
    hasTag: () => hasTag,
    /** Restores what is stored. */
    recall(known: boolean): void {
      hasTag ||= known
    },
    /** @returns the number of the last final block; `last` where that is unknown now */
    finalBlock({ head, finalized }: ChainView, last: number): number {
      const byDepth = Math.max(0, head.number - depth)
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
