import { followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { bloomBitsOf, mayHold } from '../../contracts/logs-bloom.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import { followedLogs } from './prove-logs.ts'

/** Headers that are read at once. */
const MAX_BLOCKS = 500

/**
 * The logs of a block by its receipts.
 *
 * @returns undefined where the node does not offer `eth_getBlockReceipts`, or does not know the block
 */
export async function logsByReceipts(
  client: RpcClient,
  block: string,
  addresses: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<RpcLog[] | undefined> {
  const receipts = resultIn((await client.batch([{ method: 'eth_getBlockReceipts', params: [block] }], signal))[0])
  return Array.isArray(receipts) ? followedLogs(receipts as { logs: RpcLog[] }[], addresses) : undefined
}

/** Reads ranges from receipts, of the blocks whose bloom may hold followed logs: for a chain whose only node leaves logs out of `eth_getLogs`. */
export function readsByReceipts(reader: ChainReader, client: RpcClient, followed: readonly string[]): ChainReader {
  return {
    ...reader,
    async logsFrom({ from, until, addresses = followed, blocksAt }, signal) {
      const to = Math.min(until, from + Math.min(MAX_BLOCKS, blocksAt(0)) - 1)
      const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      const headers = await reader.headers(numbers, signal)
      const wanted = new Set(addresses.map((address) => address.toLowerCase()))
      const logs: RpcLog[] = []
      for (const header of headers) {
        if (header === undefined || !mayHoldLogs(header, [...wanted])) continue
        const found = await logsByReceipts(client, header.hash, wanted, signal)
        if (found === undefined) throw new RpcError('REFUSED', `the node gives no receipts of block ${header.number}`)
        logs.push(...found)
      }
      return { node: 0, to, logs, last: headers.at(-1) }
    },
  }
}

/** Whether a block may hold followed logs of some contracts, by its bloom. Without a bloom it may. */
function mayHoldLogs(
  { logsBloom }: { readonly logsBloom?: string | undefined },
  addresses: readonly string[],
): boolean {
  if (logsBloom === undefined) return true
  const bloom = hexToBytes(logsBloom)
  const isThere = (values: readonly string[]) => values.some((value) => mayHold(bloom, bloomBitsOf(value)))
  return isThere(addresses) && isThere(followedTopics)
}
