import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReading } from '../chain/open-chain.ts'
import type { BlockHeader, BlockRange, ChainReader, NodeLogs, WantedLogs } from '../read/chain-reader.ts'
import type { BlockCheck } from './check-block.ts'
import { compareLogs, firstDifference, logsWithin } from './compare-logs.ts'
import { blame, type ReadingLane, refuseAside, type TrustedNodes } from './trusted-nodes.ts'

type Nodes = TrustedNodes & { readonly checkBlock: BlockCheck; readonly fills: Map<number, number> }
type LaneReading = ChainReading & { readonly lane: ReadingLane }

/** Wraps the reader of a lane: notes which node gave which blocks, and checks their logs by receipts and, for samples, with a second node. */
export function guardReader(nodes: Nodes, reading: ChainReading, lane: ReadingLane): ChainReader {
  const { reader } = reading
  return {
    ...reader,
    async headers(numbers, signal) {
      const headers = await reader.headers(numbers, signal)
      if (lane === 'FOLLOW') for (const header of headers) if (header !== undefined) nodes.followed.noteHeader(header)
      return headers
    },
    logsFrom: (wanted, signal) => readRange(nodes, { ...reading, lane }, wanted, signal),
    logsOfBlocks: (hashes, signal) => readBlocks(nodes, { ...reading, lane }, hashes, signal),
  }
}

async function readRange(
  nodes: Nodes,
  { reader, lane }: LaneReading,
  wanted: WantedLogs,
  signal: AbortSignal | undefined,
): Promise<NodeLogs> {
  const read = await reader.logsFrom(wanted, signal)
  const { node, to, logs, last } = read
  refuseAside(nodes, node)
  if (logs instanceof RpcError || last === undefined) return read
  const range = { from: wanted.from, to, addresses: wanted.addresses }
  await nodes.given.note({ node, lane, from: range.from, to }, nodes.aside.isDistrusted(node))
  if (!isSample(nodes, node, lane)) return read
  if (nodes.peers.length === 1) await checkSome(nodes, reader, range, { ...read, logs }, signal)
  else await compareRange(nodes, range, { ...read, logs, last, lane }, signal)
  return read
}

/** Whether a range is compared: in back-fill the first of a node and then one in `sampleLogs`; in following each, since those are only what was missed during a stop. */
function isSample({ sampleLogs, fills }: Nodes, node: number, lane: ReadingLane): boolean {
  if (sampleLogs === 0) return false
  if (lane === 'FOLLOW') return true
  const count = fills.get(node) ?? 0
  fills.set(node, (count + 1) % sampleLogs)
  return count === 0
}

type ReadLogs = NodeLogs & { readonly logs: Exclude<NodeLogs['logs'], RpcError> }

/** Compares a range before it is written. @throws RpcError where it must not be written */
async function compareRange(
  nodes: Nodes,
  range: BlockRange,
  { node, lane, logs, last }: ReadLogs & { readonly last: BlockHeader; readonly lane: ReadingLane },
  signal: AbortSignal | undefined,
): Promise<void> {
  const hashOf = (block: number) => (block === range.to ? last.hash : undefined)
  const compared = await compareLogs(nodes, { node, range, logs, hashOf }, signal)
  if (compared.kind === 'OTHER_BLOCK') {
    const both = [node, compared.second]
    const what = `different blocks ${compared.block}, which is final`
    const hosts = both.map((each) => nodes.peers[each]?.host).join(' and ')
    for (const each of both) await blame(nodes, each, 'CONTRADICTED', `${hosts}: they have ${what}`)
    throw new RpcError('INCONSISTENT', `two nodes have ${what}`)
  }
  if (compared.kind === 'OTHER_LOGS' && !compared.isRight) {
    nodes.fills.delete(node)
    throw new RpcError('INCONSISTENT', `its logs of block ${compared.block} are not those of another node`)
  }
  if (compared.kind === 'SAME') await nodes.given.pass({ node, lane, to: passedTo(nodes, node, lane, compared.to) })
  // Back-fill compares a sample. Of what is followed all is compared, so what cannot be compared now is proven.
  const comparedTo = compared.kind === 'SAME' ? compared.to : range.from - 1
  if (lane === 'FOLLOW' && comparedTo < range.to) await nodes.given.doubt({ node, from: comparedTo + 1, to: range.to })
}

/** Up to where what a node gave counts as right. Followed blocks that are still to be compared do not. */
function passedTo({ followed }: Nodes, node: number, lane: ReadingLane, block: number): number {
  return lane === 'FILL' ? Number.MAX_SAFE_INTEGER : Math.min(block, followed.lowestOf(node) - 1)
}

/** Blocks of a range that are checked where there is no second node. */
const CHECKED_OF_RANGE = 5

/** @throws RpcError where the only node's logs of a block are not those of its receipts */
async function checkSome(
  nodes: Nodes,
  reader: ChainReader,
  { from, to }: BlockRange,
  { node, logs }: ReadLogs,
  signal: AbortSignal | undefined,
): Promise<void> {
  const numbers = new Set(
    Array.from({ length: CHECKED_OF_RANGE }, () => from + Math.floor(Math.random() * (to - from + 1))),
  )
  for (const header of await reader.headers([...numbers], signal)) {
    if (header === undefined) continue
    const own = logsWithin(logs, { from: header.number, to: header.number })
    const checked = await nodes.checkBlock(header, { node, logs: own }, signal)
    if (firstDifference(own, checked) !== undefined) {
      throw new RpcError('INCONSISTENT', `its logs of block ${header.number} are not those of the block's receipts`)
    }
  }
}

async function readBlocks(
  nodes: Nodes,
  { reader, client, lane }: LaneReading,
  hashes: readonly Hex[],
  signal: AbortSignal | undefined,
): ReturnType<ChainReader['logsOfBlocks']> {
  const lists = await reader.logsOfBlocks(hashes, signal)
  const node = client.answeredLast()
  refuseAside(nodes, node)
  const headers = hashes.map((hash) => nodes.followed.headerOf(hash))
  const numbers = headers.flatMap((header) => header?.number ?? [])
  if (node === undefined || numbers.length === 0) return lists
  const [from, to] = [Math.min(...numbers), Math.max(...numbers)]
  await nodes.given.note({ node, lane, from, to }, nodes.aside.isDistrusted(node))
  return Promise.all(
    lists.map(async (list, index) => {
      const header = headers[index]
      if (list instanceof RpcError || header === undefined) return list
      const logs = await nodes.checkBlock(header, { node, logs: list }, signal)
      nodes.followed.note(header.number, { hash: header.hash, node, logs })
      return [...logs]
    }),
  )
}
