import type { RpcLog } from '../../contracts/decode-events.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { firstDifference } from './compare-logs.ts'
import { proveBlock } from './prove-block.ts'
import { blame, type TrustedNodes } from './trusted-nodes.ts'

/** Where only receipts can tell and no other node is compared with, they are read of one block in this many. */
const RECEIPTS_OF_ONE_IN = 50

/** Checks the logs that a node gave of a block by the block's receipts. */
export type BlockCheck = ReturnType<typeof createBlockCheck>

/** Makes the check of one chain. @param offersReceipts - whether its nodes offer `eth_getBlockReceipts`, as far as is known */
export function createBlockCheck(nodes: TrustedNodes, offersReceipts: () => boolean) {
  const { addresses, factories, blooms, peers } = nodes
  let unknown = 0

  function isDue(header: BlockHeader, logs: readonly RpcLog[]): boolean {
    const reported = blooms.judge(header)
    if (reported === 'MAYBE' && logs.length === 0) return true
    // With a second node, its logs decide.
    return reported !== 'NO' && peers.length === 1 && unknown++ % RECEIPTS_OF_ONE_IN === 0
  }

  /** @returns the block's logs; from its receipts where the node gave others */
  return async (
    header: BlockHeader,
    { node, logs }: { readonly node: number; readonly logs: readonly RpcLog[] },
    signal: AbortSignal | undefined,
  ): Promise<readonly RpcLog[]> => {
    if (!offersReceipts() || !isDue(header, logs)) return logs
    const { number, hash } = header
    // Where an only node contradicts itself and its headers prove nothing, more is found by its receipts.
    const wanted = { number, hash, addresses, factories, isProofNeeded: peers.length > 1 }
    const proven = await proveBlock(nodes.openNodes(signal), wanted)
    if (proven === undefined || firstDifference(logs, proven) === undefined) return logs
    await blame(nodes, node, 'LOGS', `its logs of block ${number} are not those of the block's receipts`)
    return proven
  }
}
