/** Which ranges of a node are compared with another node: its first, then one in so many. */
export interface SampleTurns {
  /** Whether the range that a node gives now is to be compared. Counts the range. */
  isDue(node: number): boolean
  /** Has the next range of a node compared. */
  renew(node: number): void
}

/** Makes the turns of one chain. @param every - one range in this many; 0: none */
export function createSampleTurns(every: number): SampleTurns {
  /** Ranges since the last one that was compared, by node. */
  const counts = new Map<number, number>()
  return {
    isDue(node) {
      if (every === 0) return false
      const count = counts.get(node) ?? 0
      counts.set(node, (count + 1) % every)
      return count === 0
    },
    renew(node) {
      counts.set(node, 0)
    },
  }
}
