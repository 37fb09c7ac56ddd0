import type { NodeFigures } from '../../nodes/node-limits.ts'

/**
 * What the process that follows a chain reports about it. Stored as JSON, so times are ISO 8601 texts. Leaves out what `chain_state` holds.
 */
export interface ChainReport {
  /** Host and process id. */
  readonly process: string
  readonly followingSince: string
  /** What keeps the chain from moving; absent while it moves. */
  readonly trouble?: Condition<string> | undefined
  /** Why what is stored is not proven; absent where it is. */
  readonly unproven?: Condition<string> | undefined
  readonly reorgs: ReorgCount
  /** In the order of the configuration. */
  readonly nodes: readonly NodeReport[]
  /** Absent where no old blocks are left to read. */
  readonly backfill?: BackfillReport | undefined
  /** Nodes that are suspected to answer wrongly. */
  readonly suspects?: readonly NodeSuspect[] | undefined
}

/** Something that lasts. */
export interface Condition<Time = Date> {
  readonly since: Time
  readonly reason: string
}

/** The reorgs of a chain that were seen, also by earlier processes. */
export interface ReorgCount {
  readonly count: number
  /** In blocks that were removed. */
  readonly deepest: number
  readonly lastAt?: string | undefined
}

export const NO_REORGS: ReorgCount = { count: 0, deepest: 0 }

/** A node of the chain, as this process knows it. */
export type NodeReport = Omit<NodeFigures, 'chain' | 'place'>

/** How far back-fill has come. */
export interface BackfillReport {
  readonly blocksDone: number
  readonly blocksTotal: number
  readonly blocksPerSecond?: number | undefined
  readonly secondsLeft?: number | undefined
}

export interface NodeSuspect {
  readonly host: string
  readonly reason: string
  readonly at: string
}

/** Adds a reorg. @param blocks - how many blocks it removed */
export function addReorg(reorgs: ReorgCount, blocks: number, at: Date): ReorgCount {
  return { count: reorgs.count + 1, deepest: Math.max(reorgs.deepest, blocks), lastAt: at.toISOString() }
}
