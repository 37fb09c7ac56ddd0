import type { ReadingLane } from './sql/node-readings-repository.ts'

/**
 * Which ranges of a node are compared with another node: in back-fill its first, then one in so many. In following all of them: they are the few that were
 * missed during a stop, and the newest, which people wait for.
 */
export interface SampleTurns {
  /** Whether the range that a node gives now is to be compared. Counts the range. */
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
