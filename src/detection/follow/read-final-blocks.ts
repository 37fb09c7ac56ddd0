import type { Address } from '../../domain/address.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, BlockRange, ChainReader } from '../read/chain-reader.ts'
import { FIRST_RANGE, hasTooManyLogs, isRangeTooWide, rangeAfterRead, rangeAfterTooMuch } from './log-range.ts'
import { type EventReader, inChainOrder } from './read-events.ts'

/** Final blocks to read, both ends included. */
export interface WantedBlocks {
  readonly from: number
  readonly until: number
  /** Only logs of these contracts; of all followed ones where absent. */
  readonly addresses?: readonly Address[]
}

/**
 * What became of a range.
 * - `MORE`: it was read and written; there may be more
 * - `AGAIN`: it was too much at once; the next request is smaller
 * - `LACKING`: the node does not have it; another may
 */
type FinalBlocksOutcome =
  | { readonly kind: 'MORE' }
  | { readonly kind: 'AGAIN'; readonly reason: string }
  | { readonly kind: 'LACKING'; readonly reason: string }

/** Writes what was found in a range, before anything else is read. @param last - the last block of the range */
export type WriteFinalBlocks = (last: BlockHeader, findings: Findings) => Promise<void>

/** Reads final blocks of one chain as ranges of logs, as wide as the node and the limits of a step allow. */
export interface FinalBlocksReader {
  /**
   * Reads the first of the blocks, as many as go at once, and has them written.
   *
   * @throws RpcError, and what `write` throws; then nothing was written
   */
  read(wanted: WantedBlocks, write: WriteFinalBlocks, signal: AbortSignal | undefined): Promise<FinalBlocksOutcome>
}

/** Makes the reader of one chain. It keeps the width of a range, by the rules of `log-range.ts`. */
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
  return {
    async read({ until, ...wanted }, write, signal) {
      const { from } = wanted
      const to = Math.min(until, from + range - 1)
      const startedAtMs = clock().getTime()
      const read = await readLogs(reader, { ...wanted, to }, signal)
      if (read === 'TOO_MUCH') {
        range = rangeAfterTooMuch(to - from + 1)
        return { kind: 'AGAIN', reason: `blocks ${from} to ${to} are too many at once` }
      }
      const { last } = read
      if (last === undefined) {
        return { kind: 'LACKING', reason: `block ${to} is final, and the node does not have it` }
      }
      const logs = inChainOrder(read.logs)
      const isCanonical = (block: number) => block >= from && block <= to
      await write(last, await events.read({ logs, blocks: [last], areFinal: true, isCanonical }, signal))
      range = rangeAfterRead(range, { logs: logs.length, tookMs: clock().getTime() - startedAtMs })
      return { kind: 'MORE' }
    },
  }
}

async function readLogs(reader: ChainReader, blocks: BlockRange, signal: AbortSignal | undefined) {
  const count = blocks.to - blocks.from + 1
  try {
    const read = await reader.logsInRange(blocks, signal)
    return hasTooManyLogs(read.logs.length, count) ? 'TOO_MUCH' : read
  } catch (error) {
    if (isRangeTooWide(error, count)) return 'TOO_MUCH'
    throw error
  }
}
