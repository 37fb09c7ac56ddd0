import type { Lease } from '../../store/leases-repository.ts'
import type { OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import type { Finality } from './finality.ts'
import {
  afterBlocks,
  isContradictionOfNode,
  noteContradiction,
  type Position,
  type StepOutcome,
  type Suspicion,
} from './next-step.ts'
import type { EventReader } from './read-events.ts'
import type { createFinalBlocksReader } from './read-final-blocks.ts'

export interface BlockFollowerOptions extends Pick<OpenChainOptions, 'knex' | 'config' | 'logger' | 'clock'> {
  readonly lease: Lease
  readonly chain: OpenChain
  /** Called after each commit with what was found. */
  readonly onCommitted: (findings: Findings) => Promise<void>
  /** Called after a reorg was taken back, with the number of blocks that it removed. */
  readonly onReorg: (blocks: number) => void
}

/** A follower of blocks: what it works with, and what it remembers. The rules are in `next-step.ts`, `finality.ts` and `read-final-blocks.ts`. */
export interface FollowerState extends BlockFollowerOptions, OpenChain {
  readonly finality: Finality
  readonly readEvents: EventReader
  readonly readFinalBlocks: ReturnType<typeof createFinalBlocksReader>
  position: Position | undefined
  suspicion: Suspicion
}

/** Writes what was found in blocks that were read, and the position after them. */
export async function advance(
  follower: FollowerState,
  at: Position,
  read: {
    readonly blocks: readonly BlockHeader[]
    readonly findings: Findings | undefined
    readonly leavesUnread?: boolean
  },
  signal: AbortSignal | undefined,
): Promise<void> {
  const { lease, writer, finality, onCommitted } = follower
  const { scanned: from, headBlock, finalBlock } = at
  const { blocks, findings } = read
  const hasFinalizedTag = finality.hasTag()
  await writer.advance({ lease, from, headBlock, finalBlock, hasFinalizedTag, ...read }, signal)
  follower.position = afterBlocks(at, blocks)
  if (findings !== undefined) await onCommitted(findings)
}

/** The node's answers agreed with what was read. */
export function noteAgreement(follower: FollowerState): void {
  follower.suspicion = { ...follower.suspicion, contradictions: 0 }
}

/** The node's answers contradicted what was read. */
export function noteDisagreement(follower: FollowerState, reason: string): void {
  follower.suspicion = noteContradiction(follower.suspicion)
  if (isContradictionOfNode(follower.suspicion)) follower.reader.doubt(reason)
}

/** The node lacks blocks that it should have; another may have them. */
export function waitForNode({ reader }: FollowerState, reason: string): StepOutcome {
  reader.doubt(reason)
  return { kind: 'WAIT', reason }
}
