import type { Address } from '../../domain/address.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { LogRange, UrlLimits } from '../../nodes/url-limits.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, ChainReader } from '../read/chain-reader.ts'
import {
  hasTooManyLogs,
  isRangeTooWide,
  rangeAfterRead,
  rangeAfterRefused,
  rangeAfterTooManyLogs,
  startLogRange,
  widthOf,
} from './log-range.ts'
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

/** What was known of the ranges of a URL when a range was last read. */
const intact = new WeakMap<UrlLimits, LogRange>()

/** What is known of the ranges of a URL: all who read its chain share it. */
function rangeOfUrl(limits: UrlLimits): LogRange {
  return limits.logRange() ?? startOf(limits)
}

function startOf(limits: UrlLimits): LogRange {
  return startLogRange(limits.declared.maxLogRange)
}

/** A node that calls one block too much may give no logs at all, so another node is asked: `TOO_LARGE` would mean that none can answer. */
function refusalOfBlock(error: RpcError): RpcError {
  const { kind, detail, refusal } = error
  if (kind !== 'TOO_LARGE' || refusal === undefined) return error
  return new RpcError('REFUSED', detail, { refusal, cause: error })
}

/** Makes the reader of one chain. It keeps the width of a range for each node, by the rules of `log-range.ts`. */
export function createFinalBlocksReader({
  reader,
  events,
  clock,
}: {
  readonly reader: ChainReader
  readonly events: EventReader
  readonly clock: () => Date
}): FinalBlocksReader {
  const rangeOf = (node: number) => rangeOfUrl(reader.limitsOf(node))
  const learn = (node: number, range: LogRange) => reader.limitsOf(node).noteLogRange(range, widthOf(range))
  return {
    async read({ from, until, addresses }, write, signal) {
      const startedAtMs = clock().getTime()
      const blocksAt = (node: number) => widthOf(rangeOf(node))
      const { node, to, logs: answer, last } = await reader.logsFrom({ from, until, addresses, blocksAt }, signal)
      const blocks = to - from + 1
      const tooMuch = `blocks ${from} to ${to} are too many at once`
      if (answer instanceof RpcError) {
        if (answer.kind === 'BEHIND') return { kind: 'LACKING', reason: answer.message }
        if (!isRangeTooWide(answer, blocks)) {
          if (blocks > 1) throw answer
          // Where one block alone is refused, its width was never the reason.
          learn(node, intact.get(reader.limitsOf(node)) ?? startOf(reader.limitsOf(node)))
          throw refusalOfBlock(answer)
        }
        learn(node, rangeAfterRefused(rangeOf(node), blocks, answer))
        return { kind: 'AGAIN', reason: tooMuch }
      }
      if (hasTooManyLogs(answer.length, blocks)) {
        learn(node, rangeAfterTooManyLogs(rangeOf(node), blocks))
        return { kind: 'AGAIN', reason: tooMuch }
      }
      if (last === undefined) {
        return { kind: 'LACKING', reason: `block ${to} is final, and the node does not have it` }
      }
      const logs = inChainOrder(answer)
      const isCanonical = (block: number) => block >= from && block <= to
      await write(last, await events.read({ logs, blocks: [last], areFinal: true, isCanonical }, signal))
      const tookMs = clock().getTime() - startedAtMs
      learn(node, rangeAfterRead(rangeOf(node), { blocks, logs: logs.length, tookMs }))
      intact.set(reader.limitsOf(node), rangeOf(node))
      return { kind: 'MORE' }
    },
  }
}
