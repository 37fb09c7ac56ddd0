import { type BloomBits, bloomBitsOf, mayHold } from '../../contracts/block-proofs.ts'
import { followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { firstDifference, proveBlock } from './compare-logs.ts'
import { blame, type TrustedNodes } from './trusted-nodes.ts'

/** Where only receipts can tell and no other node is compared with, they are read of one block in this many. */
const RECEIPTS_OF_ONE_IN = 50

/** Checks the logs that a node gave of a block by the block's receipts. */
export type BlockCheck = ReturnType<typeof createBlockCheck>

/** Makes the check of one chain. @param offersReceipts - whether its nodes offer `eth_getBlockReceipts`, as far as is known */
export function createBlockCheck(nodes: TrustedNodes, offersReceipts: () => boolean) {
  const { addresses, factories, peers } = nodes
  const blooms = createBloomCheck(addresses)
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

/** A bloom with more bits than this, a quarter of all, is too full to tell: to read receipts each time would cost more than following. */
const MAX_BITS = 512

/** Makes what decides by a header's bloom whether to read the receipts of a block for which the node gave no logs. No I/O. */
export function createBloomCheck(addresses: readonly string[]) {
  const ofAddresses = addresses.map(bloomBitsOf)
  const ofTopics = followedTopics.map(bloomBitsOf)
  return {
    /**
     * - `MAYBE`: its few bits have a followed event
     * - `NO`: none is in it, by a bloom that the block's hash proves
     * - `UNKNOWN`: the bloom is too full, absent, or of a header whose hash cannot be computed
     */
    judge({ logsBloom, isHashed }: Pick<BlockHeader, 'logsBloom' | 'isHashed'>): 'MAYBE' | 'NO' | 'UNKNOWN' {
      if (logsBloom === undefined || !/^0x[0-9a-f]{512}$/i.test(logsBloom)) return 'UNKNOWN'
      const bytes = hexToBytes(logsBloom)
      const isThere = (values: readonly BloomBits[]) => values.some((bits) => mayHold(bytes, bits))
      if (!isThere(ofAddresses) || !isThere(ofTopics)) return isHashed ? 'NO' : 'UNKNOWN'
      return bytes.reduce((sum, byte) => sum + bitsIn(byte), 0) > MAX_BITS ? 'UNKNOWN' : 'MAYBE'
    },
  }
}

function bitsIn(byte: number): number {
  return byte.toString(2).replaceAll('0', '').length
}
