import { setTimeout as wait } from 'node:timers/promises'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { isHashOf, type RpcHeader } from '../../contracts/block-proofs.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import { type Hex, hexToBytes } from '../../domain/hex.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { isObject, isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'
import type { OpenChainOptions } from '../chain/open-chain.ts'
import { type BlockHeader, resultOf } from '../read/chain-reader.ts'

export type ChainNodes = ReturnType<typeof openNodes>

/** Some blocks have receipts of many megabytes. */
const TIMEOUT_MS = 60_000
const ATTEMPTS = 4
const FIRST_PAUSE_MS = 250
/** A node that asks for a longer pause, or whose daily budget is used up, counts as one that does not answer. */
const MAX_PAUSE_MS = 60_000

/** Makes the nodes of a chain, asked one by one, since a proof depends on which node gave an answer. Does nothing until they are asked. */
export function openNodes(
  { rpcUrls, chainId }: Pick<ChainConfig, 'rpcUrls' | 'chainId'>,
  { clock, limits }: Pick<OpenChainOptions, 'clock' | 'limits'>,
  signal: AbortSignal | undefined,
) {
  const client = createRpcClient({ urls: rpcUrls, chainId, clock, limits, timeoutMs: TIMEOUT_MS })
  const hosts = rpcUrls.map((url) => new URL(url).host)
  let preferred = 0

  async function tryOnce(node: number, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> {
    const asked = await client.tryBatch((each) => (each === node ? calls : undefined), signal)
    if (asked !== undefined) return asked.answers
    throw new RpcError('UNREACHABLE', 'the node was not asked', { host: hosts[node] })
  }

  /** Tries work again, after longer and longer pauses, where nodes did not answer. */
  async function insist<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        signal?.throwIfAborted()
        const isLongPause = error instanceof RpcError && (error.retryAfterMs ?? 0) > MAX_PAUSE_MS
        if (attempt === ATTEMPTS || isLongPause || !isTransportFailure(error)) throw error
        await wait(error.retryAfterMs ?? FIRST_PAUSE_MS * 4 ** (attempt - 1), undefined, { signal })
      }
    }
  }

  async function tryEach<T>(work: (node: number) => Promise<T>): Promise<T> {
    let failure: unknown
    for (const node of order()) {
      try {
        const done = await work(node)
        preferred = node
        return done
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof RpcError)) throw error
        failure ??= error
      }
    }
    throw failure
  }

  const order = () => [preferred, ...[...hosts.keys()].filter((node) => node !== preferred)]
  return {
    /** How many there are. A node is named by its place among the URLs, from 0. */
    count: hosts.length,
    /** EIP-155 number. */
    chainId,
    /** The node that succeeded last, then the others. */
    order,
    /** The host of a node: the rest of a URL may be a key. */
    hostOf: (node: number) => hosts[node] ?? '',
    /**
     * One of several is not waited for: another answers at once.
     *
     * @throws RpcError when the node does not answer, the only one of a chain after some attempts; the signal's reason
     */
    ask: (node: number, calls: readonly RpcCall[]) =>
      hosts.length === 1 ? insist(() => tryOnce(node, calls)) : tryOnce(node, calls),
    /** Tries work on the nodes one after the other, some times over, until one succeeds. @throws the first error where all fail */
    onAny: <T>(work: (node: number) => Promise<T>) =>
      hosts.length === 1 ? tryEach(work) : insist(() => tryEach(work)),
  }
}

/**
 * Does work on each item, on at most `atOnce` of them in parallel.
 *
 * @returns the results in the order of the items
 * @throws the first failure; no further work is begun after it
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const done: R[] = []
  const queue = items.entries()
  let hasFailed = false
  const workers = Array.from({ length: atOnce }, async () => {
    for (const [place, item] of queue) {
      if (hasFailed) return
      try {
        done[place] = await work(item)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  })
  await Promise.all(workers)
  return done
}

/** A block's header. */
export interface Header extends Pick<BlockHeader, 'number' | 'hash' | 'parentHash' | 'timestampSec'> {
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
  const answers = await nodes.ask(node, [{ method: 'eth_chainId', params: [] }, ...calls])
  const [served, ...results] = answers.map(resultOf)
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
