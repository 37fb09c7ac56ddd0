import type { RpcLog } from '../../contracts/decode-events.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockHeader, BlockRange } from '../read/chain-reader.ts'
import type { ComparedNodes } from './compared-nodes.ts'

const MAX_HALVINGS = 8

/** The logs that a second node gives for a range, or for a part of it. */
interface SecondAnswer {
  readonly logs: readonly RpcLog[]
  /** The last block of the window. */
  readonly last: BlockHeader
  /** The blocks that it gave, both ends included. */
  readonly window: { readonly from: number; readonly to: number }
}

/** Chooses at random a node to compare one with. @returns undefined where no other node is trusted */
export function chooseSecond({ peers, suspected }: ComparedNodes, node: number): number | undefined {
  const others = peers.flatMap((_, index) => (index === node || suspected.has(index) ? [] : [index]))
  return others[Math.floor(Math.random() * others.length)]
}

interface AskedRange {
  /** The node that is asked. */
  readonly second: number
  readonly range: BlockRange
  /** Which half is asked for where the whole is too much: any for a sample, the first where the rest is compared later. */
  readonly half: 'ANY' | 'FIRST'
}

/** Asks a second node for the logs of a range, or of a half of it where that is too much. @returns undefined where it does not answer */
export async function askSecond(
  { peers }: ComparedNodes,
  { second, range, half }: AskedRange,
  signal: AbortSignal | undefined,
): Promise<SecondAnswer | undefined> {
  let { from, to } = range
  for (let halvings = 0; halvings < MAX_HALVINGS; halvings++) {
    try {
      const read = await peers[second]?.reader.logsInRange({ ...range, from, to }, signal)
      return read?.last && { logs: read.logs, last: read.last, window: { from, to } }
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof RpcError) || (error.kind !== 'TOO_LARGE' && error.kind !== 'TIMEOUT') || from === to)
        return undefined
      const middle = Math.floor((from + to) / 2)
      if (half === 'FIRST' || Math.random() < 0.5) to = middle
      else from = middle + 1
    }
  }
  return undefined
}
