import type { RpcLog } from '../../contracts/decode-events.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockHeader, BlockRange } from '../read/chain-reader.ts'
import { type ComparedNodes, leaveBoth, notePassed } from './compared-nodes.ts'
import { judgeLogs } from './judge-logs.ts'
import { firstDifference, logsWithin } from './same-logs.ts'
import { askSecond, chooseSecond } from './second-node.ts'
import type { ReadingLane } from './sql/node-readings-repository.ts'

/** The logs that a node gave for a range. */
export interface GivenRange {
  readonly node: number
  readonly lane: ReadingLane
  readonly logs: readonly RpcLog[]
  /** The last block of the range. */
  readonly last: BlockHeader
}

/** Compares the logs of final blocks with a second node, where there is one, before they are written. @throws RpcError where they must not be written */
export async function compareRange(
  nodes: ComparedNodes,
  range: BlockRange,
  given: GivenRange,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { node, lane } = given
  const second = chooseSecond(nodes, node)
  const other = second === undefined ? undefined : await askSecond(nodes, { second, range, half: 'ANY' }, signal)
  // Back-fill compares a sample. Of what is followed all is compared, so what cannot be compared now is read again.
  const doubt = async () => {
    if (lane === 'FOLLOW') await nodes.ledger.doubt({ node, from: range.from, to: range.to })
  }
  if (second === undefined || other === undefined) return doubt()
  const { window } = other
  if (window.to === range.to && other.last.hash !== given.last.hash) refuseOtherBlock(nodes, [node, second], range.to)
  const logs = logsWithin(given.logs, window)
  const block = firstDifference(logs, other.logs)
  if (block === undefined) {
    if (window.from > range.from || window.to < range.to) await doubt()
    return notePassed(nodes, { node, lane, block: range.to })
  }
  const statements = [
    { node, logs },
    { node: second, logs: other.logs },
  ]
  const blamed = await judgeLogs(nodes, { block, addresses: range.addresses }, statements, signal)
  if (blamed.has(node)) throw new RpcError('INCONSISTENT', `its logs of block ${block} are not those of another node`)
  await doubt()
}

/** Two nodes have different blocks of one final number: both are left alone until they agree. @throws RpcError */
function refuseOtherBlock(nodes: ComparedNodes, both: readonly number[], block: number): never {
  const reason = `different blocks ${block}, which is final`
  leaveBoth(nodes, both, `they have ${reason}`, async () => {
    const [one, other] = await Promise.all(both.map((node) => blockOf(nodes, node, block)))
    return one !== undefined && one.hash === other?.hash
  })
  throw new RpcError('INCONSISTENT', `two nodes have ${reason}`)
}

async function blockOf({ peers }: ComparedNodes, node: number, block: number): Promise<BlockHeader | undefined> {
  const headers = await peers[node]?.reader.headers([block])
  return headers?.[0]
}
