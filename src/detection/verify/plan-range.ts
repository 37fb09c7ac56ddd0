import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { BlockRun } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainNodes } from './chain-nodes.ts'
import { type Header, readHeader } from './read-headers.ts'

/** How far a chain was read, as the database says it. */
export interface ChainPosition {
  /** The last block up to which payments are final and were read. */
  readonly finalBlock: number
  /** From which block the events of each contract were read. */
  readonly startOf: ReadonlyMap<Address, number>
  /** Blocks that were not read for every contract yet. */
  readonly unread: readonly BlockRun[]
}

/** The pinned block, as of which everything is computed, and the blocks to compare. */
export interface RangePlan {
  readonly pinned: { readonly number: number; readonly hash: Hex; readonly isHashed: boolean }
  readonly spans: readonly BlockRun[]
  /** Sentences that say which blocks are left out, and why. */
  readonly notes: readonly string[]
}

/**
 * Pins the last block that is final for the node and for the database. Leaves blocks above it, and blocks that were not read yet, out of the range.
 *
 * @throws RpcError when no node has the block; RangeError when nothing is left
 */
export async function planRange(
  chain: ChainConfig,
  nodes: ChainNodes,
  position: ChainPosition,
  asked: BlockRun,
): Promise<RangePlan> {
  const header = await nodes.onAny((node) => readPinned(chain, nodes, node, position.finalBlock))
  const pinned = { number: header.number, hash: header.hash, isHashed: header.isHashed }
  const notes: string[] = []
  // The genesis block has no logs.
  const first = Math.max(1, Math.min(...position.startOf.values()))
  const span = { from: Math.max(asked.from, first), to: Math.min(asked.to, pinned.number) }
  if (asked.from < first && asked.from > 0)
    notes.push(`blocks below ${first} are left out: they are not read for payments`)
  if (asked.to > pinned.number && asked.to < Number.MAX_SAFE_INTEGER) {
    notes.push(`blocks above ${pinned.number} are left out: they are not final, or not read yet`)
  }
  const spans = position.unread.reduce((left, gap) => left.flatMap((each) => without(each, gap)), [span])
  for (const { from, to } of position.unread.filter((gap) => gap.from <= span.to && gap.to >= span.from)) {
    notes.push(`blocks ${from} to ${to} are left out: they were not read for every contract yet`)
  }
  const kept = spans.filter(({ from, to }) => from <= to)
  if (kept.length > 0) return { pinned, spans: kept, notes }
  const remedy =
    first > pinned.number
      ? `it is read from block ${first}, and block ${pinned.number} is the last final one; try again later`
      : `choose blocks from ${first} to ${pinned.number}`
  const range = asked.to < Number.MAX_SAFE_INTEGER ? `from ${asked.from} to ${asked.to}` : `from ${asked.from} on`
  throw new RangeError(`no block of ${chain.name} ${range} is final and was read: ${remedy}`)
}

function without({ from, to }: BlockRun, gap: BlockRun): BlockRun[] {
  if (gap.to < from || gap.from > to) return [{ from, to }]
  return [
    { from, to: gap.from - 1 },
    { from: gap.to + 1, to },
  ].filter((each) => each.from <= each.to)
}

async function readPinned(
  { finality }: ChainConfig,
  nodes: ChainNodes,
  node: number,
  storedFinal: number,
): Promise<Header> {
  const host = nodes.hostOf(node)
  const tagged = finality.useFinalizedTag ? await readHeader(nodes, node, 'finalized') : undefined
  const head = tagged ?? (await readHeader(nodes, node, 'latest'))
  if (head === undefined) throw new RpcError('INCONSISTENT', 'the node has no newest block', { host })
  const final = tagged === undefined ? head.number - finality.depth : tagged.number
  const number = Math.max(0, Math.min(final, storedFinal))
  const header = await readHeader(nodes, node, number)
  if (header === undefined) throw new RpcError('BEHIND', `the node does not have block ${number}`, { host })
  return header
}
