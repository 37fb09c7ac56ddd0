import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, BlockRange, ChainReader } from '../read/chain-reader.ts'
import { type EventReader, inChainOrder } from '../read/read-events.ts'

/** Final blocks that are to be read, both ends included. */
export interface WantedBlocks {
  readonly from: number
  readonly until: number
  /** Only logs of these contracts; all that are followed unless told. */
  readonly addresses?: readonly Address[]
}

/**
 * What became of a range.
 * - `MORE`: it was read and written, and the next may be asked for
 * - `AGAIN`: it was too much at once, and is smaller when it is asked for anew
 * - `LACKING`: the node does not have it, and another may
 */
export type FinalBlocksOutcome =
  | { readonly kind: 'MORE' }
  | { readonly kind: 'AGAIN'; readonly reason: string }
  | { readonly kind: 'LACKING'; readonly reason: string }

/** Writes what a range came to, before anything else is read. @param last - of the range */
export type WriteFinalBlocks = (last: BlockHeader, findings: Findings) => Promise<void>

/** Reads final blocks of one chain by ranges of logs, of a size that the node and a step can bear. */
export interface FinalBlocksReader {
  /**
   * Reads the first of the blocks, as many as go at once, and has them written.
   *
   * @throws RpcError, and what `write` throws; nothing is kept of it
   */
  read(wanted: WantedBlocks, write: WriteFinalBlocks, signal: AbortSignal | undefined): Promise<FinalBlocksOutcome>
}

const FIRST_RANGE = 2_000
const LARGEST_RANGE = 100_000
/** Logs in one range from which on it no longer grows, and so many that it is asked for anew, smaller. */
const MANY_LOGS = 4_000
const MOST_LOGS = 20_000
/** Reading and writing that takes longer makes the next range smaller. */
const LONG_STEP_MS = 10_000

/** Makes the reader of one chain. The size of a range is learned as it goes. */
export function createFinalBlocksReader({
  reader,
  events,
  clock,
}: {
  readonly reader: ChainReader
  readonly events: EventReader
  readonly clock: () => Date
}): FinalBlocksReader {
  let range = FIRST_RANGE

  /** @returns undefined when the range was too much for the node or for one step, and is smaller now */
  async function readLogs(blocks: BlockRange, signal: AbortSignal | undefined) {
    const { from, to } = blocks
    const reduce = () => {
      range = Math.max(1, Math.floor((to - from + 1) / 2))
      return undefined
    }
    try {
      const read = await reader.logsInRange(blocks, signal)
      return read.logs.length > MOST_LOGS && from < to ? reduce() : read
    } catch (error) {
      const isTooMuch = error instanceof RpcError && (error.kind === 'TOO_LARGE' || error.kind === 'TIMEOUT')
      if (!isTooMuch || from === to) throw error
      return reduce()
    }
  }

  return {
    async read({ until, ...wanted }, write, signal) {
      const { from } = wanted
      const to = Math.min(until, from + range - 1)
      const startedAtMs = clock().getTime()
      const read = await readLogs({ ...wanted, to }, signal)
      if (read === undefined) return { kind: 'AGAIN', reason: `blocks ${from} to ${to} are too many at once` }
      const { last } = read
      if (last === undefined) {
        return { kind: 'LACKING', reason: `block ${to} is final, and the node does not have it` }
      }
      const logs = inChainOrder(read.logs)
      const stands = (block: number) => block >= from && block <= to
      await write(last, await events.read({ logs, blocks: [last], areFinal: true, stands }, signal))
      const isLong = clock().getTime() - startedAtMs > LONG_STEP_MS
      if (isLong) range = Math.max(1, Math.floor(range / 2))
      else if (logs.length < MANY_LOGS) range = Math.min(range * 2, LARGEST_RANGE)
      return { kind: 'MORE' }
    },
  }
}
