import type { RpcLog } from '../../contracts/decode-events.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockHeader, BlockRange } from '../read/chain-reader.ts'
import type { BloomCheck } from './bloom-check.ts'
import type { GivenRange } from './compare-range.ts'
import { type ComparedNodes, leaveForWrongLogs } from './compared-nodes.ts'
import type { FollowedBlock } from './followed-blocks.ts'
import { logsByReceipts } from './logs-by-receipts.ts'
import { firstDifference, logsWithin } from './same-logs.ts'

/** Blocks of a range whose blooms are looked at where there is no second node. */
const BLOOMS_OF_RANGE = 5

/**
 * Reads the receipts of a block for which a node has no logs, where its bloom says that it may hold some.
 *
 * @returns its logs; from its receipts where the node left some out
 */
export async function addMissingLogs(
  nodes: ComparedNodes & { readonly blooms: BloomCheck },
  { number, logsBloom }: BlockHeader,
  { hash, node, logs }: FollowedBlock,
  signal: AbortSignal | undefined,
): Promise<RpcLog[]> {
  const peer = nodes.peers[node]
  if (logs.length > 0 || peer === undefined || !nodes.blooms.isSuspicious(logsBloom)) return [...logs]
  const wanted = new Set<string>(nodes.addresses)
  const found = await logsByReceipts(peer.client, hash, wanted, signal).catch(() => undefined)
  signal?.throwIfAborted()
  if (found === undefined || found.length === 0) return [...logs]
  await leaveForWrongLogs(nodes, node, `it leaves out logs of block ${number}, which its receipts have`, async () => {
    const [again] = await peer.reader.logsOfBlocks([hash])
    return Array.isArray(again) && firstDifference(again, found) === undefined
  })
  return found
}

/** Looks at some blocks of a range for which the only node has no logs. @throws RpcError where it left some out */
export async function refuseMissingLogs(
  nodes: ComparedNodes & { readonly blooms: BloomCheck },
  { from, to }: BlockRange,
  { node, logs }: GivenRange,
  signal: AbortSignal | undefined,
): Promise<void> {
  const reader = nodes.peers[node]?.reader
  if (reader === undefined) return
  const numbers = new Set(
    Array.from({ length: BLOOMS_OF_RANGE }, () => from + Math.floor(Math.random() * (to - from + 1))),
  )
  for (const header of await reader.headers([...numbers], signal)) {
    if (header === undefined) continue
    const own = logsWithin(logs, { from: header.number, to: header.number })
    const checked = await addMissingLogs(nodes, header, { hash: header.hash, node, logs: own }, signal)
    if (checked.length !== own.length)
      throw new RpcError('INCONSISTENT', `it leaves out logs of block ${header.number}`)
  }
}
