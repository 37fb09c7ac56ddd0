import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Whose calls go first where a node allows only so many:
 *
 * - `LIVE`: routes, and following a chain
 * - `BACKFILL`: blocks of the past
 * - `ENRICHMENT`: whatever can be added later, and samples
 */
export type Lane = 'LIVE' | 'BACKFILL' | 'ENRICHMENT'

const lanes = new AsyncLocalStorage<Lane>()

/** Does work whose calls to nodes all go in a lane, however deep in it they are made. Without it, calls are LIVE. */
export function inLane<T>(lane: Lane, work: () => T): T {
  return lanes.run(lane, work)
}

/** The lane of the work that is being done. */
export function currentLane(): Lane {
  return lanes.getStore() ?? 'LIVE'
}
