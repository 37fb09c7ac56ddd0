import type { ChainConfig } from '../../chains/chains-file.ts'
import { toQuantity } from '../../contracts/words.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { isObject, RpcError } from '../../nodes/rpc-error.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { judgeHeads, type NodeHead } from './judge-heads.ts'
import { blame, type TrustedNodes } from './trusted-nodes.ts'

interface Terms extends Pick<ChainConfig, 'chainId' | 'blockTimeSeconds'> {
  readonly clock: () => Date
}

/** Compares the heads, chain ids and one final block of all nodes, and sets those aside that are late or serve another chain. */
export async function compareHeads(
  nodes: TrustedNodes,
  { chainId, blockTimeSeconds, clock }: Terms,
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<void> {
  const heads = await Promise.all(nodes.peers.map(({ client }) => readHead(client, final, signal)))
  const terms = { chainId, final, blockTimeSeconds, nowSec: clock().getTime() / 1_000 }
  const faults = judgeHeads(heads, terms)
  nodes.aside.releaseHeads((node) => heads[node] !== undefined && !faults.has(node))
  for (const [node, { fault, reason }] of faults) {
    if (nodes.aside.has(node)) continue
    if (fault === 'STALE') nodes.aside.add(node, fault, reason)
    else await blame(nodes, node, fault, reason)
  }
}

/** Asks a node for its chain, its head and a final block. @returns undefined where it does not answer */
async function readHead(
  client: RpcClient,
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<NodeHead | undefined> {
  const calls = [
    { method: 'eth_chainId', params: [] },
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_getBlockByNumber', params: [toQuantity(final.number), false] },
  ]
  try {
    const [chainId, latest, block] = (await client.batch(calls, signal)).map(resultIn)
    if (!isObject(latest)) return undefined
    const finalHash = isObject(block) ? String(block['hash']) : undefined
    const { number, timestamp } = latest
    return { chainId: Number(chainId), number: Number(number), timestampSec: Number(timestamp), finalHash }
  } catch (error) {
    signal?.throwIfAborted()
    const isOther = error instanceof RpcError && error.kind === 'WRONG_CHAIN'
    return isOther ? { chainId: Number.NaN, number: 0, timestampSec: 0, otherChain: error.detail } : undefined
  }
}
