import type { ReadingLane } from './sql/node-readings-repository.ts'

/**
 * Decides which ranges of a node are compared with a second node: in back-fill the first one and then one in `every`; in following all, since those are
 * only the ranges that were missed during a stop.
 */
export interface SampleTurns {
  /** Counts a range that a node gives. @returns whether to compare it */
  isDue(node: number, lane: ReadingLane): boolean
  /** Has the next range of a node compared. */
  renew(node: number): void
}

/** Makes the turns of one chain. @param every - one range in this many; 0: none */
export function createSampleTurns(every: number): SampleTurns {
  /** Ranges since the last one that was compared, by node. */
  const counts = new Map<number, number>()
  return {
    isDue(node, lane) {
      if (every === 0) return false
      if (lane === 'FOLLOW') return true
      const count = counts.get(node) ?? 0
      counts.set(node, (count + 1) % every)
      return count === 0
    },
    renew(node) {
      counts.set(node, 0)
    },
  }
}
