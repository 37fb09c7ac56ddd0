import type { Knex } from 'knex'
import {
  forgetReadings,
  noteReading,
  queueDoubted,
  queueLeftovers,
  queueReadings,
  type ReadingLane,
} from './sql/node-readings-repository.ts'

/** Following notes this many blocks in advance, so that it writes to the database once in this many blocks. */
const NOTED_AHEAD = 100

/** Blocks that a node gave, both ends included. */
interface GivenBlocks {
  readonly node: number
  readonly lane: ReadingLane
  readonly from: number
  readonly to: number
}

/** Which node gave which blocks since it last passed a comparison, so that they can be read again if it turns out to be wrong. Stored, since a process may be killed. */
export interface ReadingLedger {
  /** Notes which node gives blocks. Call it before they are written, so that it is known whenever the process is killed. */
  note(given: GivenBlocks): Promise<void>
  /**
   * A node passed a comparison: what it gave before in the lane counts as right.
   *
   * @param block - the last one that was compared
   * @param waiting - the lowest followed block of the node that is still to be compared; Infinity where there is none
   */
  pass(passed: Pick<GivenBlocks, 'node' | 'lane'> & { readonly block: number; readonly waiting: number }): Promise<void>
  /** Has the blocks of a node read again, since it was found to answer wrongly. */
  queue(node: number): Promise<void>
  /** Has blocks read again that a node gave and that could not be compared. */
  doubt(given: Pick<GivenBlocks, 'node' | 'from' | 'to'>): Promise<void>
  /** Has the blocks read again that processes before this one followed last: perhaps they were never compared. */
  queueLeftovers(): Promise<void>
}

/** Makes the ledger of one chain. @param hosts - of its nodes, in the order of the URLs */
export function createReadingLedger({
  knex,
  chainId,
  hosts,
}: {
  readonly knex: Knex
  readonly chainId: string
  readonly hosts: readonly string[]
}): ReadingLedger {
  /** The last stored reading, which may become longer, by lane and node. */
  const open = new Map<string, { from: number; to: number }>()
  /** The highest block that each node gave. */
  const highest = new Map<number, number>()
  const keyOf = ({ lane, node }: Pick<GivenBlocks, 'lane' | 'node'>) => `${lane} ${node}`

  return {
    async note({ node, lane, from, to }) {
      const host = hosts[node]
      if (host === undefined || !Number.isFinite(from)) return
      highest.set(node, Math.max(to, highest.get(node) ?? to))
      const key = keyOf({ lane, node })
      const known = open.get(key)
      if (known !== undefined && known.from <= from && to <= known.to) return
      const start = known !== undefined && known.from <= from && from <= known.to + 1 ? known.from : from
      const reading = { from: start, to: lane === 'FOLLOW' ? to + NOTED_AHEAD : to }
      await noteReading(knex, chainId, { node: host, lane, ...reading })
      open.set(key, reading)
    },
    async pass({ node, lane, block, waiting }) {
      const host = hosts[node]
      const key = keyOf({ lane, node })
      const known = open.get(key)
      if (host === undefined || known === undefined) return
      const until = lane === 'FILL' ? Number.MAX_SAFE_INTEGER : Math.min(block, waiting - 1)
      await forgetReadings(knex, chainId, { node: host, lane, from: lane === 'FILL' ? 0 : known.from }, until)
      if (known.to <= until) open.delete(key)
      else if (known.from <= until) open.set(key, { from: until + 1, to: known.to })
    },
    async queue(node) {
      const host = hosts[node]
      if (host === undefined) return
      // Before the rows are taken, since a reading that comes meanwhile needs a row of its own.
      for (const lane of ['FOLLOW', 'FILL'] as const) open.delete(keyOf({ lane, node }))
      await queueReadings(knex, chainId, { node: host, highest: highest.get(node) ?? 0 })
    },
    async doubt({ node, from, to }) {
      const host = hosts[node]
      if (host !== undefined) await queueDoubted(knex, chainId, { node: host, from, to })
    },
    async queueLeftovers() {
      const own = hosts.flatMap((node, index) => {
        const from = open.get(keyOf({ lane: 'FOLLOW', node: index }))?.from
        return from === undefined ? [] : [{ node, from }]
      })
      await queueLeftovers(knex, chainId, own)
    },
  }
}
