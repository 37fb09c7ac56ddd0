import { isHashOf, type RpcHeader } from '../../contracts/block-proofs.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import { isObject, RpcError } from '../../nodes/rpc-error.ts'
import { type ChainNodes, resultsOf } from './chain-nodes.ts'

/** A block's header. */
export interface Header {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestampSec: number
  readonly receiptsRoot: Hex
  readonly logsBloom: Uint8Array
  /** Hashes of its transactions, in order. */
  readonly transactions: readonly Hex[]
  /** Whether its hash is that of its fields. Then no field of the block with this hash can have been changed. */
  readonly isHashed: boolean
}

/**
 * Reads one header.
 *
 * @param which - a number or a tag
 * @returns undefined where the node has no such block, or refuses the tag
 */
export async function readHeader(nodes: ChainNodes, node: number, which: number | string): Promise<Header | undefined> {
  const [answer] = await nodes.ask(node, [callFor(which)])
  return answer?.ok && answer.result !== null ? toHeader(answer.result, nodes.hostOf(node)) : undefined
}

/**
 * Reads consecutive headers, each of which must name the one before as its parent. The node is asked for its chain id beside them: headers of another
 * chain prove themselves as well.
 *
 * @param before - the hash of the block before the first, where it is known
 * @throws RpcError when a header is missing, or does not name the one before as its parent; WRONG_CHAIN
 */
export async function readHeaders(
  nodes: ChainNodes,
  node: number,
  { from, to, before }: { readonly from: number; readonly to: number; readonly before?: Hex | undefined },
): Promise<Header[]> {
  const host = nodes.hostOf(node)
  const calls = Array.from({ length: to - from + 1 }, (_, place) => callFor(from + place))
  const [served, ...results] = resultsOf(await nodes.ask(node, [{ method: 'eth_chainId', params: [] }, ...calls]))
  if (Number(served) !== nodes.chainId) {
    throw new RpcError('WRONG_CHAIN', `it serves chain ${Number(served)}, not ${nodes.chainId}`, { host })
  }
  const headers = results.map((result) => toHeader(result, host))
  let parent = before
  for (const [place, header] of headers.entries()) {
    if (header.number !== from + place || (parent !== undefined && header.parentHash !== parent)) {
      throw new RpcError('INCONSISTENT', `block ${from + place} does not follow the block before it`, { host })
    }
    parent = header.hash
  }
  return headers
}

function callFor(which: number | string) {
  return { method: 'eth_getBlockByNumber', params: [typeof which === 'number' ? toQuantity(which) : which, false] }
}

/** @throws RpcError INCONSISTENT for anything else than a header */
function toHeader(value: unknown, host: string): Header {
  const header = isObject(value) ? (value as RpcHeader) : {}
  const { hash, parentHash, receiptsRoot, logsBloom, transactions } = header
  const [number, timestamp] = [readQuantity(header['number']), readQuantity(header['timestamp'])]
  if (number === undefined || timestamp === undefined || !isHash(hash) || !isHash(parentHash)) {
    throw new RpcError('INCONSISTENT', 'a block has no number, time, hash or parent', { host })
  }
  return {
    number: Number(number),
    hash,
    parentHash,
    timestampSec: Number(timestamp),
    receiptsRoot: isHash(receiptsRoot) ? receiptsRoot : '0x',
    logsBloom: hexToBytes(typeof logsBloom === 'string' ? logsBloom : '0x'),
    transactions: Array.isArray(transactions) ? transactions.filter(isHash) : [],
    isHashed: isHashOf(header),
  }
}

function isHash(value: unknown): value is Hex {
  return typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value)
}
