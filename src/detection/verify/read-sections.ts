import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { BlockRun } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type ChainNodes, type Header, readHeader } from './chain-nodes.ts'
import { type BlockTools, type ReadBlocks, type ReadHeaders, readBlocks, readSpanHeaders } from './read-blocks.ts'

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
  readonly pinned: Pick<Header, 'number' | 'hash'>
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
  const pinned = await nodes.onAny((node) => readPinned(chain, nodes, node, position.finalBlock))
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

/** What was read of some consecutive blocks. A section is compared before the next one is read, so that memory holds the events of one. */
export interface Section extends ReadBlocks {
  readonly span: BlockRun
}

/** When a section ends, by whichever comes first. */
export interface SectionSize {
  readonly blocks: number
  readonly events: number
  readonly ms: number
}

interface SectionTerms {
  readonly size?: SectionSize | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after each portion of blocks, with the events in it. */
  readonly onPortion: (blocks: number, events: number) => void
}

/** The time limits what is lost when a slow verification is stopped. */
const DEFAULT_SIZE: SectionSize = { blocks: 50_000, events: 10_000, ms: 60_000 }
/** Blocks whose headers are read in one HTTP request, which has the chain id as well: the usual most is 100 calls. */
const BLOCKS_A_PORTION = 99
/** Portions of headers that are requested in advance. */
const PORTIONS_AHEAD = 4

/**
 * Reads all blocks of a plan, section by section.
 *
 * @throws RpcError when no node answers, or when the pinned block is another; the signal's reason
 */
export async function* readSections(
  tools: BlockTools,
  plan: RangePlan,
  { size = DEFAULT_SIZE, signal, onPortion }: SectionTerms,
): AsyncGenerator<Section, void, undefined> {
  for (const span of plan.spans) {
    let parts: ReadBlocks[] = []
    let sinceMs = performance.now()
    for await (const headers of headersAhead(tools, span, Math.min(size.blocks, BLOCKS_A_PORTION), signal)) {
      const blocks = await readBlocks(tools, headers)
      if (blocks.last.number === plan.pinned.number && blocks.last.hash !== plan.pinned.hash) throw pinnedChanged(plan)
      parts.push(blocks)
      onPortion(blocks.last.number - blocks.first.number + 1, blocks.logs.length)
      if (blocks.last.number < span.to && !isFull(parts, sinceMs, size)) continue
      yield toSection(parts)
      parts = []
      sinceMs = performance.now()
    }
  }
}

/** The error of a verification whose pinned block is no longer on the chain. */
export function pinnedChanged({ pinned }: RangePlan): RpcError {
  return new RpcError('INCONSISTENT', `block ${pinned.number} was final and is now another; run it again`)
}

/** Reads the headers of a span in portions, some of them in advance, since nodes are slow and answer several requests at once. */
async function* headersAhead(
  { nodes }: BlockTools,
  span: BlockRun,
  atOnce: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReadHeaders, void, undefined> {
  const asked: { readonly portion: BlockRun; readonly headers: Promise<ReadHeaders> }[] = []
  let next = span.from
  let before: Hex | undefined
  while (next <= span.to || asked.length > 0) {
    signal?.throwIfAborted()
    while (next <= span.to && asked.length < PORTIONS_AHEAD) {
      const portion = { from: next, to: Math.min(span.to, next + atOnce - 1) }
      const headers = readSpanHeaders(nodes, portion)
      // Its error is thrown when its section is due.
      headers.catch(() => {})
      asked.push({ portion, headers })
      next = portion.to + 1
    }
    const { portion, headers } = asked.shift() as (typeof asked)[number]
    const read = await headers
    const isNext = before === undefined || read.headers[0]?.parentHash === before
    const linked = isNext ? read : await readSpanHeaders(nodes, portion, before)
    before = linked.headers.at(-1)?.hash
    yield linked
  }
}

function isFull(parts: readonly ReadBlocks[], sinceMs: number, size: SectionSize): boolean {
  const blocks = (parts.at(-1)?.last.number ?? 0) - (parts[0]?.first.number ?? 0) + 1
  const events = parts.reduce((sum, { logs }) => sum + logs.length, 0)
  return blocks >= size.blocks || events >= size.events || performance.now() - sinceMs >= size.ms
}

/** @param parts - consecutive, at least one */
function toSection(parts: readonly ReadBlocks[]): Section {
  const [{ first }, { last }] = [parts[0], parts.at(-1)] as [ReadBlocks, ReadBlocks]
  return {
    span: { from: first.number, to: last.number },
    logs: parts.flatMap(({ logs }) => logs),
    receipts: parts.flatMap(({ receipts }) => receipts),
    uncertain: new Set(parts.flatMap(({ uncertain }) => [...uncertain])),
    unproven: parts.flatMap(({ unproven }) => unproven),
    receiptsRead: parts.reduce((sum, { receiptsRead }) => sum + receiptsRead, 0),
    first,
    last,
  }
}
