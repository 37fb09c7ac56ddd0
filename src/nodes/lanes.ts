import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * The priority of calls at a node that limits them, highest first:
 *
 * - `LIVE`: routes, and following a chain
 * - `BACKFILL`: old blocks, and commands
 * - `ENRICHMENT`: figures that a stored payment can get later, and checks of nodes against each other
 */
export type Lane = 'LIVE' | 'BACKFILL' | 'ENRICHMENT'

const lanes = new AsyncLocalStorage<Lane>()

/** Does work, and puts all calls that it makes to nodes in a lane, however deep in the work they are made. Outside of it, calls are LIVE. */
export function inLane<T>(lane: Lane, work: () => T): T {
  return lanes.run(lane, work)
}

/** The lane of the work that runs now. */
export function currentLane(): Lane {
  return lanes.getStore() ?? 'LIVE'
}
