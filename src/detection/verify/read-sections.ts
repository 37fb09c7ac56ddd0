import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { RangePlan, Span } from './plan-range.ts'
import { type BlockTools, type ReadBlocks, type ReadHeaders, readBlocks, readSpanHeaders } from './read-blocks.ts'
import type { UnprovenBlock } from './verify-report.ts'

/** What was read of some consecutive blocks. A section is compared before the next one is read, so that memory holds the events of one. */
export interface Section extends Pick<ReadBlocks, 'logs' | 'receipts'> {
  readonly span: Span
  /** Blocks whose events are not certain: nothing is compared with them. */
  readonly uncertain: ReadonlySet<number>
  readonly unproven: readonly UnprovenBlock[]
  /** Blocks of which receipts were read. */
  readonly receiptsRead: number
  /** Of the first and the last block. */
  readonly fromTime: Date
  readonly toTime: Date
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
/** Blocks whose headers are read in one HTTP request. */
const BLOCKS_A_PORTION = 100
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
    let open = openSection(span.from)
    for await (const headers of headersAhead(tools, span, Math.min(size.blocks, BLOCKS_A_PORTION), signal)) {
      const blocks = await readBlocks(tools, headers)
      if (blocks.last.number === plan.pinned.number && blocks.last.hash !== plan.pinned.hash) throw pinnedChanged(plan)
      addTo(open, blocks)
      onPortion(blocks.last.number - blocks.first.number + 1, blocks.logs.length)
      if (blocks.last.number < span.to && !isFull(open, size)) continue
      yield toSection(open)
      open = openSection(blocks.last.number + 1)
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
  span: Span,
  atOnce: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReadHeaders, void, undefined> {
  const asked: { readonly portion: Span; readonly headers: Promise<ReadHeaders> }[] = []
  let next = span.from
  let before: Hex | undefined
  while (next <= span.to || asked.length > 0) {
    signal?.throwIfAborted()
    while (next <= span.to && asked.length < PORTIONS_AHEAD) {
      const portion = { from: next, to: Math.min(span.to, next + atOnce - 1) }
      const headers = readSpanHeaders(nodes, portion)
      // Its error is thrown when its turn comes.
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

interface OpenSection {
  readonly from: number
  readonly sinceMs: number
  readonly logs: RpcLog[]
  readonly receipts: TransactionReceipt[]
  readonly uncertain: Set<number>
  readonly unproven: UnprovenBlock[]
  receiptsRead: number
  to: number
  fromTime: Date | undefined
  toTime: Date | undefined
}

function openSection(from: number): OpenSection {
  const lists = { logs: [], receipts: [], uncertain: new Set<number>(), unproven: [] }
  const nothing = { receiptsRead: 0, to: from - 1, fromTime: undefined, toTime: undefined }
  return { from, sinceMs: performance.now(), ...lists, ...nothing }
}

function addTo(open: OpenSection, blocks: ReadBlocks): void {
  open.logs.push(...blocks.logs)
  open.receipts.push(...blocks.receipts)
  for (const number of blocks.uncertain) open.uncertain.add(number)
  open.unproven.push(...blocks.unproven)
  open.receiptsRead += blocks.receiptsRead
  open.to = blocks.last.number
  open.fromTime ??= new Date(blocks.first.timestampSec * 1_000)
  open.toTime = new Date(blocks.last.timestampSec * 1_000)
}

function isFull({ from, to, logs, sinceMs }: OpenSection, size: SectionSize): boolean {
  return to - from + 1 >= size.blocks || logs.length >= size.events || performance.now() - sinceMs >= size.ms
}

function toSection({ from, to, fromTime = new Date(0), toTime = new Date(0), ...read }: OpenSection): Section {
  const { logs, receipts, uncertain, unproven, receiptsRead } = read
  return { span: { from, to }, logs, receipts, uncertain, unproven, receiptsRead, fromTime, toTime }
}
