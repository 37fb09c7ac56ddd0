import type { RpcHeader } from '../../contracts/block-hash.ts'
import type { RpcLog } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import { isObject, RpcError } from '../../nodes/rpc-error.ts'
import { chunksOf } from '../chunks.ts'
import type { NodePeer } from '../open-chain.ts'
import { type BlockHeader, type ChainReader, type TransactionReceipt, toReceipt } from '../read/chain-reader.ts'
import { mayHoldLogs } from './logs-by-receipts.ts'
import { hashOf, proveLogs } from './prove-logs.ts'
import { firstDifference } from './same-logs.ts'

/** Blocks whose headers are read at once. */
const MAX_BLOCKS = 200
/** Blocks whose receipts are read at once. */
const MAX_PROOFS = 8

/**
 * How the followed logs of a block are known:
 * - `RECEIPTS`: its receipts have the root of its header
 * - `TWO_NODES`: two nodes give the same logs, and no node gives such receipts
 * - `NO_LOGS`: by the bloom of its header it has none
 * - `BELIEVED`: only one node says so
 */
export type Proof = 'RECEIPTS' | 'TWO_NODES' | 'NO_LOGS' | 'BELIEVED'

interface ProvenReading {
  readonly reader: ChainReader
  /** The nodes that are asked for proofs. */
  readonly peers: readonly NodePeer[]
  /** The contracts that are followed. */
  readonly followed: readonly string[]
  /** Host of the node to believe where nothing is proven and no two nodes agree. Absent: such blocks are refused. */
  readonly believed?: string | undefined
  /** Called for each block that was read; again where it is read again. */
  readonly onProof?: ((block: number, proof: Proof) => void) | undefined
}

/**
 * Reads ranges of final blocks without believing any one node: for blocks that are read again, since stored rows that are not found then are deleted.
 * The nodes have to agree on the headers. A block whose bloom may hold followed logs is proven by its receipts; where that fails, two nodes have to give
 * the same logs. Receipts come from the proof where there is one.
 */
export function readsProven(reading: ProvenReading): ChainReader {
  const { reader, peers, followed, believed, onProof } = reading
  const receipts = new Map<string, TransactionReceipt>()
  return {
    ...reader,
    async logsFrom({ from, until, addresses = followed, blocksAt }, signal) {
      const to = Math.min(until, from + Math.min(MAX_BLOCKS, blocksAt(0)) - 1)
      const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
      const blocks = await agreedBlocks(peers, { numbers, believed }, signal)
      const wanted = new Set(addresses.map((address) => address.toLowerCase()))
      const logs: RpcLog[] = []
      receipts.clear()
      for (const some of chunksOf(blocks, MAX_PROOFS)) {
        const read = await Promise.all(some.map((block) => readBlock(block, { wanted, believed }, signal)))
        for (const [index, each] of read.entries()) {
          logs.push(...each.logs)
          for (const receipt of each.receipts) receipts.set(receipt.txHash.toLowerCase(), receipt)
          onProof?.(some[index]?.header.number ?? from, each.proof)
        }
      }
      return { node: 0, to, logs, last: blocks.at(-1)?.header }
    },
    async receipts(hashes, signal) {
      const unproven = hashes.filter((hash) => !receipts.has(hash.toLowerCase()))
      const others = unproven.length === 0 ? [] : await reader.receipts(unproven, signal)
      return hashes.map((hash) => receipts.get(hash.toLowerCase()) ?? others[unproven.indexOf(hash)])
    },
  }
}

interface AgreedBlock {
  readonly header: BlockHeader
  /** As each node gives it: one may have emptied it. */
  readonly blooms: readonly (string | undefined)[]
  /** The nodes that have this block. */
  readonly peers: readonly NodePeer[]
  /** Whether its hash is that of its fields, or two nodes give it. */
  readonly isCertain: boolean
}

interface WantedHeaders {
  readonly numbers: readonly number[]
  readonly believed: string | undefined
}

