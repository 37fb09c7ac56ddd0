import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReading } from '../open-chain.ts'
import type { ChainReader, WantedLogs } from '../read/chain-reader.ts'
import type { BloomCheck } from './bloom-check.ts'
import { compareRange } from './compare-range.ts'
import { type ComparedNodes, refuseSuspect } from './compared-nodes.ts'
import { readsByReceipts } from './logs-by-receipts.ts'
import { addMissingLogs, refuseMissingLogs } from './missing-logs.ts'
import type { ReadingLane } from './sql/node-readings-repository.ts'

type Nodes = ComparedNodes & { readonly blooms: BloomCheck }

/** Wraps the reader of a lane: notes which node gave which blocks, and checks their logs by the blooms of headers and, for samples, with a second node. */
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

type LaneReading = ChainReading & { readonly lane: ReadingLane }

async function readRange(
  nodes: Nodes,
  { reader, client, lane }: LaneReading,
  wanted: WantedLogs,
  signal: AbortSignal | undefined,
) {
  const isOnlyNode = nodes.peers.length === 1
  if (isOnlyNode && nodes.suspected.has(0)) {
    return readsByReceipts(reader, client, nodes.addresses).logsFrom(wanted, signal)
  }
  const read = await reader.logsFrom(wanted, signal)
  const { node, to, logs, last } = read
  refuseSuspect(nodes, node)
  if (logs instanceof RpcError || last === undefined) return read
  const range = { from: wanted.from, to, addresses: wanted.addresses }
  await nodes.ledger.note({ node, lane, from: range.from, to })
  if (!nodes.samples.isDue(node, lane)) return read
  const check = isOnlyNode ? refuseMissingLogs : compareRange
  await check(nodes, range, { node, lane, logs, last }, signal)
  return read
}

async function readBlocks(
  nodes: Nodes,
  { reader, client, lane }: LaneReading,
  hashes: readonly Hex[],
  signal: AbortSignal | undefined,
) {
  const lists = await reader.logsOfBlocks(hashes, signal)
  const node = client.answeredLast()
  refuseSuspect(nodes, node)
  if (node === undefined) return lists
  const numbers = hashes.flatMap((hash) => nodes.followed.headerOf(hash)?.number ?? [])
  await nodes.ledger.note({ node, lane, from: Math.min(...numbers), to: Math.max(...numbers) })
  return Promise.all(
    hashes.map(async (hash, index) => {
      const list = lists[index] ?? []
      const header = nodes.followed.headerOf(hash)
      if (list instanceof RpcError || header === undefined) return list
      const logs = await addMissingLogs(nodes, header, { hash, node, logs: list }, signal)
      nodes.followed.note(header.number, { hash, node, logs })
      return logs
    }),
  )
}
