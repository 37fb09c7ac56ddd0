import type { Knex } from 'knex'
import { addUnproven, changeState, passUnproven } from './sql/unproven-blocks-repository.ts'

/** Who reads blocks: following or back-fill. */
export type ReadingLane = 'FOLLOW' | 'FILL'

const STATES = { FOLLOW: 'FOLLOWED', FILL: 'FILLED' } as const

/** Blocks that a node gave, both ends included. */
interface Given {
  /** By its place among the URLs. */
  readonly node: number
  readonly lane: ReadingLane
  readonly from: number
  readonly to: number
}

/** Which node gave which blocks since it was last compared, so that they can be proven if it turns out to be wrong. Stored, since a process may be killed. */
export type GivenBlocks = ReturnType<typeof createGivenBlocks>

/** Makes the memory of one chain. @param hosts - of its nodes, in the order of the URLs */
export function createGivenBlocks(knex: Knex, chainId: string, hosts: readonly string[]) {
  /** Nodes of which it is stored that following reads from them. */
  const reading = new Set<number>()
  let highest = 0
  const hostOf = (node: number) => hosts[node] ?? ''

  return {
    /** Notes which node gives blocks. Call it before they are written, so that it is known whenever the process is killed. */
    async note({ node, lane, from, to }: Given, isWrong = false): Promise<void> {
      highest = Math.max(highest, to)
      if (isWrong) return addUnproven(knex, chainId, { node: hostOf(node), state: 'WRONG', from, to })
      if (lane === 'FILL') return addUnproven(knex, chainId, { node: hostOf(node), state: STATES.FILL, from, to })
      if (reading.has(node)) return
      await addUnproven(knex, chainId, { node: hostOf(node), state: STATES.FOLLOW, from })
      reading.add(node)
    },
    /** What a node gave in a lane, up to a block, is what another node gives. */
    pass: ({ node, lane, to }: Omit<Given, 'from'>): Promise<void> =>
      passUnproven(knex, chainId, { node: hostOf(node), state: STATES[lane], to }),
    /** Blocks that could not be compared are to be proven. */
    doubt: ({ node, from, to }: Omit<Given, 'lane'>): Promise<void> =>
      addUnproven(knex, chainId, { node: hostOf(node), state: 'UNCOMPARED', from, to }),
    /** All that a node gave since it was last compared counts as wrong. */
    async countAsWrong(node: number): Promise<void> {
      // Before the rows are taken, since what comes meanwhile has to be noted again.
      reading.delete(node)
      const from = ['FOLLOWED', 'FILLED', 'UNCOMPARED'] as const
      await changeState(knex, chainId, { node: hostOf(node), from, to: 'WRONG', highest })
    },
    /** What earlier processes followed last is to be proven: it is unknown whether it was compared. */
    async takeOver(): Promise<void> {
      reading.clear()
      await changeState(knex, chainId, { from: ['FOLLOWED'], to: 'UNCOMPARED' })
    },
  }
}