/** @throws RpcError where a block is missing, the nodes differ, or one alone has a header whose hash is not that of its fields */
async function agreedBlocks(
  peers: readonly NodePeer[],
  { numbers, believed }: WantedHeaders,
  signal: AbortSignal | undefined,
): Promise<AgreedBlock[]> {
  const calls = numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [toQuantity(number), false] }))
  const lists = await Promise.all(peers.map(({ client }) => client.batch(calls, signal).catch(() => [])))
  signal?.throwIfAborted()
  return numbers.map((number, index) => {
    const given = peers.flatMap((peer, place) => {
      const header = resultIn(lists[place]?.[index])
      return isObject(header) && Number(header['number']) === number ? [{ peer, header }] : []
    })
    return agreeOn(number, given, believed)
  })
}

interface GivenHeader {
  readonly peer: NodePeer
  readonly header: RpcHeader
}

function agreeOn(number: number, given: readonly GivenHeader[], believed: string | undefined): AgreedBlock {
  const first = believed === undefined ? given[0] : given.find(({ peer }) => peer.host === believed)
  if (first === undefined) throw new RpcError('UNREACHABLE', `${believed ?? 'no node'} does not give block ${number}`)
  const same = given.filter(({ header }) => header['hash'] === first.header['hash'])
  if (believed === undefined && same.length < given.length) {
    throw new RpcError('INCONSISTENT', `the nodes have different blocks ${number}, which is final`)
  }
  const proven = same.find(({ header }) => hashOf(header) === header['hash'])
  const isCertain = proven !== undefined || same.length > 1
  if (!isCertain && believed === undefined) {
    throw new RpcError('INCONSISTENT', `one node alone gives block ${number}, and its hash is not that of its fields`)
  }
  return {
    header: toHeader((proven ?? first).header),
    blooms: (proven === undefined ? same : [proven]).map(({ header }) => bloomOf(header)),
    peers: same.map(({ peer }) => peer),
    isCertain,
  }
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

interface BlockRead {
  readonly proof: Proof
  readonly logs: readonly RpcLog[]
  /** Of the proof. */
  readonly receipts: readonly TransactionReceipt[]
}

interface WantedOfBlock {
  /** Contracts, in small letters. */
  readonly wanted: ReadonlySet<string>
  readonly believed: string | undefined
}

/** @throws RpcError where there is no proof, no two nodes that agree, and none to believe */
async function readBlock(
  { header, blooms, peers, isCertain }: AgreedBlock,
  { wanted, believed }: WantedOfBlock,
  signal: AbortSignal | undefined,
): Promise<BlockRead> {
  const { number } = header
  if (!blooms.some((logsBloom) => mayHoldLogs({ logsBloom }, [...wanted]))) {
    return { proof: isCertain ? 'NO_LOGS' : 'BELIEVED', logs: [], receipts: [] }
  }
  const clients = peers.map(({ client }) => client)
  const proven = await proveLogs(clients, number, wanted, signal)
  if (proven !== undefined) {
    const receipts = proven.receipts.flatMap((receipt) => (isWhole(receipt) ? (toReceipt(receipt) ?? []) : []))
    return { proof: 'RECEIPTS', logs: proven.logs, receipts }
  }
  const { logs, proof } = await agreedLogs(peers, { number, believed }, signal)
  return { proof, logs: logs.filter((log) => wanted.has(log.address.toLowerCase())), receipts: [] }
}

/** Whether a receipt has the fields that the root does not prove. */
function isWhole(receipt: object): boolean {
  const { from, to, gasUsed, transactionHash } = receipt as Readonly<Record<string, unknown>>
  return [from, to ?? '', gasUsed, transactionHash].every((each) => typeof each === 'string')
}

async function agreedLogs(
  peers: readonly NodePeer[],
  { number, believed }: { readonly number: number; readonly believed: string | undefined },
  signal: AbortSignal | undefined,
): Promise<{ readonly logs: readonly RpcLog[]; readonly proof: Proof }> {
  const range = { from: number, to: number }
  const answers = await Promise.all(peers.map(({ reader }) => reader.logsInRange(range, signal).catch(() => undefined)))
  signal?.throwIfAborted()
  const [first, ...others] = answers.flatMap((read) => (read === undefined ? [] : [read.logs]))
  const areSame = first !== undefined && others.every((logs) => firstDifference(first, logs) === undefined)
  if (areSame && others.length > 0) return { logs: first, proof: 'TWO_NODES' }
  const own = answers[peers.findIndex(({ host }) => host === believed)]
  if (own !== undefined) return { logs: own.logs, proof: 'BELIEVED' }
  throw new RpcError('INCONSISTENT', `no node proves its logs of block ${number}, and no two agree`)
}
