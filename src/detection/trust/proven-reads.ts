import type { RpcHeader } from '../../contracts/block-hash.ts'
import type { RpcLog } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import { isObject, RpcError } from '../../nodes/rpc-error.ts'
import type { NodePeer } from '../open-chain.ts'
import type { BlockHeader, ChainReader } from '../read/chain-reader.ts'
import { mayHoldLogs } from './logs-by-receipts.ts'
import { hashOf, proveLogs } from './prove-logs.ts'
import { firstDifference } from './same-logs.ts'

/** Blocks whose headers are read at once. */
const MAX_BLOCKS = 200

/**
 * Reads ranges of final blocks without believing any one node: for blocks that are read again, since what the chain lacks is deleted then. The nodes
 * have to agree on the headers; a block whose bloom may hold followed logs is proven by its receipts, else two nodes have to give the same logs.
 */
export function readsProven(reader: ChainReader, peers: readonly NodePeer[], followed: readonly string[]): ChainReader {
  return {
    ...reader,
    async logsFrom({ from, until, addresses = followed, blocksAt }, signal) {
      const to = Math.min(until, from + Math.min(MAX_BLOCKS, blocksAt(0)) - 1)
      const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      const blocks = await agreedBlocks(peers, numbers, signal)
      const wanted = new Set(addresses.map((address) => address.toLowerCase()))
      const logs: RpcLog[] = []
      for (const { header, blooms } of blocks) {
        if (!blooms.some((logsBloom) => mayHoldLogs({ logsBloom }, [...wanted]))) continue
        logs.push(...(await provenLogs(peers, header.number, wanted, signal)))
      }
      return { node: 0, to, logs, last: blocks.at(-1)?.header }
    },
  }
}

interface AgreedBlock {
  readonly header: BlockHeader
  /** As each node gives it: one may have emptied it. */
  readonly blooms: readonly (string | undefined)[]
}

/** @throws RpcError where a block is missing, the nodes differ, or one alone has a header whose hash is not that of its fields */
async function agreedBlocks(
  peers: readonly NodePeer[],
  numbers: readonly number[],
  signal: AbortSignal | undefined,
): Promise<AgreedBlock[]> {
  const calls = numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toQuantity(number), false] }))
  const lists = await Promise.all(peers.map(({ client }) => client.batch(calls, signal).catch(() => [])))
  signal?.throwIfAborted()
  return numbers.map((number, index) => {
    const given = lists.flatMap((answers) => {
      const json = resultIn(answers[index])
      return isObject(json) ? [json] : []
    })
    const [first] = given
    if (first === undefined) throw new RpcError('UNREACHABLE', `no node gives block ${number}`)
    if (given.some((header) => header['hash'] !== first['hash'])) {
      throw new RpcError('INCONSISTENT', `the nodes have different blocks ${number}, which is final`)
    }
    if (given.length === 1 && hashOf(first) !== first['hash']) {
      throw new RpcError('INCONSISTENT', `one node alone gives block ${number}, and its hash is not that of its fields`)
    }
    return { header: toHeader(first), blooms: given.map(bloomOf) }
  })
}

function bloomOf({ logsBloom }: RpcHeader): string | undefined {
  return typeof logsBloom === 'string' && /^0x[0-9a-f]{512}$/i.test(logsBloom) ? logsBloom : undefined
}

function toHeader({ number, hash, parentHash, timestamp }: RpcHeader): BlockHeader {
  if (![number, hash, parentHash, timestamp].every((each) => typeof each === 'string')) {
    throw new RpcError('INCONSISTENT', 'a node answered with something that is not a block')
  }
  return {
    number: Number(number),
    hash: hash as BlockHeader['hash'],
    parentHash: parentHash as BlockHeader['parentHash'],
    timestampSec: Number(timestamp),
  }
}

/** @throws RpcError where there is no proof, and no two nodes that agree */
async function provenLogs(
  peers: readonly NodePeer[],
  block: number,
  addresses: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<readonly RpcLog[]> {
  const clients = peers.map(({ client }) => client)
  const proven = await proveLogs(clients, block, addresses, signal)
  if (proven !== undefined) return proven
  const range = { from: block, to: block }
  const given = await Promise.all(peers.map(({ reader }) => reader.logsInRange(range, signal).catch(() => undefined)))
  signal?.throwIfAborted()
  const [first, ...others] = given.flatMap((read) => (read === undefined ? [] : [read.logs]))
  if (first === undefined || others.length === 0 || others.some((logs) => firstDifference(first, logs) !== undefined)) {
    throw new RpcError('INCONSISTENT', `no node proves its logs of block ${block}, and no two agree`)
  }
  return first.filter((log) => addresses.has(log.address.toLowerCase()))
}
